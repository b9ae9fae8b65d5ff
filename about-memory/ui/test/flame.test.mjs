// The flame graph of a dump: drawing, descriptions, search, zoom and inversion.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, open, program, report, write } from "./browser.mjs";

let dumps = 0;

/** Writes a dump file of blocks. A stack is the names of its frames, the innermost first, separated by `/`. */
function dump(blocks, { mode = "live" } = {}) {
  const traceTable = {};
  const frameTable = {};
  const blockList = blocks.map(({ stack, ...block }, i) => {
    if (!stack) return block;
    const names = Array.isArray(stack) ? stack : stack.split("/");
    traceTable[`T${i}`] = names.map((name) => {
      frameTable[`F ${name}`] = `#00: ${name} (src/lib.rs:1)`;
      return `F ${name}`;
    });
    return { ...block, alloc: `T${i}` };
  });
  const file = join(folder, `dump-${dumps++}.json`);
  const invocation = { dmdEnvVar: "1", mode };
  writeFileSync(file, JSON.stringify({ version: 5, invocation, blockList, traceTable, frameTable, modules: [] }));
  return file;
}

const BLOCKS = [
  { req: 600, stack: "malloc/a::inner/a::load/a::main" },
  { req: 300, stack: "malloc/b::inner/a::load/a::main" },
  { req: 100, num: 2, stack: "malloc/a::inner/a::save/a::main" },
];

/** Returns the frames as drawn: row by row, from left to right. */
const frames = (page) =>
  page.$$eval(".flame .frame", (all) => all.map((one) => `${one.getAttribute("aria-level")} ${one.getAttribute("aria-label").replace("\n", ": ")}`));
const active = (page) => page.$eval("#active-frame", (one) => one.getAttribute("aria-label").split("\n")[0]);
const about = (page) => page.$eval(".flame .about", (one) => one.textContent);

test("a dump alone is a page of its flame graph", async () => {
  const { page, faults, close } = await open(write(dump(BLOCKS)));
  assert.deepEqual(await page.$$eval("#tabs button", (all) => all.map((one) => one.textContent)), ["Flame graph"]);
  assert.ok(await page.isHidden("#filter"));
  assert.ok(await page.isHidden("#processes"));
  await page.setChecked("#verbose", true);
  assert.deepEqual(await frames(page), [
    "1 all: 1,100 B (100.00%) in 4 blocks",
    "2 a::main: 1,100 B (100.00%) in 4 blocks",
    "3 a::load: 900 B (81.82%) in 2 blocks",
    "3 a::save: 200 B (18.18%) in 2 blocks",
    "4 a::inner: 600 B (54.55%) in 1 block",
    "4 b::inner: 300 B (27.27%) in 1 block",
    "4 a::inner: 200 B (18.18%) in 2 blocks",
  ]);
  const widths = await page.$$eval(".flame .frame", (all) => all.map((one) => one.getBoundingClientRect().width));
  assert.ok(Math.abs(widths[4] / widths[0] - 600 / 1100) < 0.01, String(widths));
  assert.deepEqual(faults, []);
  await close();
});

test("beside a report it is one view of three", async () => {
  const file = report({ path: "explicit/a" });
  const target = join(folder, "both.html");
  execFileSync(program, ["html", file, "--dmd", dump(BLOCKS), "-o", target]);
  const { page, faults, close } = await open(target);
  assert.deepEqual(await page.$$eval("#tabs button", (all) => all.map((one) => one.textContent)), [
    "Tree",
    "Treemap",
    "Flame graph",
  ]);
  assert.ok(await page.isVisible("#filter"));
  await page.click("#tab-flame");
  assert.ok(await page.isHidden("#filter"));
  assert.equal((await frames(page)).length, 7);
  await page.click("#tab-tree");
  assert.ok(await page.isVisible("#filter"));
  assert.ok(await page.isVisible("#copy"));
  assert.deepEqual(faults, []);
  await close();
});

test("a click zooms, and the button goes back", async () => {
  const { page, close } = await open(write(dump(BLOCKS)));
  await page.locator(".frame", { hasText: "a::save" }).click();
  const names = async () => (await frames(page)).map((one) => one.split(": ")[0]);
  assert.deepEqual(await names(), ["1 all", "2 a::main", "3 a::save", "4 a::inner"]);
  const widths = await page.$$eval(".flame .frame", (all) => all.map((one) => one.clientWidth));
  assert.equal(new Set(widths).size, 1, "all the width");
  assert.equal(await page.locator(".frame.above").count(), 2);
  await page.locator(".frame", { hasText: "all" }).click();
  assert.equal((await names()).length, 7);
  await page.locator(".frame", { hasText: "a::save" }).click();
  await page.click("text=Zoom out");
  assert.equal((await names()).length, 7);
  await close();
});

