// The summary of a served dump, the stacks of its rows, and its call tree.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { folder } from "./browser.mjs";
import { end, serve } from "./server.mjs";

after(end);

/** Writes a dump of a program that walks itself, and of a function that allocates by itself. */
function recursive() {
  const frameTable = { M: "#00: app::main (src/main.rs:1)", W: "#00: app::tree::walk (src/tree.rs:7)", L: "#00: app::leaf (src/leaf.rs:9)", R: "#00: app::read (src/read.rs:3)" };
  const traceTable = { T0: ["L", "W", "W", "W", "M"], T1: ["W", "M"], T2: ["L", "R"] };
  const blockList = [{ req: 6000, alloc: "T0" }, { req: 4000, alloc: "T1" }, { req: 1000, alloc: "T2" }];
  const file = join(folder, "recursive.json");
  writeFileSync(file, JSON.stringify({ version: 5, invocation: { dmdEnvVar: "1", mode: "live" }, blockList, traceTable, frameTable }));
  return file;
}

test("the call tree has totals, merges recursion, inverts, and starts with a function", async () => {
  const { page, faults, close } = await serve(recursive());
  await page.evaluate(() => (location.hash = "#/stacks/1?view=calls"));
  await page.waitForSelector(".calls .row");
  const rows = () => page.$$eval(".calls .row", (all) => all.map((one) => `${one.getAttribute("aria-level")}: ${[...one.children].map((cell) => cell.textContent).join(" ")}`));
  assert.deepEqual(await rows(), ["1: 9.77 KiB 90.91% 0 B 2 app::main src/main.rs:1", "1: 1,000 B 9.09% 0 B 1 app::read src/read.rs:3"]);
  await page.focus(".calls .list");
  await page.keyboard.press("*");
  const walks = (await rows()).filter((row) => row.includes("walk"));
  assert.deepEqual(walks, ["2: 9.77 KiB 90.91% 3.91 KiB 2 app::tree::walk src/tree.rs:7", "3: 5.86 KiB 54.55% 0 B 1 app::tree::walk src/tree.rs:7", "4: 5.86 KiB 54.55% 0 B 1 app::tree::walk src/tree.rs:7"]);
  await page.check(".calls input >> nth=1");
  await page.focus(".calls .list");
  await page.keyboard.press("*");
  assert.deepEqual((await rows()).slice(1, 3), ["2: 9.77 KiB 90.91% 3.91 KiB 2 app::tree::walk src/tree.rs:7", "3: 5.86 KiB 54.55% 5.86 KiB 1 app::leaf src/leaf.rs:9"]);
  // Inverted, the functions that allocated are first.
  await page.check(".calls input >> nth=0");
  assert.deepEqual((await rows()).map((row) => row.split(" ").slice(1, 4).join(" ") + row.slice(row.indexOf(" app"))), ["6.84 KiB 63.64% app::leaf src/leaf.rs:9", "3.91 KiB 36.36% app::tree::walk src/tree.rs:7"]);
  await page.uncheck(".calls input >> nth=0");
  await page.fill("#filter", "leaf");
  await page.waitForFunction(() => document.querySelectorAll(".calls .row").length === 5);
  await page.click(".calls .row:has-text('leaf')");
  await page.click("text=Start with this function");
  assert.deepEqual(await rows(), ["1: 6.84 KiB 63.64% 6.84 KiB 2 app::leaf src/leaf.rs:9"]);
  await page.click(".calls .focus button");
  await page.waitForFunction(() => document.querySelectorAll(".calls .row").length > 1);
  assert.deepEqual(faults, []);
  await close();
});

test("a dump opens on its summary, and its rows open to stacks with file and line", async () => {
  const { page, faults, close } = await serve(recursive());
  await page.click("#side a[href='#/stacks/1']");
  await page.waitForSelector(".summary .answer");
  assert.match(await page.textContent(".summary .what"), /^app::leaf \(src\/leaf\.rs:9\) allocated the most: 6\.84 KiB, 63\.64% of the heap, in 2 blocks\./);
  await page.click("text=Open its stacks");
  await page.waitForSelector(".table .row.stack");
  const names = (kind) => page.$$eval(`.table .row.${kind} .name`, (all) => all.map((one) => one.textContent));
  assert.deepEqual(await names("stack"), ["app::leaf ← tree::walk ← tree::walk ← tree::walk ← app::main", "app::leaf ← app::read"]);
  await page.click(".table .row.stack >> nth=1");
  assert.deepEqual(await names("frame"), ["app::leaf src/leaf.rs:9", "app::read src/read.rs:3"]);
  assert.deepEqual(faults, []);
  await close();
});

test("a flame graph has amounts in its boxes, short names, and a legend of crates", async () => {
  const { page, faults, close } = await serve(recursive());
  await page.evaluate(() => (location.hash = "#/stacks/1?view=flame"));
  await page.waitForSelector(".flame .frame");
  const boxes = await page.$$eval(".flame .frame", (all) => all.map((one) => [one.textContent, one.dataset.amount, one.classList[1]].join(" ")));
  for (const box of ["all 10.74 KiB · 100.00% k0", "app::main 9.77 KiB · 90.91% k1", "tree::walk 9.77 KiB · 90.91% k1", "app::read  k1"]) {
    assert.ok(boxes.includes(box), `${box} in ${boxes.join("\n")}`);
  }
  assert.deepEqual(await page.$$eval(".flame .legend .key", (all) => all.map((one) => one.textContent)), ["app 100.00%"]);
  assert.deepEqual(faults, []);
  await close();
});
