// Recordings and changes: each view shows the selected part of the time. The expected figures follow from the script
// that wrote the recordings, tests/suite/heap_pages.rs.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder, golden, open, program } from "./browser.mjs";

const [before, after] = ["before", "after"].map((name) => golden(`heap/${name}.dmdrec`));
let pages = 0;

/** Writes a page without symbols. */
function write(...files) {
  const page = join(folder, `heap-${pages++}.html`);
  execFileSync(program, ["html", "--no-fix-stacks", ...files, "-o", page]);
  return page;
}

/** Waits until the page shows the selection. */
const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const sum = async (page) => {
  await settled(page);
  return page.textContent(".time .sum");
};
const rows = async (page) => {
  await settled(page);
  return page.$$eval(".table .row", (all) => all.map((one) => [...one.children].map((cell) => cell.textContent).join(" ")));
};
const frames = (page) =>
  page.$$eval(".flame .frame", (all) => all.map((one) => one.getAttribute("aria-label").replace("\n", ": ").replaceAll("???[/app/server ", "[")));

/** Drags over the chart, from one share of the time to another. */
async function drag(page, from, to) {
  const { x, y, width, height } = await page.locator(".time .chart").boundingBox();
  // The border is not a part of the time axis.
  const at = (share) => x + 1 + share * (width - 2);
  await page.mouse.move(at(from), y + height / 2);
  await page.mouse.down();
  await page.mouse.move(at((from + to) / 2), y + height / 2);
  await page.mouse.move(at(to), y + height / 2);
  await page.mouse.up();
}

async function opened(...files) {
  const result = await open(write(...files));
  await result.page.setChecked("#verbose", true);
  await result.page.click("#tab-table");
  return result;
}

test("a recording first shows its peak", async () => {
  const { page, faults, close } = await opened(before);
  assert.deepEqual(await page.$$eval("#tabs button", (all) => all.map((one) => one.textContent)), ["Summary", "Table", "Treemap", "Flame graph", "Call tree", "Callers"]);
  assert.equal(await sum(page), "16,000,000 B in 9 blocks alive at 0.600 s");
  assert.deepEqual(await rows(page), [
    "8,000,000 B 50.00% 1 server+0x300",
    "4,000,000 B 25.00% 1 server+0x110",
    "3,000,000 B 18.75% 6 server+0x220",
    "1,000,000 B 6.25% 1 server+0x210",
  ]);
  assert.equal(await page.textContent(".time .axis"), "0 slive, at most 15.26 MiBallocated, at most 1.68 GiB a secondpeak at 0.600 s1.000 s");
  for (const hidden of ["#processes", "#expand", "#hide-tiny"]) assert.ok(await page.isHidden(hidden), hidden);
  assert.deepEqual(faults, []);
  await close();
});

test("a range selects what was allocated in it", async () => {
  const { page, faults, close } = await opened(before);
  await drag(page, 0.3, 0.5);
  // At 0.5 s the fifth request is alive, and the cache contains the blocks of 0.352 s and 0.452 s.
  assert.equal(await sum(page), "2,000,000 B in 3 blocks allocated from 0.300 s to 0.500 s and alive at 0.500 s");
  assert.deepEqual(await rows(page), ["1,000,000 B 50.00% 1 server+0x210", "1,000,000 B 50.00% 2 server+0x220"]);
  await page.check("input[value=allocated]");
  assert.equal(await sum(page), "3,000,000 B in 4 blocks allocated from 0.300 s to 0.500 s");
  await page.check("input[value=alive]");
  assert.equal(await sum(page), "7,500,000 B in 7 blocks alive at 0.500 s");
  assert.ok(await page.isHidden(".time .slider >> nth=0"), "one time has one slider");
  // A drag near a slider moves it.
  await page.check("input[value=kept]");
  await drag(page, 0.5, 0.7);
  assert.equal(await sum(page), "3,000,000 B in 5 blocks allocated from 0.300 s to 0.700 s and alive at 0.700 s");
  await drag(page, 0.9, 0.8);
  assert.equal(await sum(page), "500,000 B in 1 block allocated from 0.800 s to 0.900 s and alive at 0.900 s");
  assert.deepEqual(faults, []);
  await close();
});

