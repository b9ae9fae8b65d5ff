// Opens files in dh_view.html of Valgrind and in speedscope, in a headless Chromium, and compares the sums that they
// show.
//
// usage: node pages.mjs INPUTS DH_VIEW SPEEDSCOPE_FOLDER
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [inputs, dhView, speedscope] = process.argv.slice(2);
const { profiles } = JSON.parse(readFileSync(join(inputs, "expected.json"), "utf8"));
const failures = [];
const equal = (what, found, wanted) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    failures.push(`${what}: the client has ${JSON.stringify(found)}, the product ${JSON.stringify(wanted)}`);
  }
};

/** Checks that the product rejects exactly these inputs, with an error that names the format. */
const refuses = (format, name, inputs) => {
  for (const [input, { refused }] of Object.entries(profiles)) {
    equal(`${input}.${format} is refused`, refused[format]?.startsWith(`${name} cannot hold`) ?? false, inputs.includes(input));
  }
};

async function dhat(browser) {
  refuses("dhat.json", "DHAT", ["beyond", "below"]);
  for (const { files, "blocks and bytes": [blocks, bytes] } of Object.values(profiles)) {
    const file = files["dhat.json"];
    if (!file) continue;
    const page = await browser.newPage();
    page.setDefaultTimeout(300_000); // A million stacks take more than a minute.
    page.on("pageerror", (error) => failures.push(`${file}: ${error}`));
    await page.goto(pathToFileURL(dhView).href);
    await page.setInputFiles("input[type=file]", join(inputs, file));
    const main = page.locator("body");
    await page.waitForFunction(() => /Total:|error|Error/.test(document.body.innerText), null, { timeout: 300_000 });
    const text = await main.innerText();
    const shown = /Total:\s*([\d,]+) bytes[^\n]*? in ([\d,]+) blocks/.exec(text);
    const number = (digits) => Number(digits?.replaceAll(",", ""));
    equal(`${file}: ${shown ? "sums" : text.slice(0, 300)}`, [number(shown?.[2]), number(shown?.[1])], [blocks, bytes]);
    await page.close();
  }
}

/** Speedscope rounds the numbers that it shows, so this compares the numbers that it saves. */
async function scope(browser) {
  refuses("speedscope.json", "speedscope", ["beyond"]);
  const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    try {
      const body = readFileSync(join(speedscope, path));
      response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  for (const { files, "blocks and bytes": [blocks, bytes], "by kind": kinds } of Object.values(profiles)) {
    const file = files["speedscope.json"];
    if (!file) continue;
    const page = await browser.newPage({ acceptDownloads: true });
    page.setDefaultTimeout(300_000); // A million stacks take more than a minute.
    page.on("pageerror", (error) => failures.push(`${file}: ${error}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/index.html`);
    await page.setInputFiles("input[type=file]", join(inputs, file));
    const button = page.getByText("Export", { exact: false }).first();
    await button.waitFor({ timeout: 300_000 });
    const [download] = await Promise.all([page.waitForEvent("download", { timeout: 300_000 }), button.click()]);
    const saved = JSON.parse(readFileSync(await download.path(), "utf8"));
    const sums = { "": [0, 0] };
    for (const profile of saved.profiles) {
      const [, value, rest] = /^live (bytes|blocks)(.*)$/.exec(profile.name);
      const kind = /unreported|once|twice/.exec(rest)?.[0] ?? "";
      const sign = rest.includes("shrunk") ? -1 : 1;
      let sum = 0;
      if (profile.type === "sampled") sum = profile.weights.reduce((sum, weight) => sum + weight, 0);
      else sum = profile.endValue - profile.startValue;
      sums[kind] ??= [0, 0];
      sums[kind][value === "bytes" ? 1 : 0] += sign * sum;
    }
    const ordered = (sums) => Object.entries(sums).filter(([, pair]) => pair.some(Boolean)).sort();
    equal(file, ordered(sums), ordered(kinds));
    const all = Object.values(sums).reduce((all, pair) => [all[0] + pair[0], all[1] + pair[1]]);
    equal(file, all, [blocks, bytes]);
    await page.close();
  }
  server.close();
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
for (const [name, client] of [["dh_view.html", dhat], ["speedscope", scope]]) {
  const before = failures.length;
  await client(browser).catch((error) => failures.push(`${name}: ${error}`));
  if (failures.length === before) console.log(`${name}: all sums are equal to the product's`);
}
await browser.close();
for (const failure of failures) console.error(failure);
process.exitCode = failures.length ? 1 : 0;
