// The page of `about-memory serve` while its list of snapshots and reports changes, and while answers are slow.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { golden } from "./browser.mjs";
import { end, serve } from "./server.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
after(end);

const status = (page, text) => page.waitForFunction((text) => document.getElementById("status").textContent === text, text);
const focused = (page) => page.evaluate(() => document.activeElement.getAttribute("aria-label"));

test("a difference starts with an existing snapshot, and the focus stays in the list", async () => {
  const { page, faults, close, read } = await serve(heap("small-a.fxsnapshot"), heap("medium.fxsnapshot"), heap("small-b.fxsnapshot"));
  await read(3);
  const button = (place, text) => page.locator(`#side li:nth-child(${place}) button`, { hasText: text });
  await button(1, "Compare").focus();
  await page.keyboard.press("Enter");
  await status(page, "Select the snapshot to compare to the baseline.");
  assert.equal(await page.getAttribute("#status", "title"), "Select the snapshot to compare to the baseline.");
  assert.equal(await focused(page), "Compare two snapshots, the earlier first: 1. small-a");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Baseline");
  await page.keyboard.press("Enter");
  await status(page, "");
  assert.equal(await button(3, "Compare").count(), 1);
  // The list is created again when the server's events arrive.
  await page.keyboard.press("Enter");
  await button(3, "…with this").focus();
  await page.evaluate(() => document.querySelector("#side li:first-child button:last-of-type").click());
  await read(2);
  assert.equal(await focused(page), "Compare two snapshots, the earlier first: 3. small-b");
  assert.equal(await page.locator("#side button", { hasText: "…with this" }).count(), 0);
  await page.keyboard.press("Enter");
  await button(1, "…with this").click();
  await page.waitForFunction(() => location.hash === "#/diff/3/2");
  assert.deepEqual(faults, []);
  await close();
});

test("Ctrl with an arrow moves only between snapshots", async () => {
  const { page, faults, close, read, go } = await serve(heap("small-a.fxsnapshot"), heap("medium.fxsnapshot"), golden("firefox/diff.a.json"));
  await read(2);
  await go("#/memory/1/census?by=objectClass");
  assert.equal(await page.getAttribute(".table .list", "aria-activedescendant"), "row-0");
  await page.keyboard.press("Control+ArrowDown");
  await page.waitForFunction(() => location.hash === "#/memory/2/census?by=objectClass");
  await page.evaluate(() => (location.hash = "#/memory/2/census?by=objectClass&filter=Function"));
  await page.keyboard.press("Control+ArrowDown");
  assert.equal(new URL(page.url()).hash, "#/memory/2/census?by=objectClass&filter=Function");
  await page.evaluate(() => (location.hash = "#/report/1"));
  await page.waitForSelector(".row.heading");
  await page.keyboard.press("Control+ArrowDown");
  assert.match(new URL(page.url()).hash, /^#\/report\/1/);
  for (const gone of ["#/report/9", "#/stacks/9"]) {
    await page.evaluate((to) => (location.hash = to), gone);
    await page.waitForFunction(() => document.getElementById("main").textContent === "The server no longer has this file or measurement. Choose another one on the left.");
  }
  assert.deepEqual(faults, []);
  await close();
});

test("of two answers with the server's state, the answer to the later request is shown", async () => {
  const { page, faults, close } = await serve(golden("firefox/diff.a.json"), golden("firefox/diff.b.json"));
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  let asked = 0;
  await page.route("**/api/state", async (route) => {
    if (++asked > 1) return route.continue();
    const json = await (await route.fetch()).json();
    await held;
    await route.fulfill({ json: { ...json, reports: [] } });
  });
  await page.evaluate(() => (location.hash = "#/report/2"));
  await page.evaluate(() => (location.hash = "#/report/1"));
  const late = page.waitForResponse((response) => response.url().endsWith("/api/state") && asked === 2);
  await late;
  const old = page.waitForResponse((response) => response.url().endsWith("/api/state"));
  answer();
  await (await old).finished();
  await page.evaluate(() => new Promise((drawn) => setTimeout(drawn, 50)));
  assert.equal(await page.locator("#side a[href*='#/report/']").count(), 2);
  assert.deepEqual(faults, []);
  await close();
});

test("windows that the reader has scrolled past are not waited for", async () => {
  const { page, faults, close, read, go } = await serve(heap("medium.fxsnapshot"));
  await read(1);
  await go("#/memory/1/dominators");
  const total = await page.evaluate(() => Number(document.documentElement.dataset.rows));
  assert.ok(total > 1500, `${total} rows`);
  const starts = [];
  const ended = [];
  await page.route("**/api/query", async (route) => {
    const { rows } = route.request().postDataJSON();
    // A request for a node's paths has no rows.
    if (!rows) return route.continue();
    starts.push(rows.start);
    // The first request is never answered.
    if (starts.length > 1) await route.continue();
  });
  page.on("requestfailed", (request) => request.url().endsWith("/api/query") && ended.push(request.postDataJSON().rows?.start));
  const scroll = (row) => page.evaluate((part) => {
    const list = document.querySelector(".table .list");
    list.scrollTop = list.scrollHeight * part;
  }, row / total);
  await scroll(500);
  await page.waitForFunction(() => [...document.querySelectorAll(".table .row .branch")].some((one) => one.textContent === "…"));
  await scroll(total);
  await page.waitForSelector(`#row-${total - 1}`);
  assert.ok(ended.includes(starts[0]), `asked ${starts}, ended ${ended}`);
  assert.equal(await page.getAttribute("#status", "class"), "");
  assert.deepEqual(faults, []);
  await close();
});

test("an ended process keeps the cells of a new process with the same id unchanged", async () => {
  const { page, faults, close } = await serve();
  const process = { pid: 7, requests: [], started: 1, heap: 2048, resident: 3 * 1048576 };
  const ended = { pid: 7, name: "before", ended: true, recording: true, error: "has ended", resident: null, heap: null };
  await page.route("**/api/processes", (route) => route.fulfill({ json: { processes: [{ ...process, name: "after" }, ended] } }));
  const row = page.locator(".processes tr", { hasText: "after" });
  await row.waitFor();
  assert.match(await row.textContent(), /3\.00 MiB/);
  assert.deepEqual(faults, []);
  await close();
});