test("a click shows one time, and buttons show the peak, the end and the whole", async () => {
  const { page, close } = await opened(before);
  const { x, y, width, height } = await page.locator(".time .chart").boundingBox();
  await page.mouse.click(x + 1 + 0.2 * (width - 2), y + height / 2);
  assert.equal(await sum(page), "6,000,000 B in 4 blocks alive at 0.200 s");
  await page.click("#time-end");
  assert.equal(await sum(page), "9,000,001 B in 12 blocks alive at 1.000 s");
  await page.click("#time-whole");
  assert.equal(await sum(page), "9,000,001 B in 12 blocks allocated from 0.000 s to 1.000 s and alive at 1.000 s");
  await page.check("input[value=allocated]");
  assert.equal(await sum(page), "25,000,001 B in 21 blocks allocated from 0.000 s to 1.000 s");
  await page.click("#time-peak");
  assert.equal(await sum(page), "16,000,000 B in 9 blocks alive at 0.600 s");
  await close();
});

test("the keyboard moves both ends", async () => {
  const { page, close } = await opened(before);
  const [start, end] = [0, 1].map((nth) => page.locator(".time .slider").nth(nth));
  await end.focus();
  await page.keyboard.press("PageUp");
  assert.equal(await sum(page), "7,000,000 B in 7 blocks alive at 0.650 s");
  assert.equal(await end.getAttribute("aria-valuetext"), "0.650 s");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await sum(page), "16,000,000 B in 9 blocks alive at 0.645 s");
  await page.keyboard.press("End");
  await page.check("input[value=kept]");
  await start.focus();
  for (const key of ["Home", "PageUp", "PageUp", "ArrowRight"]) await page.keyboard.press(key);
  assert.equal(await start.getAttribute("aria-valuetext"), "0.105 s");
  assert.equal(await sum(page), "4,500,001 B in 10 blocks allocated from 0.105 s to 1.000 s and alive at 1.000 s");
  // The ends cannot cross.
  await page.keyboard.press("End");
  assert.equal(await start.getAttribute("aria-valuetext"), "0.995 s");
  await end.focus();
  await page.keyboard.press("Home");
  assert.equal(await end.getAttribute("aria-valuetext"), "1.000 s");
  await close();
});