test("the keyboard goes everywhere", async () => {
  const { page, close } = await open(write(dump(BLOCKS)));
  assert.equal(await page.evaluate(() => document.activeElement.className), "boxes", "the graph must have the keyboard focus at once");
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    return active(page);
  };
  assert.equal(await active(page), "all");
  assert.equal(await press("ArrowDown", "ArrowDown"), "a::load");
  assert.equal(await press("ArrowRight"), "a::save");
  assert.match(await about(page), /^a::save · .*18\.18%.* in 2 blocks$/);
  assert.equal(await page.getAttribute(".flame .boxes", "aria-activedescendant"), "active-frame");
  assert.equal(await press("ArrowRight"), "a::save", "the last frame stays active");
  assert.equal(await press("ArrowDown"), "a::inner");
  assert.equal(await press("ArrowLeft"), "b::inner");
  assert.equal(await press("ArrowUp", "Enter"), "a::load");
  assert.equal(await page.locator(".frame", { hasText: "a::save" }).count(), 0, "zoomed");
  assert.equal(await press("Escape"), "a::main");
  assert.equal(await press("Home"), "all");
  assert.equal(await page.locator(".frame", { hasText: "a::save" }).count(), 1);
  // Tab moves between the other controls and the graph.
  await page.focus(".flame input[type=search]");
  for (const wanted of ["checkbox", "button", ""]) {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.type ?? ""), wanted);
  }
  await close();
});

test("a search marks frames and shows their sum, each byte once", async () => {
  const recursive = { req: 100, stack: "x::g/a::Inner/x::g/a::Inner" };
  const { page, close } = await open(write(dump([...BLOCKS, recursive])));
  await page.setChecked("#verbose", true);
  await page.fill(".flame input[type=search]", "A::INNER");
  assert.equal(await page.textContent(".flame output"), "matched: 900 B (75.00%)");
  assert.equal(await page.locator(".frame.match").count(), 4);
  assert.equal(await page.locator(".frame.other").count(), (await frames(page)).length - 4);
  await page.fill(".flame input[type=search]", "nobody");
  assert.equal(await page.textContent(".flame output"), "matched: 0 B (0.00%)");
  await page.fill(".flame input[type=search]", "");
  assert.equal(await page.locator(".frame.match, .frame.other").count(), 0);
  await close();
});

test("inverted, the innermost frames come first", async () => {
  const { page, close } = await open(write(dump(BLOCKS)));
  await page.setChecked("#verbose", true);
  await page.setChecked(".flame input[type=checkbox]", true);
  assert.deepEqual(await frames(page), [
    "1 all: 1,100 B (100.00%) in 4 blocks",
    "2 a::inner: 800 B (72.73%) in 3 blocks",
    "2 b::inner: 300 B (27.27%) in 1 block",
    "3 a::load: 600 B (54.55%) in 1 block",
    "3 a::save: 200 B (18.18%) in 2 blocks",
    "3 a::load: 300 B (27.27%) in 1 block",
    "4 a::main: 600 B (54.55%) in 1 block",
    "4 a::main: 200 B (18.18%) in 2 blocks",
    "4 a::main: 300 B (27.27%) in 1 block",
  ]);
  await page.setChecked(".flame input[type=checkbox]", false);
  // Only the zoomed part is inverted.
  await page.locator(".frame", { hasText: "a::load" }).click();
  await page.setChecked(".flame input[type=checkbox]", true);
  assert.deepEqual((await frames(page)).map((one) => one.split(" B")[0]), [
    "1 a::load: 900",
    "2 a::inner: 600",
    "2 b::inner: 300",
  ]);
  await page.setChecked(".flame input[type=checkbox]", false);
  assert.equal((await frames(page))[2].split(" B")[0], "3 a::load: 900", "where it was");
  await close();
});

test("kinds and reporters are the outermost frames, and estimates are marked", async () => {
  const file = dump(
    [
      { req: 16, num: 3, stack: "a::f/a::main" },
      { req: 16, stack: "a::g/a::main" },
      { req: 16, num: 96 },
      { req: 4000, stack: ["a::f", "a::main"], reps: ["T0"] },
    ],
    { mode: "dark-matter" },
  );
  const { page, close } = await open(write(file));
  await page.setChecked("#verbose", true);
  const all = await frames(page);
  assert.equal(all[0], "1 all: 5,600 B (100.00%) in 101 blocks");
  assert.ok(all.includes("2 unreported: 1,600 B (28.57%) in 100 blocks"), all.join("\n"));
  assert.ok(all.includes("2 once-reported: 4,000 B (71.43%) in 1 block"), all.join("\n"));
  assert.ok(all.includes("3 reported by a::f: 4,000 B (71.43%) in 1 block"), all.join("\n"));
  assert.ok(all.includes("4 a::f: ~1,200 B (21.43%) in ~75 blocks"), all.join("\n"));
  assert.ok(all.includes("4 a::g: ~400 B (7.14%) in ~25 blocks"), all.join("\n"));
  await close();
});

