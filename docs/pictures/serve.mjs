// Takes the pictures of the live page in the guide. `make` starts the server, and passes its address and the folder.
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(new URL("../../about-memory/ui/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const [url, folder] = process.argv.slice(2);

const [WIDTH, HEIGHT] = [1000, 380];
/** For each picture: its name, its address, a selector that matches when the view is ready, and its size. */
const VIEWS = [
  ["serve-processes", "#/", ".sparkline[data-amounts='4']", 340, 1330],
  ["serve-report", "#/report/1", ".row.heading"],
  ["serve-flame", "#/report/1?view=flame", ".flame .frame"],
  ["serve-series", "#/series?path=explicit&depth=1", ".series svg", 460],
  ["serve-stacks", "#/stacks/1?view=table&kind=2", ".table .row .name"],
  ["serve-suggestions", "#/stacks/1?view=table&kind=2&suggest=1", ".suggestions article", 460],
  ["serve-reporters", "#/stacks/1?view=flame&roots=1", ".flame .frame"],
  ["serve-callers", "#/stacks/1?view=callers&filter=code_search", ".callers .row"],
  ["serve-recording", "#/stacks/2?view=flame", ".flame .frame", 560],
  ["serve-aggregate", "#/memory/1/census?by=objectClass", ".windowed .row .name", 300, 1040],
  ["serve-treemap", "#/memory/1/treemap", ".map button"],
  ["serve-dominators", "#/memory/1/dominators", ".paths .path", 400],
  ["serve-classes", "#/memory/1/classes", ".windowed .row .name"],
  ["serve-suspects", "#/memory/2/suspects", ".windowed"],
  ["serve-search", "#/memory/1/search?q=Function", ".paths .path"],
  ["serve-difference", "#/diff/1/2?by=objectClass", ".windowed .row .name", 300, 1040],
  ["serve-generations", "#/generations/1/2?by=objectClass", ".windowed .row .name"],
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
});
const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: "light" });
await page.goto(url);
await page.waitForFunction(() => document.querySelectorAll("#side li a[href*='#/memory/']").length === 2);
for (const [name, hash, wanted, height = HEIGHT, width = WIDTH] of VIEWS) {
  await page.setViewportSize({ width, height });
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForSelector(wanted, { state: "attached" });
  // Waits for the rows of the view, and for the answers about the selected row.
  await page.waitForTimeout(500);
  await page.waitForFunction(() => !document.querySelector("#jobs progress"));
  await page.screenshot({ path: join(folder, `${name}.png`) });
}
// The nodes of a group, with their paths as a graph.
await page.setViewportSize({ width: WIDTH, height: 420 });
await page.evaluate(() => (location.hash = "#/memory/1/census?by=objectClass"));
await page.click(".windowed .row .behind");
await page.waitForSelector(".paths .path");
await page.check(".paths input");
await page.waitForSelector(".paths .graph");
await page.waitForTimeout(500);
await page.screenshot({ path: join(folder, "serve-individuals.png") });
// The types of a process.
await page.setViewportSize({ width: WIDTH, height: HEIGHT });
await page.evaluate(() => (location.hash = "#/"));
await page.locator(".processes tr", { hasText: "typed_heap_victim" }).getByText("Types", { exact: true }).click();
await page.click("#side li a[href$='/types']", { timeout: 60_000 });
await page.waitForSelector(".types tr a");
await page.waitForTimeout(500);
await page.screenshot({ path: join(folder, "serve-types.png") });
await browser.close();
