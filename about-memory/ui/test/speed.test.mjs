// The cost of the page: no long task while a reader scrolls a large heap, and little work for each update of a live
// report. Figures are processor time of the page's main thread, so that other work on the machine does not count. The
// output contains the figures. If ABOUT_MEMORY_BIG names a heap snapshot, the first test scrolls that snapshot.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { after, test } from "node:test";
import { golden } from "./browser.mjs";
import { pretend } from "./process.mjs";
import { end, serve } from "./server.mjs";

/** `./test` runs no timings. */
const skip = process.env.THOROUGH ? false : "timings: THOROUGH=1";

/** The time of a loop in the page, in milliseconds, on a machine where an update of 5,072 reports costs about 10. */
const LOOP = 150;

after(end);

/** Writes a heap snapshot: a root with many lists, each with some strings. */
function snapshot(file, lists) {
  const number = (value) => {
    const bytes = [];
    for (let left = value; ; left = Math.floor(left / 128)) {
      if (left < 128) return [...bytes, left];
      bytes.push((left % 128) + 128);
    }
  };
  const field = (tag, value) => [...number(tag * 8), ...number(value)];
  const bytes = (tag, content) => [...number(tag * 8 + 2), ...number(content.length), ...content];
  const parts = [];
  const message = (content) => parts.push(Buffer.from([...number(content.length), ...content]));
  const names = new Map();
  const name = (text) => {
    if (names.has(text)) return field(3, names.get(text));
    names.set(text, names.size);
    return bytes(2, [...Buffer.from(text, "utf16le")]);
  };
  message(field(1, 1_700_000_000_000_000));
  const edge = (to) => bytes(5, field(1, to));
  const id = (list, string = 0) => 16 + list * 16 + string;
  message([...field(1, 8), ...name("Root"), ...field(4, 1), ...Array.from({ length: lists }, (_, list) => edge(id(list))).flat()]);
  for (let list = 0; list < lists; list++) {
    message([...field(1, id(list)), ...name(`List${list % 5000}`), ...field(4, 24 + (list % 1000)), ...edge(id(list, 1)), ...edge(id(list, 2))]);
    for (const string of [1, 2]) message([...field(1, id(list, string)), ...name("String"), ...field(4, 32)]);
  }
  writeFileSync(file, gzipSync(Buffer.concat(parts), { level: 1 }));
}

/** Traces the page while `run` runs. Returns the processor time of each task of its main thread, in milliseconds. */
async function tasks(page, run) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const complete = new Promise((done) => session.once("Tracing.tracingComplete", done));
  await session.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["disabled-by-default-devtools.timeline", "devtools.timeline"] } });
  await page.evaluate(() => console.timeStamp("begin"));
  await run();
  await session.send("Tracing.end");
  await complete;
  const mains = new Map();
  for (const { name, args, pid, tid } of events) if (name === "thread_name" && args.name === "CrRendererMain") mains.set(`${pid} ${tid}`, 0);
  const all = events.filter(({ name, pid, tid }) => name === "RunTask" && mains.has(`${pid} ${tid}`));
  // Other renderers are idle, so the page's renderer is the busiest.
  for (const { pid, tid, tdur } of all) mains.set(`${pid} ${tid}`, mains.get(`${pid} ${tid}`) + (tdur ?? 0));
  const [busiest] = [...mains].sort(([, a], [, b]) => b - a)[0];
  await session.detach();
  return all.filter(({ pid, tid }) => `${pid} ${tid}` === busiest).map(({ tdur }) => (tdur ?? 0) / 1000);
}

