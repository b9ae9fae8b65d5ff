// The start page: the card of a process, the list of many processes, the token, and the page on a narrow screen.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { golden, newPage } from "./browser.mjs";
import { end, serve } from "./server.mjs";

after(end);

const MIB = 1 << 20;
const server = {
  pid: 7, name: "server", exe: "/bin/server", started: 1_700_000_000, requests: ["dmd-dump", "dmd-track"], recording: false,
  resident: 60 * MIB, heap: 20 * MIB, limit: 240 * MIB, unclassified: [5 * MIB, 20 * MIB], explicit: 20 * MIB,
  largest: [["cache/entries", 10 * MIB], ["heap-unclassified", 5 * MIB], ["index", 4 * MIB]], report: 1,
};

/** Lets the server's list contain these processes. `change` returns the list of each request. */
async function listing(page, change) {
  let asked = 0;
  await page.route("**/api/processes", (route) => route.fulfill({ json: { processes: change(asked++) } }));
}

test("a process is a card with its figures, its largest parts and what to do", async () => {
  const { page, faults, close } = await serve();
  await listing(page, () => [server]);
  await page.waitForSelector(".card");
  const figures = await page.$$eval(".card dl > div", (all) => all.map((one) => [...one.children].map((part) => part.textContent).join(": ")));
  assert.deepEqual(figures, ["Resident: 60.00 MiB", "Heap: 20.00 MiB", "Unclassified: 25.00%", "Limit: 240.00 MiB, 25.00% resident"]);
  const parts = await page.$$eval(".card li", (all) => all.map((one) => [...one.children].map((part) => part.textContent).join(" ").trim()));
  assert.deepEqual(parts, ["10.00 MiB 50.00% cache/entries", "5.00 MiB 25.00% heap-unclassified", "4.00 MiB 20.00% index"]);
  assert.match(await page.textContent(".card .advice"), /^No reporter covers 25\.00% of the memory: take its stacks to see the code that allocated it\.$/);
  // One main button; the menu has the other actions.
  const row = page.locator(".processes tr").nth(1);
  assert.deepEqual(await row.locator("button.primary").allInnerTexts(), ["Measure"]);
  assert.ok(await row.getByText("Stacks", { exact: true }).isHidden());
  await row.locator(".menu summary").click();
  assert.ok(await row.getByText("Stacks", { exact: true }).isVisible());
  await page.keyboard.press("Escape");
  assert.ok(await row.getByText("Stacks", { exact: true }).isHidden());
  await page.click(".processes button.name");
  assert.equal(await page.locator(".card").count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("the advice of a card follows the figures", async () => {
  const { page, close } = await serve();
  let shown = server;
  await listing(page, () => [shown]);
  const says = (text) => page.waitForFunction((text) => new RegExp(text).test(document.querySelector(".card .advice")?.textContent), text.source);
  await says(/^No reporter covers/);
  shown = { ...server, unclassified: [MIB, 20 * MIB] };
  await says(/^cache\/entries holds 50\.00%: open the report/);
  shown = { ...server, resident: 230 * MIB };
  await says(/^The resident memory is 95\.83% of the limit of the process's control group/);
  shown = { ...server, largest: null, explicit: null, unclassified: null, report: null };
  await says(/^Measure the process/);
  await close();
});

test("the chart of a card shows times under the pointer, and a range by drag and by key", async () => {
  const { page, faults, close } = await serve();
  await listing(page, (asked) => [{ ...server, resident: (60 + 3 * Math.min(asked, 2)) * MIB }]);
  // The page asks every two seconds.
  await page.waitForFunction(() => document.querySelector(".live-chart .resident[points]")?.getAttribute("points").split(" ").length > 2, null, { timeout: 20_000 });
  const about = () => page.textContent(".live-chart .about");
  const { x, y, width, height } = await page.locator(".live-chart .plot").boundingBox();
  await page.mouse.move(x + 3, y + height / 2);
  assert.match(await about(), /: resident 60\.00 MiB, heap 20\.00 MiB$/);
  await page.mouse.down();
  await page.mouse.move(x + width - 3, y + height / 2, { steps: 4 });
  await page.mouse.up();
  assert.match(await about(), /^\d+ s from .*: resident \+6\.00 MiB, heap \+0 B$/);
  const buttons = await page.$$eval(".of-range button", (all) => all.map((one) => [one.textContent.replace(/\d+/, "N"), one.disabled]));
  assert.deepEqual(buttons, [["Compare the measurements", true], ["Record the next N s", false]]);
  await page.focus(".live-chart .plot");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".of-range button").count(), 0);
  await page.keyboard.press("Home");
  assert.match(await about(), /: resident 60\.00 MiB/);
  await page.keyboard.press("Shift+ArrowRight");
  assert.match(await about(), /^\d+ s from .*: resident \+3\.00 MiB/);
  assert.deepEqual(faults, []);
  await close();
});

test("many processes are rows that sort and filter", async () => {
  const { page, faults, close } = await serve();
  const all = [["b", 1], ["c", 3], ["a", 2]].map(([name, size], at) => ({ ...server, pid: 10 + at, name, resident: size * MIB }));
  await listing(page, () => all);
  const names = () => page.$$eval(".processes button.name", (all) => all.map((one) => one.textContent).join(" "));
  // The first list may be the one of this machine.
  await page.waitForFunction(() => [...document.querySelectorAll(".processes button.name")].map((one) => one.textContent).join(" ") === "b c a");
  assert.equal(await page.locator(".card").count(), 0, "only a single process opens by itself");
  await page.click(".processes th button:has-text('Resident')");
  assert.equal(await names(), "c a b");
  await page.click(".processes th button:has-text('Process')");
  assert.equal(await names(), "a b c");
  await page.keyboard.press("Enter");
  assert.equal(await names(), "c b a");
  assert.equal(await page.getAttribute(".processes th >> nth=0", "aria-sort"), "descending");
  await page.fill("#filter", "12");
  await page.waitForFunction(() => document.querySelectorAll(".processes button.name").length === 1);
  assert.equal(await names(), "a");
  await page.waitForFunction(() => document.activeElement?.id === "filter" && document.activeElement.value === "12");
  await page.fill("#filter", "none");
  await page.waitForFunction(() => document.querySelector(".processes").textContent.includes("No process passes the filter."));
  assert.deepEqual(faults, []);
  await close();
});

test("the filter, a sort and a card add no samples", async () => {
  const { page, close } = await serve();
  let asked = 0;
  await listing(page, (at) => {
    asked = at + 1;
    return [{ ...server, pid: 10, name: "one" }, { ...server, pid: 11, name: "two" }];
  });
  await page.waitForSelector(".processes button.name");
  for (const text of ["o", "on", "one", "on", "o", ""]) {
    await page.fill("#filter", text);
    await page.waitForFunction((text) => document.querySelector("#filter").value === text, text);
  }
  await page.click(".processes th button:has-text('Resident')");
  await page.click(".processes button.name[data-pid='10']");
  // A line of equal amounts has no height, so it is never "visible".
  await page.waitForSelector(".live-chart .resident[points]", { state: "attached" });
  const samples = await page.evaluate(() => document.querySelector(".live-chart polyline.resident").getAttribute("points").split(" ").length);
  assert.ok(samples <= asked, `${samples} samples of ${asked} lists`);
  const drawn = await page.getAttribute(".sparkline >> nth=0", "data-amounts");
  assert.ok(Number(drawn) <= asked, `${drawn} amounts of ${asked} lists`);
  await close();
});

test("a tab passes the token only to tabs that it opens, and a page without a token asks for it", async () => {
  const { page, origin, token, close } = await serve();
  await page.waitForFunction(() => document.documentElement.dataset.state === "ready");
  const context = page.context();
  for (const options of [{ modifiers: ["Control"] }, { button: "middle" }]) {
    const [second] = await Promise.all([context.waitForEvent("page"), page.click("#to-processes", options)]);
    await second.waitForFunction(() => document.documentElement.dataset.state === "ready");
    assert.ok(!second.url().includes(token));
    await second.close();
  }
  // A tab of the same origin may show the page of another server. It hears nothing, also if it asks.
  const stranger = await context.newPage();
  await stranger.goto(`${origin}/serve.css`);
  await stranger.evaluate(() => {
    globalThis.heard = [];
    globalThis.channel = new BroadcastChannel("about-memory-token");
    channel.onmessage = ({ data }) => heard.push(data);
    channel.postMessage({ wanted: true });
  });
  const third = await context.newPage();
  await third.goto(origin);
  await third.waitForFunction(() => document.documentElement.dataset.state === "error");
  assert.ok(!JSON.stringify(await stranger.evaluate(() => [heard, { ...sessionStorage }])).includes(token));
  // A token that the server refuses is forgotten.
  await third.goto("about:blank");
  await third.goto(`${origin}/#token=${"0".repeat(64)}`);
  await third.waitForSelector(".token");
  assert.equal(await third.evaluate(() => sessionStorage.length), 0);
  const other = await newPage();
  await other.page.goto(origin);
  await other.page.waitForFunction(() => document.documentElement.dataset.state === "error");
  assert.match(await other.page.textContent("#main"), /needs the token of its server/);
  await other.page.fill(".token input", "wrong");
  await other.page.click(".token button");
  assert.match(await other.page.textContent(".token [role=alert]"), /64 characters/);
  await other.page.fill(".token input", `${origin}/#token=${token}`);
  await other.page.click(".token button");
  await other.page.waitForFunction(() => document.documentElement.dataset.state === "ready");
  assert.ok(!other.page.url().includes(token));
  await other.close();
  await close();
});

test("the file that opens the page has a code that works once, and gets another one", async () => {
  const { page, token, file, close } = await serve();
  const first = readFileSync(file, "utf8");
  assert.ok(/#code=[0-9a-f]{64}/.test(first) && !first.includes(token));
  assert.equal(new URL(page.url()).hash, "#/");
  // The helper has opened the page by the file, so the file soon has another code.
  const other = await newPage();
  await other.page.goto(pathToFileURL(file).href);
  await other.page.waitForFunction(() => document.documentElement.dataset.state === "ready");
  await other.close();
  await close();
});

test("on a narrow screen the list is folded, and a key unfolds it", async () => {
  const { page, faults, close } = await serve(golden("dmd/dark-matter-mixed.json"), "--no-fix-stacks");
  assert.ok(await page.isVisible("#side"));
  await page.keyboard.press("[");
  assert.ok(await page.isHidden("#side"));
  await page.click("#fold");
  assert.equal(await page.getAttribute("#fold", "aria-expanded"), "true");
  await page.setViewportSize({ width: 400, height: 700 });
  await page.waitForFunction(() => document.getElementById("side").hidden);
  await page.click("#fold");
  await page.click("#side a[href='#/stacks/1']");
  await page.waitForSelector(".summary .answer");
  assert.ok(await page.isHidden("#side"), "the list makes room for the view");
  // The name stays visible, and the page does not scroll aside.
  await page.click("#main .tabs button:has-text('Table')");
  await page.waitForSelector(".table .row .name");
  const { x } = await page.locator(".table .row .name").first().boundingBox();
  assert.ok(x < 200, `${x}`);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
  // The skip link leads to the view and keeps the address.
  const address = page.url();
  await page.focus("#skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  assert.equal(page.url(), address);
  assert.deepEqual(faults, []);
  await close();
});
