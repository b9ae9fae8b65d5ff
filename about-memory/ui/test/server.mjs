// Starts a server of the program, and opens a page of it in Chromium.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { newPage, program } from "./browser.mjs";

/** The processes that must be ended. */
export const servers = [];

/** Ends the servers of the tests. */
export const end = () => servers.forEach((server) => server.kill("SIGTERM"));

/** Starts a server and opens its page. The last argument may be an object with environment variables. */
export async function serve(...args) {
  const own = typeof args.at(-1) === "object" ? args.pop() : {};
  const server = spawn(program, ["serve", "--no-open", "--json", ...args], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...own } });
  servers.push(server);
  let line = "";
  for await (const part of server.stdout.setEncoding("utf8")) {
    line += part;
    if (line.includes("\n")) break;
  }
  const { url, file } = JSON.parse(line);
  const [origin, token] = url.split("/#token=");
  const { page, faults, close } = await newPage();
  page.on("request", (request) => request.url().includes(token) && faults.push(`token in ${request.url()}`));
  page.on("request", (request) => /^(blob|data|file):/.test(request.url()) || request.url().startsWith(`${origin}/`) || faults.push(request.url()));
  // Opens the page like a browser: by the private file that redirects to the address.
  await page.goto(pathToFileURL(file).href);
  await page.waitForURL(`${origin}/**`);
  await page.waitForFunction(() => document.documentElement.dataset.state === "ready");
  /** Opens a view and waits for its rows. */
  const go = async (hash) => {
    await page.evaluate((to) => {
      delete document.documentElement.dataset.rows;
      location.hash = to;
    }, hash);
    await page.waitForFunction(() => Number(document.documentElement.dataset.rows) > 0, null, { timeout: 30_000 });
  };
  const read = (count) =>
    page.waitForFunction((n) => document.querySelectorAll("#side li a[href*='#/memory/']").length === n, count, { timeout: 30_000 });
  const rows = () => page.$$eval(".table .row", (all) => all.map((row) => row.textContent));
  /** Chooses a file in the menu. Returns its name and its bytes. */
  const exported = async (title) => {
    const download = page.waitForEvent("download");
    await page.selectOption("select.export", { label: title });
    const file = await download;
    return [file.suggestedFilename(), readFileSync(await file.path())];
  };
  return { page, faults, close, go, read, rows, exported, origin, token, file, server };
}