test("each view follows the range", async () => {
  const { page, faults, close } = await opened(before);
  await page.click("#tab-flame");
  await settled(page);
  assert.deepEqual(await frames(page), [
    "all: 16,000,000 B (100.00%) in 9 blocks",
    "[+0x100]: 16,000,000 B (100.00%) in 9 blocks",
    "[+0x300]: 8,000,000 B (50.00%) in 1 block",
    "[+0x200]: 4,000,000 B (25.00%) in 7 blocks",
    "[+0x110]: 4,000,000 B (25.00%) in 1 block",
    "[+0x220]: 3,000,000 B (18.75%) in 6 blocks",
    "[+0x210]: 1,000,000 B (6.25%) in 1 block",
  ]);
  // A zoomed frame stays zoomed as long as it exists.
  await page.locator(".frame", { hasText: "0x200]" }).click();
  await drag(page, 0.3, 0.5);
  await settled(page);
  assert.deepEqual((await frames(page)).map((one) => one.split(" (")[0]), [
    "all: 2,000,000 B",
    "[+0x100]: 2,000,000 B",
    "[+0x200]: 2,000,000 B",
    "[+0x220]: 1,000,000 B",
    "[+0x210]: 1,000,000 B",
  ]);
  assert.equal(await page.locator(".frame.above").count(), 2);
  await page.setChecked(".flame input[type=checkbox]", true);
  await page.click("#time-end");
  await settled(page);
  assert.equal((await frames(page))[0].split(" (")[0], "[+0x200]: 5,000,000 B", "still inverted");
  await page.click("#tab-treemap");
  await settled(page);
  const boxes = () => page.$$eval(".treemap .box", (all) => all.map((one) => one.title.split("\n")).map(([name, amount]) => `${name} ${amount.split(",").slice(0, -1)}`));
  assert.deepEqual((await boxes()).filter((box) => box.includes("0x")), [
    "heap by crate/server/server+0x220 5,000,000 B",
    "heap by crate/server/server+0x110 4,000,001 B",
  ]);
  await drag(page, 0.3, 0.5);
  await settled(page);
  assert.equal((await boxes())[0], "heap by crate/server 2,000,000 B");
  await page.selectOption(".treemap select", "heap by type");
  assert.match((await boxes())[0], /^heap by type\//);
  assert.deepEqual(faults, []);
  await close();
});

test("the table has sites, types and crates, and sorts and filters them", async () => {
  const { page, close } = await opened(before);
  await page.selectOption(".table select", "2");
  assert.deepEqual(await rows(page), ["16,000,000 B 100.00% 9 server"]);
  await page.selectOption(".table select", "0");
  await page.click(".table .head button:has-text('blocks')");
  assert.match((await rows(page))[0], /0x220/);
  await page.click(".table .head button:has-text('name')");
  assert.deepEqual((await rows(page)).map((row) => row.slice(-3)), ["110", "210", "220", "300"]);
  await page.click(".table .head button:has-text('name')");
  assert.deepEqual((await rows(page)).map((row) => row.slice(-3)), ["300", "220", "210", "110"]);
  assert.equal(await page.getAttribute(".table .head .name", "aria-sort"), "descending");
  await page.fill("#filter", "x2");
  await page.dispatchEvent("#filter", "change");
  assert.deepEqual((await rows(page)).map((row) => row.slice(-3)), ["220", "210"]);
  assert.equal(await page.textContent(".table .about"), "2 rows");
  await page.focus(".table .list");
  await page.keyboard.press("ArrowDown");
  assert.match(await page.textContent(".table .row.active"), /0x210/);
  await close();
});

test("a change has both sides, in a table and as a flame graph", async () => {
  const { page, faults, close } = await opened(before, after, "--at", "peak");
  assert.equal(await page.locator(".time").count(), 0);
  assert.match(await page.textContent(".above .notes"), /^before: .*before\.dmdrec · after: .*after\.dmdrec$/);
  assert.equal((await rows(page)).length, 4, "rows with a change");
  await page.selectOption("select[aria-label='Changes']", "all");
  assert.deepEqual(await rows(page), [
    "-8,000,000 B 8,000,000 B 0 B -1 server+0x300",
    "+8,000,000 B 0 B 8,000,000 B +1 server+0x310",
    "-1,000,000 B 4,000,000 B 3,000,000 B 0 server+0x110",
    "+600,000 B 3,000,000 B 3,600,000 B 0 server+0x220",
    "0 B 1,000,000 B 1,000,000 B 0 server+0x210",
  ]);
  await page.click("#tab-flame");
  const all = await frames(page);
  assert.equal(all[0], "all: -400,000 B: from 16,000,000 B to 15,600,000 B, 9 to 9 blocks");
  assert.ok(all.includes("[+0x310]: +8,000,000 B: from 0 B to 8,000,000 B, 0 to 1 blocks"), all.join("\n"));
  // The width of each stack shows the larger of its two amounts: before or after.
  const widths = Object.fromEntries(
    await page.$$eval(".flame .frame", (all) => all.map((one) => [one.textContent.replace(/.*\+(0x\w+)\]$/, "$1"), one.getBoundingClientRect().width])),
  );
  const unit = widths["− all"] / 24.6;
  for (const [name, millions] of Object.entries({ "0x300": 8, "0x310": 8, "0x110": 4, "0x200": 4.6 })) {
    assert.ok(Math.abs(widths[name] / unit - millions) < 0.02, `${name}: ${widths[name] / unit}`);
  }
  const classes = await page.$$eval(".flame .frame", (all) => all.map((one) => `${one.className.split(" ")[1]} ${one.textContent.slice(-6, -1)}`));
  for (const wanted of ["shrunk3 0x300", "grown3 0x310", "shrunk2 0x110", "grown2 0x220", "same 0x210"]) {
    assert.ok(classes.includes(wanted), `${wanted} in ${classes}`);
  }
  await page.fill(".flame input[type=search]", "0x3");
  assert.equal(await page.textContent(".flame output"), "matched: 0 B");
  await page.fill(".flame input[type=search]", "");
  await page.setChecked(".flame input[type=checkbox]", true);
  const inverted = await frames(page);
  assert.ok(inverted.includes("[+0x300]: -8,000,000 B: from 8,000,000 B to 0 B, 1 to 0 blocks"), inverted.join("\n"));
  await page.click("#tab-treemap");
  assert.equal(await page.locator(".treemap .shrink").count() > 0, true);
  assert.deepEqual(faults, []);
  await close();
});

