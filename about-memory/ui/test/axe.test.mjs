// Checks every view of the live page against the rules of axe-core, in both colour schemes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { golden, newPage, program } from "./browser.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
/** A list draws as many rows as fit. More rows would be of the same kinds, and axe checks each row. */
const viewport = { width: 1200, height: process.env.THOROUGH ? 800 : 400 };
const processes = [];

after(() => processes.forEach((one) => one.kill("SIGTERM")));

async function serve(...args) {
  const server = spawn(program, ["serve", "--no-open", "--json", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  processes.push(server);
  let line = "";
  for await (const part of server.stdout.setEncoding("utf8")) {
    line += part;
    if (line.includes("\n")) break;
  }
  return JSON.parse(line).url;
}

const VIEWS = [
  ["#/", ".empty, .processes"],
  ["#/report/1", ".row.heading"],
  ["#/report/1?view=treemap", ".treemap .box"],
  ["#/report/2?against=1", ".row.heading"],
  ["#/series?depth=1", ".series svg"],
  ["#/memory/1/summary", ".summary ol + *, .summary section + section"],
  ["#/memory/1/census", ".windowed .row .name"],
  ["#/memory/1/treemap", ".map button"],
  ["#/memory/1/dominators", ".paths .path"],
  ["#/memory/1/suspects", ".windowed"],
  ["#/memory/1/search?q=Function", ".paths .path"],
  ["#/memory/1/classes", ".windowed .row .name"],
  ["#/generations/1/2", ".windowed .row .name"],
  ["#/diff/1/2", ".windowed .row .name"],
  ["#/stacks/1", ".summary .answer"],
  ["#/stacks/1?view=table", ".table .row .name"],
  ["#/stacks/1?view=calls", ".calls .row .name"],
  ["#/stacks/1?view=treemap", ".treemap .box"],
  ["#/stacks/1?view=flame", ".flame .frame"],
  ["#/stacks/1?view=callers", ".callers .row"],
  ["#/stacks/1?suggest=1", ".suggestions article"],
  ["#/stacks/1?view=flame&roots=1", ".flame .frame"],
  ["#/report/1?view=flame", ".flame .frame"],
  ["#/stacks/2", ".time svg"],
  ["#/stacks/2", ".summary .answer"],
  ["#/no/such/page", ".empty"],
];

/**
 * Returns the rules that the page breaks. Only rules about colours depend on the scheme, so the dark scheme is checked
 * only for these.
 */
async function broken(page, colorScheme) {
  const options = { resultTypes: ["violations"] }; // for a passed rule, axe then reports only one node
  if (colorScheme === "dark") options.runOnly = ["color-contrast", "link-in-text-block"];
  const { violations, passes } = await page.evaluate((options) => window.axe.run(options), options);
  assert.ok(passes.some(({ id }) => id === "color-contrast"), "texts have colours");
  return violations;
}

/** Returns the violations of the page in both colour schemes, and of the page on a narrow screen. */
async function faulty(page) {
  const found = await faultyInSize(page);
  await page.setViewportSize({ width: 400, height: viewport.height });
  found.push(...(await faultyInSize(page)).map((fault) => `400 px: ${fault}`));
  await page.setViewportSize(viewport);
  return found;
}

async function faultyInSize(page) {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const { id, nodes } of await broken(page, colorScheme)) {
      found.push(`${colorScheme}: ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
    }
  }
  return found;
}

test("every view follows the rules of axe", async () => {
  const url = await serve(
    heap("small-a.fxsnapshot"), heap("medium.fxsnapshot"), golden("firefox/diff.a.json"), golden("firefox/diff.b.json"),
    golden("dmd/dark-matter-mixed.json"), golden("heap/before.dmdrec"), "--no-fix-stacks",
  );
  // The page's policy allows only its own scripts, so the test bypasses the policy.
  const { page, close } = await newPage({ bypassCSP: true, viewport });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelectorAll("#side li a[href*='#/memory/']").length === 2);
  await page.evaluate(axe);
  const found = [];
  // The address of a group's nodes is opened from a row.
  await page.evaluate(() => (location.hash = "#/memory/1/census?by=objectClass"));
  await page.click(".windowed .row .behind");
  await page.waitForFunction(() => location.hash.includes("/individuals?"));
  const nodes = await page.evaluate(() => location.hash);
  await page.waitForSelector(".paths .path");
  for (const [hash, wanted] of [...VIEWS, [nodes, ".paths .graph"]]) {
    await page.evaluate((to) => (location.hash = to), hash);
    if (hash === nodes) await page.check(".paths input").catch(() => {});
    await page.waitForSelector(wanted);
    for (const fault of await faulty(page)) found.push(`${hash}: ${fault}`);
  }
  assert.deepEqual(found, []);
  await close();
});

const victim = join(process.env.EXAMPLES ?? join(dirname(program ?? ""), "examples"), "typed_heap_victim");

test("processes and types follow the rules of axe", { skip: existsSync(victim) ? false : `missing: ${victim}` }, async () => {
  const env = { ...process.env, DMD: "--stacks=full --quiet", ABOUT_MEMORY: "listen" };
  const child = spawn(victim, ["/dev/null"], { stdio: ["pipe", "pipe", "inherit"], env });
  processes.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => String(part).includes("ready") && ready()));
  const url = await serve();
  const { page, close } = await newPage({ bypassCSP: true, viewport });
  await page.goto(url);
  await page.evaluate(axe);
  await page.waitForSelector(".processes .actions button");
  assert.deepEqual(await faulty(page), []);
  const row = page.locator(".processes tr", { hasText: String(child.pid) });
  await row.locator(".menu summary").click();
  assert.deepEqual(await faulty(page), []);
  await row.getByText("Types", { exact: true }).click();
  await page.click("#side li a[href='#/memory/1/types']", { timeout: 60_000 });
  await page.waitForSelector(".types tr a");
  assert.deepEqual(await faulty(page), []);
  await close();
});
