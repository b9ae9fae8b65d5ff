// A live report: after an update in place, it equals a fresh load. The focus, the scroll position and the open rows
// stay.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { InChromium, InFirefox, Firefox, hasFirefox } from "./both.mjs";
import { pretend } from "./process.mjs";
import { end, serve } from "./server.mjs";

let firefox;
before(async () => {
  if (hasFirefox) firefox = await Firefox.start();
});
after(async () => {
  await firefox?.close();
  end();
});

const MB = 1 << 20;
const report = (path, amount, units = 0) => ({ process: "Main Process (pid 1)", path, kind: units === 0 ? 1 : 2, units, amount, description: `What ${path} is.` });
/** Rows outside of trees, so that the list scrolls. */
const counters = Array.from({ length: 60 }, (_, at) => report(`counter-${String(at).padStart(2, "0")}`, at, 1));
/** The process's reports at each stage. */
const STAGES = [
  // `x` is before `y`.
  [report("explicit/a/x", 8 * MB), report("explicit/a/y", 4 * MB), report("explicit/a/z", 2 * MB), report("explicit/b/c", MB), report("explicit/b/d", MB)],
  // Other amounts: `y` is before `x`.
  [report("explicit/a/x", 8 * MB), report("explicit/a/y", 16 * MB), report("explicit/a/z", 2 * MB), report("explicit/b/c", 3 * MB), report("explicit/b/d", MB)],
  // Rows appear and disappear, before and behind the focused row, and one row gets a second report.
  [report("explicit/a/first", 32 * MB), report("explicit/a/x", 8 * MB), report("explicit/a/y", 16 * MB), report("explicit/a/y", MB), report("explicit/b/c", 3 * MB), report("explicit/b/e", MB), report("late", 7, 1)],
  // The focused row disappears.
  [report("explicit/a/first", 32 * MB), report("explicit/a/y", 16 * MB), report("explicit/b/c", 3 * MB), report("explicit/b/e", MB)],
];

/** Returns everything that a reader sees of the visible rows. */
const ROWS = `[...document.querySelectorAll(".list .row")].map((row) => [row.textContent, row.className.replace(" active", ""), row.title, row.getAttribute("role"), row.getAttribute("aria-level"), row.getAttribute("aria-expanded"), [...row.children].map((part) => part.className).join(" ")].join("|"))`;
const SCROLLED = 5 * 18;

for (const name of ["Chromium", "Firefox"]) {
  test(`a live report shows what a fresh load shows (${name})`, { skip: name === "Firefox" && !hasFirefox ? "no Firefox" : false }, async () => {
    let stage = 0;
    const reports = () => ({ version: 1, hasMozMallocUsableSize: true, reports: [...STAGES[stage], ...counters] });
    const { page, faults, close, origin, token } = await pretend("changing", reports, serve);
    const b = name === "Chromium" ? new InChromium(page) : new InFirefox(firefox);
    if (name === "Firefox") {
      await firefox.go(`${origin}/#token=${token}`);
      await b.until("document.documentElement.dataset.state === 'ready'");
    }
    const row = (text) => `[...document.querySelectorAll(".list .row")].find((row) => row.querySelector(".name")?.textContent === "${text}")`;
    const active = () => b.run("return document.querySelector('.row.active')?.querySelector('.name')?.textContent");
    const look = async () => {
      await b.run("document.getElementById('main').dataset.looks = '0'; document.querySelector('#live').click()");
      await b.until("Number(document.getElementById('main').dataset.looks) > 0");
    };
    await b.until(`[...document.querySelectorAll(".processes tr")].some((one) => one.textContent.includes("${process.pid}"))`);
    await b.press("Measure", ".processes tr");
    await b.until(`document.querySelector("#live") && ${row("a")}`);
    // The reader closes b, moves to x, scrolls a little, and selects a text.
    await b.run(`${row("b")}.click()`);
    await b.focus(".list");
    await b.key("Home");
    for (let step = 0; step < 20 && (await active()) !== "x"; step++) await b.key("ArrowDown");
    assert.equal(await active(), "x");
    await b.until("location.hash.includes('open=')");
    const scroll = () => b.run("return document.querySelector('.list').scrollTop");
    const toPlace = async () => {
      await b.run(`document.querySelector(".list").scrollTop = ${SCROLLED}`);
      await b.until("document.querySelector('.list .row').dataset.row === '5'");
    };
    await toPlace();
    await b.run(`window.element = ${row("x")}; getSelection().selectAllChildren(window.element.querySelector(".name"))`);
    for (stage = 1; stage < STAGES.length; stage++) {
      await look();
      assert.equal(await scroll(), SCROLLED, `stage ${stage}`);
      if (stage < 3) {
        assert.equal(await active(), "x", `stage ${stage}`);
        assert.equal(await b.run("return document.querySelector('.list').getAttribute('aria-activedescendant') === document.querySelector('.row.active').id"), true);
      }
      assert.equal(await b.run("return document.activeElement === document.querySelector('.list')"), true, `stage ${stage}`);
      assert.equal(await b.run(`return ${row("b")}.getAttribute("aria-expanded")`), "false", `stage ${stage}`);
      if (stage === 1) {
        // The same elements show other texts.
        assert.equal(await b.run(`return window.element.isConnected && window.element !== ${row("x")} && window.element.querySelector(".name").textContent`), "y");
        assert.equal(await b.run("return getSelection().isCollapsed || getSelection().anchorNode.isConnected"), true);
      }
      await b.run("document.querySelector('#live').click()"); // stops the updates
      await b.until("!location.hash.includes('live=1')");
      const seen = await b.run(`return ${ROWS}`);
      assert.ok(seen.length > 30 && seen.some((line) => line.includes(stage === 1 ? "y" : "first")), seen.join("\n"));
      // A new document with the same address shows the same rows.
      await b.run("window.isOld = true; location.reload()").catch(() => {});
      await b.until(`!window.isOld && document.querySelector("#live") && ${row("a")}`);
      await toPlace();
      assert.deepEqual(await b.run(`return ${ROWS}`), seen, `stage ${stage}`);
      // Prepares the next stage.
      await b.focus(".list");
      await b.key("Home");
      for (let step = 0; stage < 2 && step < 20 && (await active()) !== "x"; step++) await b.key("ArrowDown");
      await toPlace();
    }
    if (name === "Firefox") assert.deepEqual(await firefox.errors(origin), []);
    else assert.deepEqual(faults, []);
    await close();
  });
}