test("no task of the page takes 50 ms while a large heap scrolls", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "speed-"));
  let file = process.env.ABOUT_MEMORY_BIG;
  if (!file) snapshot((file = join(folder, "many.fxsnapshot")), 60_000);
  const { page, faults, close, read, go } = await serve(file);
  await page.waitForFunction(() => document.querySelector("#side li a, #side li .error"), null, { timeout: 120_000 });
  await read(1);
  for (const [title, hash] of [["dominators", "#/memory/1/dominators"], ["census", "#/memory/1/census?by=internalType"]]) {
    await go(hash);
    await page.waitForSelector(".table .row .name");
    const total = await page.evaluate(() => Number(document.documentElement.dataset.rows));
    let frames = [];
    const found = await tasks(page, async () => {
      const box = await page.locator(".table .list").boundingBox();
      await page.mouse.move(box.x + 100, box.y + 100);
      await page.evaluate(() => {
        window.frames_ = [];
        const frame = (time) => window.frames_ && (window.frames_.push(time), requestAnimationFrame(frame));
        requestAnimationFrame(frame);
      });
      // Two seconds of scrolling with the wheel, then jumps as with the scroll bar.
      for (let turn = 0; turn < 120; turn++) {
        await page.mouse.wheel(0, 400);
        await page.waitForTimeout(8);
      }
      for (const part of [0.9, 0.1, 0.5, 0.2, 0.7]) {
        await page.evaluate((part) => {
          const list = document.querySelector(".table .list");
          list.scrollTop = part * list.scrollHeight;
        }, part);
        await page.waitForTimeout(100);
      }
      frames = await page.evaluate(() => {
        const all = window.frames_;
        window.frames_ = null;
        return all;
      });
    });
    const gaps = frames.slice(1).map((time, at) => time - frames[at]).sort((a, b) => a - b);
    const longest = Math.max(...found);
    t.diagnostic(`${title}: ${total} rows, ${found.length} tasks, the longest ${longest.toFixed(1)} ms; frames ${gaps[gaps.length >> 1].toFixed(1)} ms apart (median), ${gaps[Math.floor(gaps.length * 0.95)].toFixed(1)} ms (95 %)`);
    assert.ok(found.length > 50 && longest > 0);
    assert.ok(longest < 50, `${title}: ${longest} ms`);
    // The page has elements only for visible rows.
    assert.ok((await page.$$eval("*", (all) => all.length)) < 3000);
    if (title === "dominators") assert.ok(total >= 5_000, String(total));
  }
  assert.deepEqual(faults, []);
  await close();
  rmSync(folder, { recursive: true });
});

test("an update of a live report of 5,000 rows costs the page little, and its process only the reports", { skip }, async (t) => {
  // An imitated process that answers with a real report.
  const set = JSON.parse(gunzipSync(readFileSync(golden("firefox/sample.json.gz"))));
  let grown = 0;
  const reports = () => {
    grown += 4096;
    const reports = set.reports.map((report, at) => (at % 7 === 0 && report.units === 0 ? { ...report, amount: report.amount + grown } : report));
    return { ...set, reports };
  };
  const { page, faults, close, asked } = await pretend("large", reports, serve);
  await page.locator(".processes tr", { hasText: String(process.pid) }).getByText("Measure", { exact: true }).click();
  await page.waitForSelector("#live");
  await page.check("#live");
  const looks = () => page.evaluate(() => Number(document.getElementById("main").dataset.looks ?? 0));
  const until = (count) => page.waitForFunction((count) => Number(document.getElementById("main").dataset.looks) >= count, count, { timeout: 60_000 });
  await until(3); // the browser has compiled the code by then
  const before = new Map(asked);
  const first = await looks();
  const costs = [];
  let longest = 0;
  for (let turn = 0; turn < 3; turn++) {
    const from = await looks();
    // The test sends the page no commands in this time.
    const found = await tasks(page, () => page.waitForTimeout(3_000));
    const renewed = (await looks()) - from;
    assert.ok(renewed > 0);
    costs.push(found.reduce((sum, task) => sum + task, 0) / renewed);
    longest = Math.max(longest, ...found);
  }
  const loop = await page.evaluate(() => {
    const from = performance.now();
    for (let turn = 0, sum = 1; turn < 3e7; turn++) if ((sum = (sum * 31 + turn) | 0) === 7.5) throw sum;
    return performance.now() - from;
  });
  const renewed = (await looks()) - first;
  const measured = asked.get("report") - before.get("report");
  // The browser's work for a page that does not change.
  await page.uncheck("#live");
  await page.waitForTimeout(500);
  const still = (await tasks(page, () => page.waitForTimeout(3_000))).reduce((sum, task) => sum + task, 0) / 3;
  t.diagnostic(`a still page: ${still.toFixed(1)} ms each second`);
  t.diagnostic(`${set.reports.length} reports: ${costs.map((cost) => cost.toFixed(1)).join(", ")} ms of the page for each look, the longest task ${longest.toFixed(1)} ms; the loop ${loop.toFixed(1)} ms`);
  assert.ok(set.reports.length > 5_000);
  // The figure is about 10 ms on an idle machine. A machine that is slower now needs proportionally longer for a loop.
  const least = Math.min(...costs);
  const slower = Math.max(1, loop / LOOP);
  assert.ok(least > 0 && least < 20 * slower, `${least} ms, the loop ${loop} ms`);
  // The page requests only reports from the process.
  assert.equal(asked.get("hello"), before.get("hello"));
  assert.equal(asked.get("amounts"), before.get("amounts"));
  assert.ok(measured >= renewed && measured <= renewed + 2, `${measured} ${renewed}`);
  assert.deepEqual(faults, []);
  await close();
});