test("names stay text", async () => {
  const evil = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\u202egnp.exe", "__proto__"];
  const dump = (name, req) => {
    const file = join(folder, name);
    const frameTable = Object.fromEntries(evil.map((name, i) => [`F${i}`, `#00: ${name} (src/lib.rs:1)`]));
    const traceTable = Object.fromEntries(evil.map((_, i) => [`T${i}`, [`F${i}`]]));
    const blockList = evil.map((_, i) => ({ req, alloc: `T${i}` }));
    writeFileSync(file, JSON.stringify({ version: 5, invocation: { dmdEnvVar: "1", mode: "live" }, blockList, traceTable, frameTable }));
    return file;
  };
  const { page, faults, close } = await opened(dump("evil-1.json", 10), dump("evil-2.json", 30));
  for (const tab of ["table", "treemap", "flame"]) await page.click(`#tab-${tab}`);
  const drawn = await page.$$eval(".flame .frame", (all) => all.map((one) => one.textContent));
  assert.ok(drawn.includes("+ <script>alert(1)</script>") && drawn.some((name) => name.includes("\\u{202e}gnp")), drawn.join("\n"));
  assert.equal(await page.$$eval("script, img", (all) => all.length), 1, "the page's own");
  assert.deepEqual(faults, []);
  await close();
});

test("the page without data is small", () => {
  const size = statSync(write(before)).size;
  assert.ok(size < 118_000, `${size} bytes`);
});

test("a recording opens on its summary, and each row of the summary opens its stacks", async () => {
  const { page, faults, close } = await open(write(before));
  assert.equal(await page.textContent(".summary .size"), "15.26 MiB in 9 blocks");
  assert.match(await page.textContent(".summary .what"), /^server\+0x300 allocated the most: 7\.63 MiB, 50\.00% of the heap, in 1 block\./);
  assert.match(await page.textContent(".summary .facts"), /^Peak: 15\.26 MiB in 9 blocks, 0\.60 s after the start\.\nEnd: {2}8\.58 MiB/);
  const sites = () => page.$$eval(".summary section:nth-of-type(1) li button", (all) => all.map((one) => [...one.children].map((cell) => cell.textContent).join(" ").trim()));
  assert.deepEqual(await sites(), ["7.63 MiB 50.00% server+0x300", "3.81 MiB 25.00% server+0x110", "2.86 MiB 18.75% server+0x220", "976.56 KiB 6.25% server+0x210"]);
  // The summary shows the blocks of the chosen range.
  await drag(page, 0.3, 0.5);
  await settled(page);
  assert.equal(await page.textContent(".summary .size"), "1.91 MiB in 3 blocks");
  await page.click("#time-peak");
  await settled(page);
  await page.click(".summary li button:has-text('0x220')");
  assert.equal(await page.getAttribute("#tab-table", "aria-selected"), "true");
  assert.match(await page.textContent(".table .row.active"), /0x220/);
  // The holder has one stack, so its frames are visible, the innermost first.
  const frames = await page.$$eval(".table .row.frame .name", (all) => all.map((one) => one.textContent.replaceAll("???[/app/server ", "[")));
  assert.deepEqual(frames, ["[+0x220]", "[+0x200]", "[+0x100]"]);
  await page.click(".table .actions button:has-text('Callers')");
  assert.match(await page.textContent(".callers h2"), /0x220\]/);
  await page.click("#tab-table");
  await page.click(".table .actions button:has-text('Flame graph')");
  assert.match(await page.textContent(".flame .about"), /0x220\] · 2\.86 MiB \(18\.75%\) in 6 blocks/);
  assert.deepEqual(faults, []);
  await close();
});

test("the keyboard opens the rows of the table", async () => {
  const { page, close } = await opened(before);
  await page.focus(".table .list");
  const kinds = () => page.$$eval(".table .row", (all) => all.map((one) => one.classList[1]).join(" "));
  await page.keyboard.press("ArrowRight");
  assert.equal(await kinds(), "holder stack frame frame holder holder holder");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  // Left leads to the row around the frame, and then closes the holder.
  for (const key of ["ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
  assert.equal(await page.getAttribute(".table .row.active", "aria-level"), "1");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await kinds(), "holder holder holder holder");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute(".table .row.active", "aria-expanded"), "true");
  await close();
});

test("a change opens on what grew", async () => {
  const { page, close } = await open(write(before, after, "--at", "peak"));
  assert.equal(await page.textContent(".summary .size"), "-390.63 KiB from 15.26 MiB to 14.88 MiB");
  assert.match(await page.textContent(".summary .what"), /^server\+0x300 shrank most: -7\.63 MiB, from 7\.63 MiB to 0 B\.$/);
  const sites = await page.$$eval(".summary section:nth-of-type(1) li .cell:first-child", (all) => all.map((one) => one.textContent));
  assert.deepEqual(sites, ["-7.63 MiB", "+7.63 MiB", "-976.56 KiB", "+585.94 KiB"]);
  await close();
});
