// The pages in Firefox: every view has the rows that Chromium shows, and no error.
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { golden, open, write } from "./browser.mjs";
import { Firefox, hasFirefox } from "./firefox.mjs";
import { end, serve } from "./server.mjs";

const skip = hasFirefox ? false : "no Firefox";
const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
let firefox;

before(async () => {
  if (!skip) firefox = await Firefox.start();
});
after(async () => {
  await firefox?.close();
  end();
});

// These run in both browsers.
const rows = () => [...document.querySelectorAll(".table .row, [role=treeitem], .grid .row, .series tr")].map((row) => row.textContent);
const isThere = () => document.querySelector(".table .row .name, [role=treeitem], .grid .row, .series tr, #status:not(:empty)") !== null;

test("every view of the served page is the same in Firefox", { skip }, async () => {
  const files = [heap("small-a.fxsnapshot"), heap("small-b.fxsnapshot"), heap("medium.fxsnapshot"), golden("firefox/diff.a.json"), golden("firefox/diff.b.json"), golden("dmd/dark-matter-mixed.json")];
  const { page, faults, close, read, origin, token } = await serve(...files);
  await read(3);
  await firefox.go(`${origin}/#token=${token}`);
  await firefox.until("document.documentElement.dataset.state === 'ready'");
  assert.equal(await firefox.run("return location.hash"), "#/");
  for (const hash of [
    "#/memory/1/census",
    "#/memory/2/census?by=stack",
    "#/memory/3/census?by=objectClass&sort=count&asc=1",
    "#/memory/1/census?by=type&filter=Function",
    "#/memory/3/dominators",
    "#/memory/3/suspects",
    "#/memory/3/search?q=Function",
    "#/diff/1/2?by=objectClass",
    "#/generations/1/2/3?by=objectClass",
    "#/report/1",
    "#/report/1?verbose=1",
    "#/report/2?against=1",
    "#/stacks/1?view=table&kind=2",
    "#/series?path=explicit",
  ]) {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.waitForFunction(isThere).catch(() => assert.fail(hash));
    await firefox.run("location.hash = arguments[0]", hash);
    await firefox.until(`(${isThere})()`);
    // Windows of rows come a moment after the first one.
    await new Promise((next) => setTimeout(next, 150));
    const [expected, found] = [await page.evaluate(rows), await firefox.run(`return (${rows})()`)];
    assert.ok(found.length > 0 || hash.includes("suspects") || hash.includes("series"), hash);
    const sight = Math.min(expected.length, found.length, 15);
    assert.deepEqual(found.slice(0, sight), expected.slice(0, sight), hash);
    assert.equal(await firefox.run("return document.getElementById('status').className"), "", hash);
  }
  for (const hash of ["#/memory/1/treemap", "#/report/1?view=treemap", "#/stacks/1?view=flame", "#/stacks/1?view=callers"]) {
    await firefox.run("location.hash = arguments[0]", hash);
    await firefox.until("document.querySelector('.fill > *')");
  }
  // By keyboard: the first row, one down, and its paths.
  await firefox.run("location.hash = '#/memory/3/dominators'");
  await firefox.until("document.querySelector('.row.active') && document.querySelector('.paths')?.dataset.node");
  const before = await firefox.run("return document.querySelector('.paths').dataset.node");
  await firefox.run("document.querySelector('.table .list').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))");
  await firefox.until("document.querySelector('.paths').dataset.node !== arguments[0]", before);
  assert.deepEqual(await firefox.errors(origin), []);
  assert.deepEqual(faults, []);
  await close();
});

test("the page of html is the same in Firefox", { skip }, async () => {
  const file = write(golden("firefox/diff.a.json"));
  const { page, faults, close } = await open(file);
  await firefox.go(pathToFileURL(file).href);
  await firefox.until("document.documentElement.dataset.state");
  const text = await firefox.run("return window.aboutMemoryText()");
  assert.equal(text, await page.evaluate(() => window.aboutMemoryText()));
  assert.deepEqual(await firefox.errors("file:"), []);
  assert.deepEqual(faults, []);
  await close();
});
