// The program, the browser and its pages, for all tests.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
export const program =
  process.env.ABOUT_MEMORY_PROGRAM ??
  // The latest build.
  ["release", "debug"]
    .map((profile) => join(target, profile, "about-memory"))
    .filter(existsSync)
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];

export const golden = (name) => fileURLToPath(new URL(`../../tests/golden/${name}`, import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), "about-memory-ui-"));

let browser;

before(async () => {
  if (!program) throw new Error("no program: run `cargo build -p about-memory --features program` first");
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a new page. `faults` lists errors and requests that a page must never have. */
export async function newPage(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  return { page, faults, close: () => context.close() };
}

let pages = 0;

/** Runs the program. Returns the file of the page. */
export function write(...files) {
  const page = join(folder, `page-${pages++}.html`);
  execFileSync(program, ["html", ...files, "-o", page]);
  return page;
}

/** Writes a report file with these reports; missing fields get defaults. */
export function report(...reports) {
  const file = join(folder, `report-${pages++}.json`);
  const usual = { process: "Main Process (pid 1)", kind: 1, units: 0, amount: 1 << 20, description: "A part." };
  const filled = reports.map((one) => ({ ...usual, ...one }));
  writeFileSync(file, JSON.stringify({ version: 1, hasMozMallocUsableSize: true, reports: filled }));
  return file;
}

/** Opens a page; `faults` lists errors and requests that a page must never have. */
export async function open(file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const faults = [];
  page.on("request", (request) => request.url() !== url && faults.push(`request: ${request.url()}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.state, null, { timeout: 60_000 });
  return { page, faults, close: () => context.close() };
}

export const text = (page) => page.evaluate(() => window.aboutMemoryText());

/** Changes the settings of the toolbar, as a reader does. */
export async function ask(page, { verbose = false, filter = "", regex = false, hideTiny = true } = {}) {
  await page.setChecked("#verbose", verbose);
  await page.setChecked("#hide-tiny", hideTiny);
  await page.setChecked("#regex", regex);
  await page.fill("#filter", filter);
  await page.dispatchEvent("#filter", "change");
}

/** The visible lines. */
export const shown = (page) => page.$$eval(".row", (rows) => rows.map((row) => row.textContent));
