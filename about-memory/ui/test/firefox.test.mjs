// The pages in Firefox: every view has the same rows as in Chromium, and no error.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { golden, open, program, write } from "./browser.mjs";
import { Firefox, hasFirefox } from "./firefox.mjs";
import { pretend } from "./process.mjs";
import { end, serve, servers } from "./server.mjs";

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

// These functions run in both browsers.
const rows = () => [...document.querySelectorAll(".time .sum, .time .axis, .table .row, [role=treeitem], .grid .row, .series tr, .processes tr, .types .summary, .types tr")].map((row) => row.textContent);
/** Whether the view shows all its rows. A view of suspects may have no rows. */
const isThere = () => {
  const isPending = [...document.querySelectorAll(".table .row .branch")].some((one) => one.textContent === "…");
  const wanted = location.hash.includes("/suspects") ? "#status:not(:empty)" : ".table .row .name, [role=treeitem], .grid .row, .series tr, .types tr";
  return !isPending && document.querySelector(wanted) !== null;
};
/** Opens a view, and waits until the previous view is removed. */
const to = (hash) => {
  document.getElementById("main").replaceChildren();
  document.getElementById("status").replaceChildren();
  location.hash = hash;
};

/** Opens a view in both browsers. Returns its rows when both have loaded them. */
async function both(page, hash) {
  await page.evaluate(to, hash);
  await firefox.run(`(${to})(arguments[0])`, hash);
  await page.waitForFunction(isThere).catch(() => assert.fail(hash));
  await firefox.until(`(${isThere})()`);
  // Further windows of rows arrive a moment after the first window.
  await new Promise((next) => setTimeout(next, 100));
  return [await page.evaluate(rows), await firefox.run(`return (${rows})()`)];
}

test("every view of the served page is the same in Firefox", { skip }, async () => {
  const files = [heap("small-a.fxsnapshot"), heap("small-b.fxsnapshot"), heap("medium.fxsnapshot"), golden("firefox/diff.a.json"), golden("firefox/diff.b.json"), golden("dmd/dark-matter-mixed.json"), golden("heap/before.dmdrec"), golden("heap/after.dmdrec"), "--no-fix-stacks"];
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
    "#/memory/3/classes",
    "#/memory/3/classes?filter=Function",
    "#/memory/3/suspects",
    "#/memory/3/search?q=Function",
    "#/diff/1/2?by=objectClass",
    "#/generations/1/2/3?by=objectClass",
    "#/report/1",
    "#/report/1?verbose=1",
    "#/report/2?against=1",
    "#/stacks/1?view=table&kind=2",
    // The part of a recording that the page shows first, the whole recording, and the blocks allocated in a part of it.
    "#/stacks/2?view=table",
    "#/stacks/2?view=table&from=0&to=200",
    "#/stacks/2?view=table&from=20&to=120&shown=allocated",
    "#/stacks/3?view=table",
    "#/series?path=explicit",
  ]) {
    const [expected, found] = await both(page, hash);
    assert.ok(found.length > 0 || hash.includes("suspects"), hash);
    const sight = Math.min(expected.length, found.length, 15);
    assert.deepEqual(found.slice(0, sight), expected.slice(0, sight), hash);
    assert.equal(await firefox.run("return document.getElementById('status').className"), "", hash);
  }
  for (const hash of ["#/memory/1/treemap", "#/report/1?view=treemap", "#/stacks/1?view=flame", "#/stacks/1?view=callers"]) {
    await firefox.run("location.hash = arguments[0]", hash);
    await firefox.until("document.querySelector('.fill > *')");
  }
  // By keyboard: the first row, the next row, and its paths.
  await firefox.run("location.hash = '#/memory/3/dominators'");
  await firefox.until("document.querySelector('.row.active') && document.querySelector('.paths')?.dataset.node");
  const before = await firefox.run("return document.querySelector('.paths').dataset.node");
  await firefox.run("document.querySelector('.table .list').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }))");
  await firefox.until("document.querySelector('.paths').dataset.node !== arguments[0]", before);
  assert.deepEqual(await firefox.errors(origin), []);
  assert.deepEqual(faults, []);
  await close();
});

test("the list of processes is the same in Firefox", { skip }, async () => {
  const report = () => ({ version: 1, hasMozMallocUsableSize: true, reports: [] });
  const { page, faults, close, origin, token } = await pretend("listed", report, serve);
  await firefox.go(`${origin}/#token=${token}`);
  const isListed = () => [...document.querySelectorAll(".processes td.number")].some((cell) => cell.textContent === "2.00 MB");
  await page.waitForFunction(isListed);
  await firefox.until(`(${isListed})()`);
  const cells = () => [...document.querySelectorAll(".processes tr")].map((row) => [...row.cells].map((cell) => [...cell.childNodes].map((part) => part.textContent).join("|")));
  const [expected, found] = [await page.evaluate(cells), await firefox.run(`return (${cells})()`)];
  assert.deepEqual(found, expected);
  const [, name, pid, , resident, , heap, , actions] = found[1];
  assert.deepEqual([found.length, name, pid, resident, heap], [2, "listed", String(process.pid), "2.00 MB", "1.00 MB"]);
  assert.equal(actions, "Measure|Minimize|Minimize and measure");
  assert.deepEqual(await firefox.errors(origin), []);
  assert.deepEqual(faults, []);
  await close();
});

const victim = join(process.env.EXAMPLES ?? join(dirname(program ?? ""), "examples"), "typed_heap_victim");
const noVictim = skip || (existsSync(victim) ? false : `missing: ${victim}`);

test("the types of a process are the same in Firefox", { skip: noVictim }, async () => {
  const child = spawn(victim, ["/dev/null"], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, DMD: "--stacks=full --quiet", ABOUT_MEMORY: "listen" } });
  servers.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => String(part).includes("ready") && ready()));
  const { page, faults, close, read, origin, token } = await serve();
  await firefox.go(`${origin}/#token=${token}`);
  const button = `[...document.querySelectorAll(".processes tr")].filter((row) => row.cells[2]?.textContent === "${child.pid}").flatMap((row) => [...row.querySelectorAll("button")]).find((one) => one.textContent === "Types")`;
  await firefox.until(button);
  await firefox.run(`${button}.click()`);
  await read(1);
  await firefox.until("document.querySelector(\"#side li a[href='#/memory/1/types']\")");
  const tables = ["type", "field", "waste"];
  for (const table of tables) {
    const [expected, found] = await both(page, `#/memory/1/types?by=${table}`);
    assert.ok(found.length > 3, table);
    assert.deepEqual(found, expected, table);
  }
  const options = await firefox.run("return [...document.querySelectorAll('.types select option')].map((one) => one.value)");
  assert.deepEqual(tables.filter((table) => !options.includes(table)), [], String(options));
  // A link leads from a type to its blocks.
  await firefox.run("location.hash = '#/memory/1/types?by=type'");
  const link = "[...document.querySelectorAll('.types a')].find((one) => one.textContent === 'typed_heap_victim::Copies')";
  await firefox.until(link);
  const [expected, found] = await both(page, await firefox.run(`return ${link}.getAttribute("href")`));
  assert.match(found[0], /24 B.*typed_heap_victim::Copies/);
  assert.deepEqual(found, expected);
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
