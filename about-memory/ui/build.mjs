// Builds assets/page.html of the crate: the page with script and style, and their hashes in its security policy.
// With --check, fails if the present file differs from the build.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
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

if (process.argv.includes("--check")) {
  const present = await readFile(output, "utf8").catch(() => "");
  if (present !== page) {
    console.error("assets/page.html is out of date: run `npm run build` and commit it");
    process.exit(1);
  }
  // The lock file names the public registry, whichever mirror the packages came from.
  const lock = JSON.parse(await readFile(here("package-lock.json"), "utf8"));
  for (const [name, { resolved = "" }] of Object.entries(lock.packages)) {
    if (resolved && !resolved.startsWith("https://registry.npmjs.org/")) throw new Error(`${name}: from ${resolved}`);
  }
  console.log(`assets/page.html is up to date (${page.length} characters)`);
} else {
  await writeFile(output, page);
  console.log(`assets/page.html written (${page.length} characters)`);
}
