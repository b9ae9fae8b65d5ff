// The tree map of a heap snapshot: it zooms and moves by pointer and keyboard, and counts the boxes that it does not
// draw.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { inBoth } from "./in_both.mjs";

const heap = (name) => fileURLToPath(new URL(`../../../heap-graph/tests/golden/${name}`, import.meta.url));
const BOXES = "[...document.querySelectorAll('.map .boxes button')]";
const scale = (b) => b.run("return Number(document.querySelector('.map').dataset.scale)");
/** The name, the position and the size of each box. */
const boxes = (b) => b.run(`return ${BOXES}.map((one) => [one.title, one.offsetLeft, one.offsetTop, one.offsetWidth, one.offsetHeight]).sort()`);
const active = (b) => b.run("return document.activeElement.title");
const turn = (b, y, x = 0.5) =>
  b.run(`const boxes = document.querySelector(".map .boxes"); const { left, top, width, height } = boxes.getBoundingClientRect();
    boxes.dispatchEvent(new WheelEvent("wheel", { deltaY: arguments[0], clientX: left + arguments[1] * width, clientY: top + height / 2, cancelable: true }))`, y, x);

inBoth("a tree map zooms and moves, and counts the boxes that it does not draw", [heap("medium.fxsnapshot")], async (b) => {
  await b.until("document.querySelector('#side li a')");
  await b.go("#/memory/1/treemap");
  await b.until(`${BOXES}.length > 5`);
  const whole = await boxes(b);
  // The text counts the boxes that are too small, with their bytes. All other nodes are drawn.
  const said = async () => {
    const text = await b.run("return document.querySelector('.map-bar .about').textContent");
    return text === "" ? 0 : Number(/^([\d,]+) groups? with [\d.]+ (?:[KM]i)?B too small to show$/.exec(text)[1].replaceAll(",", ""));
  };
  const hidden = await said();
  assert.ok(hidden > 3, String(hidden));
  // The wheel zooms around the pointer: the box under the pointer stays.
  const under = () => b.run("const { left, top, width, height } = document.querySelector('.map .boxes').getBoundingClientRect(); return document.elementFromPoint(left + 0.9 * width, top + height / 2).title");
  const before = await under();
  for (let step = 0; step < 3; step++) await turn(b, -50, 0.9);
  assert.ok((await scale(b)) > 3);
  assert.equal(await under(), before);
  assert.ok((await said()) < hidden, "boxes that were too small are now drawn");
  // Only visible boxes have elements.
  const [width, height] = await b.run("const { clientWidth, clientHeight } = document.querySelector('.map .boxes'); return [clientWidth, clientHeight]");
  for (const [name, left, top, w, h] of await boxes(b)) assert.ok(left < width && top < height && left + w > 0 && top + h > 0, name);
  await b.press("Whole map", ".map");
  assert.equal(await scale(b), 1);
  (await boxes(b)).forEach(([name, ...place], at) => {
    assert.equal(name, whole[at][0]);
    // Pixels are whole numbers on the screen, but not in the map.
    place.forEach((value, side) => assert.ok(Math.abs(value - whole[at][side + 1]) <= 1, name));
  });
  await turn(b, 5000);
  assert.equal(await scale(b), 1, "the whole map is the minimum scale");

  // By keyboard: Tab reaches one box, arrow keys move between boxes, and other keys zoom, move, and open a group.
  assert.equal(await b.run(`return ${BOXES}.filter((one) => one.tabIndex === 0).length`), 1);
  await b.focus(".map .boxes button[tabindex='0']");
  const names = new Set([await active(b)]);
  for (const key of ["ArrowDown", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"]) {
    const last = await active(b);
    await b.key(key);
    const now = await active(b);
    assert.ok(now !== "" && now !== last, `${key}: ${last}`);
    names.add(now);
  }
  assert.ok(names.size > 3);
  const chosen = await active(b);
  for (let step = 0; step < 3; step++) await b.key("+");
  assert.ok((await scale(b)) > 3);
  assert.equal(await active(b), chosen, "the focus stays with its box");
  const at = (await boxes(b))[0];
  await b.key("ArrowRight", "Shift");
  await b.key("ArrowLeft", "Shift");
  await b.key("ArrowLeft", "Shift");
  assert.notDeepEqual((await boxes(b))[0], at);
  // Another box gets the focus when the focused box leaves the view.
  const isThere = () => b.run("const { activeElement } = document; return activeElement.tabIndex === 0 && activeElement.matches('.map .boxes button')");
  for (let step = 0; step < 12; step++) {
    await b.key("ArrowRight", "Shift");
    assert.ok(await isThere(), `${step}`);
  }
  await b.key("-");
  await b.key("0");
  assert.equal(await scale(b), 1);
  assert.ok(await isThere());
  // A drag moves the map without opening a box. Enter after the drag opens a box.
  for (let step = 0; step < 3; step++) await b.key("+");
  const undragged = await boxes(b);
  await b.run(`const box = document.activeElement;
    box.parentElement.setPointerCapture = () => {};
    const { left, top } = box.getBoundingClientRect();
    const at = (by, buttons = 1) => ({ bubbles: true, buttons, detail: 1, clientX: left + 5 + by, clientY: top + 5 + by });
    box.dispatchEvent(new PointerEvent("pointerdown", at(0)));
    for (const by of [20, -40, -60]) box.dispatchEvent(new PointerEvent("pointermove", at(by)));
    box.dispatchEvent(new PointerEvent("pointerup", at(-60, 0)));
    box.dispatchEvent(new MouseEvent("click", at(-60, 0)))`);
  assert.notDeepEqual(await boxes(b), undragged);
  assert.match(await b.run("return location.hash"), /treemap/);
  const opened = (await active(b)).split(" · ")[0];
  await b.key("Enter");
  await b.until("location.hash.includes('/census?') && location.hash.includes(`filter=${encodeURIComponent(arguments[0]).replaceAll('%20', '+')}`)", opened);
});

inBoth("a tree map that fails can be tried again", [heap("small-a.fxsnapshot")], async (b) => {
  await b.until("document.querySelector('#side li a')");
  // The first answer is lost.
  await b.run(`const own = window.fetch; let isLost = false;
    window.fetch = (path, options) => (!isLost && String(options?.body).includes("tree-map") ? ((isLost = true), Promise.reject(new Error("lost"))) : own(path, options))`);
  await b.go("#/memory/1/treemap");
  await b.until("document.querySelector('.map .retry') && document.getElementById('status').className === 'error'");
  assert.equal(await b.status(), "lost");
  await b.click(".map .retry");
  await b.until(`${BOXES}.length > 5 && !document.querySelector('.retry') && document.getElementById('status').className === ''`);
});
