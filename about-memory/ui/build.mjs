// Builds assets/page.html of the crate: the page with script and style, and the hashes of both in its security policy.
// With --check, fails if a built file differs from the build.
import { createHash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const here = (path) => new URL(path, import.meta.url);
const output = here("../assets/page.html");

async function bundle(entry) {
  const result = await build({
    entryPoints: [here(entry).pathname],
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    write: false,
  });
  const text = result.outputFiles[0].text.trim();
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${entry}: contains text that would end its element`);
  return text;
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const [script, style, template, license] = await Promise.all([
  bundle("src/main.ts"),
  bundle("style.css"),
  readFile(here("page.html"), "utf8"),
  readFile(here("node_modules/d3-hierarchy/LICENSE"), "utf8"),
]);
const parts = {
  "@LICENSE@": license.trim(),
  "@SCRIPT_HASH@": hash(script),
  "@STYLE_HASH@": hash(style),
  "@STYLE@": style,
  "@SCRIPT@": script,
};
const page = template.replace(/@[A-Z_]+@/g, (name) => parts[name] ?? name);

// The page of `serve` consists of three files. Its server sends them.
const banner = `/* Contains d3-hierarchy:\n\n${license.trim()}\n*/\n`;
const served = {
  "serve.html": await readFile(here("serve.html"), "utf8"),
  "serve.js": `${banner}${await bundle("src/serve/main.ts")}\n`,
  "serve.css": `${await bundle("serve.css")}\n`,
};
// The page of `memory-fleet serve`.
const fleet = {
  "fleet.html": await readFile(here("fleet.html"), "utf8"),
  "fleet.js": `${await bundle("src/fleet/main.ts")}\n`,
  "fleet.css": `${await bundle("fleet.css")}\n`,
};
const files = [
  [output, page],
  ...Object.entries(served).map(([name, text]) => [here(`../assets/${name}`), text]),
  ...Object.entries(fleet).map(([name, text]) => [here(`../../fleet/assets/${name}`), text]),
];

/**
 * Ways to give the page text. Only `src/widgets/elements.ts` may use them, because it escapes characters that deceive a
 * reader.
 */
const TEXT = /\.(textContent|innerText|innerHTML|outerHTML|title|ariaLabel) = |\["(title|textContent)"\]|setAttribute(NS)?\("(title|aria-label|aria-description)"|createTextNode|insertAdjacent|new Option\(/;
const sources = (await readdir(here("src"), { recursive: true })).filter((name) => name.endsWith(".ts") && name !== "widgets/elements.ts");

if (process.argv.includes("--check")) {
  for (const name of sources) {
    const lines = (await readFile(here(`src/${name}`), "utf8")).split("\n");
    lines.forEach((line, at) => {
      if (TEXT.test(line)) throw new Error(`src/${name}:${at + 1}: text belongs into a function of elements.ts: ${line.trim()}`);
    });
  }
  for (const [file, text] of files) {
    if ((await readFile(file, "utf8").catch(() => "")) === text) continue;
    console.error(`${file.pathname.split("/").slice(-2).join("/")} is out of date: run \`npm run build\` and commit it`);
    process.exit(1);
  }
  // The lock file must name the public registry, even if the packages came from a mirror.
  const lock = JSON.parse(await readFile(here("package-lock.json"), "utf8"));
  for (const [name, { resolved = "" }] of Object.entries(lock.packages)) {
    if (resolved && !resolved.startsWith("https://registry.npmjs.org/")) throw new Error(`${name}: from ${resolved}`);
  }
  console.log(`assets/page.html is up to date (${page.length} characters)`);
} else {
  for (const [file, text] of files) await writeFile(file, text);
  console.log(`assets/page.html written (${page.length} characters)`);
}
