// A report of a million entries opens, scrolls to its end, and is filtered.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask, folder, open, program, shown, text, write } from "./browser.mjs";
import { writeSynthetic } from "./synthetic.mjs";

const REPORTS = Number(process.env.ABOUT_MEMORY_LARGE ?? 1_000_000);
const clock = () => performance.now();

test("a million reports", { timeout: 600_000 }, async (t) => {
  const file = join(folder, "large.json");
  writeSynthetic(file, REPORTS);
  let start = clock();
  const say = (what) => {
    t.diagnostic(`${what}: ${Math.round(clock() - start)} ms`);
    start = clock();
  };
  const written = write(file);
  say(`page written, ${(statSync(written).size / 1e6).toFixed(1)} MB`);
  const { page, faults, close } = await open(written);
  say("opened");
  const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
  assert.ok((await elements()) < 1000, "only visible rows have elements");

  start = clock();
  await ask(page, { verbose: true });
  say("everything open");
  const rows = REPORTS + 100;
  assert.ok((await page.evaluate(() => document.querySelector(".spacer").offsetHeight)) > 0);

  const list = await page.$(".list");
  await list.focus();
  await page.keyboard.press("End");
  const last = await shown(page);
  assert.match(last[last.length - 1], /^End of web \(pid \d+\)$/);
  const number = await page.$$eval(".row", (all) => Number(all[all.length - 1].dataset.row));
  assert.ok(number > rows, `${number} rows`);
  say("end");

  await page.keyboard.press("Home");
  assert.match((await shown(page))[0], /^Total resident memory/);
  // Drags the scroll bar to the middle, then to the end.
  const drag = (part) =>
    page.evaluate((part) => {
      const list = document.querySelector(".list");
      list.scrollTop = list.scrollHeight * part;
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }, part);
  const first = () => page.$eval(".row", (row) => Number(row.dataset.row));
  await drag(0.5);
  assert.ok(Math.abs((await first()) / number - 0.5) < 0.01, `row ${await first()} of ${number}`);
  // A step of the wheel moves by its own distance, no matter how many rows a pixel of the bar covers.
  const before = await first();
  await page.mouse.move(600, 500);
  await page.mouse.wheel(0, 180);
  await page.waitForFunction((row) => Number(document.querySelector(".row").dataset.row) > row, before);
  await page.waitForTimeout(500);
  const moved = (await first()) - before;
  assert.ok(moved >= 9 && moved <= 11, `${moved} rows`);
  await drag(1);
  assert.match((await shown(page)).at(-1), /^End of web/);
  assert.ok((await elements()) < 1000);

  start = clock();
  await ask(page, { filter: "/gfx/images/" });
  await shown(page);
  say("filtered");
  await ask(page, { filter: "gfx.*object-z", regex: true });
  await shown(page);
  say("filtered by a regular expression");
  const [ours, expected] = [
    await text(page),
    execFileSync(program, [
      ...["show", file, "--filter", "gfx.*object-z", "--regex"],
    ]).toString(),
  ];
  assert.equal(ours, expected);
  assert.deepEqual(faults, []);
  await close();
});
