// The page of `memory-fleet serve`. `fleet/test` runs this file, because it needs memory-fleet:
// MEMORY_FLEET_PROGRAM=... node --test test/fleet_page.mjs
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { newPage } from "./browser.mjs";

const program = process.env.MEMORY_FLEET_PROGRAM;
const folder = mkdtempSync(join(tmpdir(), "memory-fleet-ui-"));
const HOSTILE = "<img src=x onerror=alert(1)>\u202egnp";
let server;
let url;

before(async () => {
  const run = (...options) => {
    const { status, stderr } = spawnSync(program, options, { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  };
  run("simulate", "trial", "--processes", "30", "--days", "8", "--minutes", "180", "--paths", "20", "--planted", "6");
  mkdirSync(join(folder, "reports"));
  const report = (amount) => ({
    version: 1,
    hasMozMallocUsableSize: true,
    reports: [{ process: "app", path: `explicit/${HOSTILE}`, kind: 1, units: 0, amount, description: "" }],
  });
  for (const day of [0, 1]) {
    writeFileSync(join(folder, "reports", `${day}.json`), JSON.stringify(report(1e7 * (1 + day))));
    run("import", "trial", join("reports", `${day}.json`), "--service", HOSTILE, "--service-version", HOSTILE, "--host", HOSTILE, "--time", String(1793500000 + 86400 * day));
  }
  server = spawn(program, ["serve", "trial"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  for await (const part of server.stdout.setEncoding("utf8")) {
    url = part.trim();
    break;
  }
});

after(() => {
  server?.kill("SIGTERM");
  rmSync(folder, { recursive: true, force: true });
});

async function open(options) {
  const { page, faults, close } = await newPage(options);
  const [origin, token] = url.split("/#token=");
  page.on("request", (request) => request.url().includes(token) && faults.push(`token in ${request.url()}`));
  page.on("request", (request) => request.url().startsWith(`${origin}/`) || request.url().startsWith("data:") || faults.push(request.url()));
  await page.goto(url);
  const ready = () => page.waitForFunction(() => document.documentElement.dataset.details === "ready" && document.documentElement.dataset.rows !== undefined, null, { timeout: 60_000 });
  await ready();
  const go = async (hash) => {
    await page.evaluate((to) => {
      delete document.documentElement.dataset.rows;
      delete document.documentElement.dataset.details;
      location.hash = to;
    }, hash);
    await ready();
  };
  return { page, faults, close, go, ready };
}

test("questions have rows, lines and versions as marks", async () => {
  const { page, faults, close, go } = await open();
  assert.ok(!page.url().includes("token"));
  for (const question of ["growth", "versions", "leaks", "changes", "outliers", "dark", "coverage"]) {
    await go(`#/${question}?service=auth`);
    assert.equal(await page.textContent("#questions [aria-current]"), question[0].toUpperCase() + question.slice(1));
    assert.ok((await page.$$("#answer polyline")).length >= 2, question);
    // Each deployed version is a link across the lines.
    assert.ok((await page.$$("#answer svg a .mark")).length > 1, question);
    assert.ok(await page.textContent("#answer h2"));
  }
  await go("#/versions");
  assert.match(await page.textContent("#answer pre"), /^memory-fleet leaks trial --service /);
  await page.focus("#answer svg a");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /^#\/versions\?.*version=/.test(location.hash));
  assert.deepEqual(faults, []);
  await close();
});

test("rows work with the keyboard", async () => {
  const { page, faults, close, go, ready } = await open();
  await go("#/growth");
  await page.focus("#answer .rows tr[tabindex='0']");
  const heading = await page.textContent("#answer section > h3");
  await page.keyboard.press("End");
  await page.evaluate(() => delete document.documentElement.dataset.details);
  await page.keyboard.press("Enter");
  await ready();
  assert.notEqual(await page.textContent("#answer section > h3"), heading);
  assert.equal(await page.getAttribute("#answer .rows tbody tr:last-child", "aria-selected"), "true");
  await page.keyboard.press("Home");
  assert.equal(await page.evaluate(() => document.activeElement.rowIndex), 1);
  // The controls change the address.
  await page.selectOption("#scope-service", "auth");
  await page.waitForFunction(() => location.hash === "#/growth?service=auth");
  await page.fill("#scope-path", "explicit/tokens");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("path=explicit%2Ftokens"));
  assert.deepEqual(faults, []);
  await close();
});

test("hostile names are text", async () => {
  const { page, faults, close, go } = await open();
  await go(`#/growth?${new URLSearchParams({ service: HOSTILE })}`);
  const text = await page.textContent("#main");
  assert.ok(text.includes("<img src=x onerror=alert(1)>"), text);
  assert.ok(!text.includes("\u202e"), "the mark that reverses text is escaped");
  assert.equal(await page.$("#main img"), null);
  assert.deepEqual(faults, []);
  await close();
});

test("a process leads to its report in about-memory serve", async () => {
  const { page, close, go } = await open();
  await go("#/outliers?service=auth");
  const opened = page.context().waitForEvent("page");
  await page.click("#answer section section .rows button");
  const report = await opened;
  await report.waitForFunction(() => /^#\/report\/\d+/.test(location.hash), null, { timeout: 30_000 });
  await report.waitForFunction(() => document.querySelector("#main").textContent.includes("explicit"), null, { timeout: 30_000 });
  assert.ok(!report.url().includes("token"));
  await close();
});

test("a page without the token shows how to get one", async () => {
  const { page, close } = await newPage();
  await page.goto(url.split("#")[0]);
  await page.waitForFunction(() => document.documentElement.dataset.state === "error");
  assert.match(await page.textContent("#main"), /needs the whole address/);
  await close();
});

test("narrow and dark windows follow axe's rules", async () => {
  const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  for (const options of [{ viewport: { width: 380, height: 700 } }, { colorScheme: "dark" }]) {
    const { page, faults, close, go } = await open({ ...options, bypassCSP: true });
    await go("#/versions?service=auth");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    assert.deepEqual(faults, []);
    await close();
  }
});