test("bytes that floats cannot represent are exact", async () => {
  const req = 2 ** 53 - 1;
  const file = dump([
    { req, num: 5, stack: "a::f/a::main" },
    { req: 3, stack: "a::g/a::main" },
  ]);
  const { page, close } = await open(write(file));
  await page.setChecked("#verbose", true);
  const sum = (BigInt(req) * 5n + 3n).toLocaleString("en-US");
  assert.equal((await frames(page))[0], `1 all: ${sum} B (100.00%) in 6 blocks`);
  await page.setChecked(".flame input[type=checkbox]", true);
  assert.equal((await frames(page))[1], `2 a::f: ${(BigInt(req) * 5n).toLocaleString("en-US")} B (100.00%) in 5 blocks`);
  await close();
});

test("names of frames stay text", async () => {
  const evil = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\u202egnp.exe", "__proto__", "x".repeat(5000)];
  const { page, faults, close } = await open(write(dump(evil.map((name) => ({ req: 100, stack: [name, "constructor"] })))));
  const drawn = await page.$$eval(".flame .frame", (all) => all.map((one) => one.textContent));
  assert.ok(drawn.includes("<script>alert(1)</script>") && drawn.includes("\\u{202e}gnp.exe"), drawn.join("\n"));
  await page.fill(".flame input[type=search]", "<script>");
  assert.equal(await page.locator(".frame.match").count(), 1);
  await page.setChecked(".flame input[type=checkbox]", true);
  assert.equal(await page.$$eval("script, img", (all) => all.length), 1, "the page's own");
  assert.deepEqual(faults, []);
  await close();
});

test("an empty dump is an empty graph", async () => {
  const { page, faults, close } = await open(write(dump([])));
  assert.deepEqual(await frames(page), ["1 all: 0 B (0.00%) in 0 blocks"]);
  await page.setChecked(".flame input[type=checkbox]", true);
  await page.keyboard.press("ArrowDown");
  assert.deepEqual(faults, []);
  await close();
});

/** Writes a dump with this many blocks, and with a tenth as many stacks. */
function writeLarge(file, blocks) {
  const out = openSync(file, "w");
  const traces = Math.max(1, Math.round(blocks / 10));
  let parts = ['{"version":5,"invocation":{"dmdEnvVar":"1","mode":"live"},"blockList":[\n'];
  const flush = () => {
    writeSync(out, parts.join(""));
    parts = [];
  };
  const each = (count, line) => {
    for (let i = 0; i < count; i++) {
      parts.push(i > 0 ? ",\n" : "", line(i));
      if (parts.length > 50_000) flush();
    }
  };
  // Every fiftieth block is large, so a few stacks hold most bytes.
  each(blocks, (i) => `{"req":${16 + (i % 97) * 8 + (i % 50 === 0 ? 40_000 : 0)},"alloc":"T${i % traces}"}`);
  parts.push('],"traceTable":{\n');
  each(traces, (i) => `"T${i}":[${Array.from({ length: 20 }, (_, d) => `"F${d * 1000 + (Math.floor(i / 2 ** d) % 1000)}"`).join()}]`);
  parts.push('},"frameTable":{\n');
  each(20_000, (i) => `"F${i}":"#00: crate_${i % 37}::module::function_${i} (src/file_${i % 300}.rs:${i})"`);
  parts.push("}}\n");
  flush();
  closeSync(out);
}

test("two million blocks stay usable", { timeout: 600_000 }, async (t) => {
  const file = join(folder, "large-dump.json");
  writeLarge(file, Number(process.env.ABOUT_MEMORY_LARGE ?? 2_000_000));
  let start = performance.now();
  const say = (what) => {
    t.diagnostic(`${what}: ${Math.round(performance.now() - start)} ms`);
    start = performance.now();
  };
  const written = write(file);
  const size = statSync(written).size;
  say(`page written, ${(size / 1e6).toFixed(1)} MB`);
  assert.ok(size < 4e6, `${size} bytes`);
  const { page, faults, close } = await open(written);
  say("opened");
  const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok((await elements()) < 20_000);
  const all = await about(page);
  await page.fill(".flame input[type=search]", "(small)");
  assert.match(await page.textContent(".flame output"), /^matched: [1-9]/);
  start = performance.now();
  await page.fill(".flame input[type=search]", "crate_7::");
  say("searched");
  await page.setChecked(".flame input[type=checkbox]", true);
  say("inverted");
  assert.equal(await about(page), all, "nothing was lost");
  await page.focus(".flame .boxes");
  for (const key of ["ArrowDown", "Enter", "ArrowDown", "Enter", "Escape"]) await page.keyboard.press(key);
  say("zoomed");
  assert.ok((await elements()) < 20_000);
  assert.deepEqual(faults, []);
  await close();
});
