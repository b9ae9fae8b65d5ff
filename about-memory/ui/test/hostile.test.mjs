// The page must show any name of a report as text, and must run no code and send no requests.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { ask, folder, golden, open, program, report, shown, text, write } from "./browser.mjs";

const EVIL = [
  "<script>alert(1)<\\script>",
  "<\\script><script>alert(2)<\\script>",
  "<img src=x onerror=alert(3)>",
  "--><svg onload=alert(4)>",
  "<\\title><script>alert(5)<\\script>",
  "javascript:alert(6)",
  "@DATA@",
  "@SCRIPT@",
  "&lt;b&gt;",
  "$&$1$'",
  "__proto__",
  "constructor",
];
/** Returns the name as a reader sees it. */
const seen = (name) => name.replaceAll("\\", "/");

test("names that are script tags stay text", async () => {
  const reports = EVIL.flatMap((evil) => [
    { process: `${evil} (pid 1)`, path: `explicit/${evil}`, description: evil },
    { process: `${evil} (pid 1)`, path: `explicit/a/${evil}/x`, description: evil },
    { process: `${evil} (pid 1)`, path: `${evil}/b`, kind: 2, description: evil },
    { process: `${evil} (pid 1)`, path: evil, kind: 2, description: evil },
    { process: `${evil} (pid 1)`, path: `explicit/${evil}`, kind: 7 },
  ]);
  const file = report(...reports);
  const titled = join(folder, "titled.html");
  execFileSync(program, ["html", file, "--title", "</title><script>alert(7)</script>", "-o", titled], { stdio: "pipe" });
  const { page, faults, close } = await open(titled);
  assert.equal(await page.title(), "about:memory (</title><script>alert(7)</script>)");
  assert.equal(await page.$eval("#title", (title) => title.textContent), await page.title());
  await page.click("#expand");
  const all = await text(page);
  for (const evil of EVIL) {
    assert.ok(all.includes(`\n${evil} (pid 1)\n`), evil);
    assert.ok(all.includes(` ── ${seen(evil)}\n`), evil);
  }
  const scripts = await page.$$eval("script", (scripts) => scripts.length);
  assert.equal(scripts, 1, "the page's own");
  for (const selector of ["img", "svg", "iframe", "object", "link", "b"]) {
    assert.equal(await page.$$eval(selector, (found) => found.length), 0, selector);
  }
  await page.locator("#processes a", { hasText: "<script>alert(1)" }).click();
  assert.ok((await shown(page)).some((line) => line.includes("<script>alert(1)")));
  // Tooltips, the index and the boxes of the treemap also show names as text.
  assert.ok((await page.$$eval(".row", (rows) => rows.map((row) => row.title))).some((tip) => tip.includes("<script>")));
  assert.ok((await page.$$eval("#processes a", (links) => links.map((link) => link.href))).every((href) => href.endsWith("#")));
  await page.click("#tab-treemap");
  assert.ok((await page.$$(".box")).length > 0);
  await ask(page, { filter: "<script>" });
  await ask(page, { filter: "(", regex: true });
  assert.equal(await page.$eval("#message", (message) => message.textContent), "not a regular expression");
  assert.deepEqual(faults, []);
  await close();
});

test("characters that deceive are escaped", async () => {
  const { page, faults, close } = await open(write(report({ path: "explicit/a\u202eb\u0000c\ufeff" }, { path: "explicit/\ufeffd" })));
  const all = await text(page);
  assert.ok(all.includes(" ── a\\u{202e}b\\u{0}c\\u{feff}\n"), all);
  assert.ok(all.includes(" ── \\u{feff}d\n"), all);
  assert.deepEqual(faults, []);
  await close();
});

test("the policy forbids what is not in the page", async () => {
  const file = write(report({ path: "explicit/a" }));
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(readFileSync(file, "utf8"))[1];
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; base-uri 'none'; form-action 'none';/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  const { page, close } = await open(file);
  const outcome = await page.evaluate(async () => {
    const violated = [];
    document.addEventListener("securitypolicyviolation", (event) => violated.push(event.effectiveDirective));
    const image = document.createElement("img");
    image.src = "https://example.invalid/x.png";
    document.body.append(image);
    const fetched = await fetch("https://example.invalid/").then(() => "fetched", () => "refused");
    let markup = "refused";
    try {
      document.body.innerHTML = "<p>x</p>";
      markup = "set";
    } catch {}
    await new Promise((done) => setTimeout(done, 100));
    return { fetched, markup, violated };
  });
  assert.deepEqual([outcome.fetched, outcome.markup], ["refused", "refused"]);
  assert.ok(outcome.violated.includes("img-src") && outcome.violated.includes("connect-src"), String(outcome.violated));
  await close();
});

test("a script put into the page does not run", async () => {
  const file = write(report({ path: "explicit/a" }));
  const tampered = join(folder, "tampered.html");
  writeFileSync(tampered, readFileSync(file, "utf8").replace("</body>", "<script>document.title = 'ran'</script></body>"));
  const { page, close } = await open(tampered);
  assert.notEqual(await page.title(), "ran");
  await close();
});

test("a page on a server requests nothing else", async () => {
  const file = write(golden("firefox/sample.json.gz"));
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    response.setHeader("content-type", "text/html");
    response.end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { page, close } = await open(file);
  await page.goto(`http://127.0.0.1:${server.address().port}/page`);
  await page.waitForFunction(() => document.documentElement.dataset.state === "ready");
  await page.waitForTimeout(300);
  assert.deepEqual(asked, ["/page"]);
  await close();
  server.close();
});

test("broken data gives a message and no partial view", async () => {
  const file = write(report({ path: "explicit/a" }));
  const broken = join(folder, "broken.html");
  writeFileSync(broken, readFileSync(file, "utf8").replace(/(id="data">.{20})[^<]*/, "$1AAAA"));
  const { page, close } = await open(broken);
  assert.match(await page.$eval("#loading", (loading) => loading.textContent), /cannot be read/);
  await close();
});
