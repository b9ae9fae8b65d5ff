// Amounts over reports as lines with axes. Marks across the lines show the reader's marks, and the times of stacks and
// snapshots.

import { draw, setName } from "../widgets/elements";
import { bytes, count } from "../text/format";
import { link } from "./route";

const HEIGHT = 240;
/** The margins around the lines: for marks, for the amounts at the ends, for times, and for the amounts of the axis. */
const [TOP, RIGHT, BOTTOM, LEFT] = [22, 88, 24, 76];
/** The minimum distance between texts side by side, and between texts below each other. */
const [WIDE, HIGH] = [110, 14];

export interface SeriesReport {
  id: number;
  title: string;
  /** The time of the measurement, in milliseconds since 1970; `null` for a file. */
  time: number | null;
  mark: boolean;
}

/** Stacks or a heap snapshot that was taken of a process. */
export interface SeriesCapture {
  kind: "stacks" | "snapshot";
  id: number;
  title: string;
  time: number;
}

export interface SeriesLine {
  path: string;
  units: string;
  amounts: (number | null)[];
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
export const amountText = (amount: number, units: string) => (units === "BYTES" ? bytes(amount) : count(amount));

function element(parent: Element, name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = draw(name, attributes, text);
  parent.append(made);
  return made;
}

export function chart(lines: SeriesLine[], reports: SeriesReport[], taken: SeriesCapture[], width: number): SVGElement {
  const svg = draw("svg", { width, height: HEIGHT, role: "group" });
  setName(svg, `Lines of ${lines.map(({ path }) => path).join(", ")}; the table has the amounts.`);
  const { units } = lines[0];
  const [right, bottom] = [width - RIGHT, HEIGHT - BOTTOM];
  // If all times are known, the axis shows time. Otherwise the reports have equal distances.
  const times = reports.map(({ time }) => time);
  const isTimed = times.length > 1 && times.every((time) => time !== null) && times[times.length - 1]! > times[0]!;
  const [first, last] = isTimed ? [times[0]!, times[times.length - 1]!] : [0, Math.max(1, reports.length - 1)];
  const across = (value: number) => LEFT + ((value - first) * (right - LEFT)) / (last - first);
  const x = (report: number) => (isTimed ? across(times[report]!) : reports.length === 1 ? (LEFT + right) / 2 : across(report));
  const most = Math.max(1, ...lines.flatMap(({ amounts }) => amounts.map((amount) => amount ?? 0)));
  const y = (amount: number) => bottom - (Math.max(0, amount) / most) * (bottom - TOP);
  for (const part of [0, 0.5, 1]) {
    const at = y(part * most);
    element(svg, "line", { class: "grid", x1: LEFT, x2: right, y1: at, y2: at });
    element(svg, "text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" }, amountText(Math.round(part * most), units));
  }
  // Both ends have a text. Between them are as many texts as fit.
  const end = reports.length - 1;
  let before = -Infinity;
  reports.forEach(({ id, time, title }, report) => {
    const at = x(report);
    if (report > 0 && (at - before < WIDE || (report < end && x(end) - at < WIDE))) return;
    before = at;
    const text = time === null ? title : clock.format(time);
    const anchor = report === end && report > 0 ? "end" : report === 0 && reports.length > 1 ? "start" : "middle";
    const label = element(svg, "text", { x: at, y: HEIGHT - 6, "text-anchor": anchor }, shortText(text));
    element(label, "title", {}, `${id}. ${title}`);
  });
  drawMarks(svg, reports, taken, isTimed ? across : null, x, bottom, right);
  const ends: { at: number; text: string }[] = [];
  lines.forEach(({ path, amounts }, place) => {
    const points = amounts.flatMap((amount, report) => (amount === null ? [] : [{ x: x(report), y: y(amount), amount, report }]));
    element(svg, "polyline", { class: `s${place}`, points: points.map((point) => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join(" ") });
    for (const point of points) {
      const dot = element(svg, "circle", { class: `s${place}`, cx: point.x.toFixed(1), cy: point.y.toFixed(1), r: 3 });
      const { id, time, title } = reports[point.report];
      element(dot, "title", {}, `${path}: ${amountText(point.amount, units)} in ${id}. ${title}${time === null ? "" : ` at ${clock.format(time)}`}`);
    }
    const end = points[points.length - 1];
    if (end?.report === reports.length - 1) ends.push({ at: end.y, text: amountText(end.amount, units) });
  });
  // The amounts at the ends must not overlap.
  ends.sort((a, b) => a.at - b.at);
  let lowest = -Infinity;
  for (const { at, text } of ends) {
    const place = Math.max(at + 4, lowest + HIGH);
    if (place > bottom + HIGH / 2) break;
    lowest = place;
    element(svg, "text", { class: "end", x: right + 8, y: place }, text);
  }
  return svg;
}

const shortText = (text: string) => (text.length > 16 ? `${text.slice(0, 15)}…` : text);

/** Draws lines across the chart, with links to the marks, stacks and snapshots that were made at these times. */
function drawMarks(
  svg: SVGElement,
  reports: SeriesReport[],
  taken: SeriesCapture[],
  across: ((time: number) => number) | null,
  x: (report: number) => number,
  bottom: number,
  right: number,
) {
  const all = reports.flatMap(({ id, title, mark }, report) => (mark ? [{ at: x(report), text: `mark ${id}`, title, to: link(["report", id]) }] : []));
  // Without times, the position of stacks and snapshots among the reports is unknown.
  for (const { kind, id, title, time } of across ? taken : []) {
    const to = kind === "stacks" ? link(["stacks", id]) : link(["memory", id, "census"]);
    all.push({ at: across!(time), text: `${kind} ${id}`, title: `${title} at ${clock.format(time)}`, to });
  }
  let before = -Infinity;
  for (const { at, text, title, to } of all.sort((a, b) => a.at - b.at)) {
    if (at < LEFT - 1 || at > right + 1) continue;
    const place = element(svg, "a", { href: to, "aria-label": `${text}: ${title}` });
    element(place, "title", {}, title);
    // A line is too thin to hit with a pointer, so a wider rectangle is added.
    element(place, "rect", { x: at - 4, y: TOP - 6, width: 9, height: bottom - TOP + 6 });
    element(place, "line", { class: "mark", x1: at, x2: at, y1: TOP - 6, y2: bottom });
    // A text without room is only in the tooltip.
    if (at - before < 8 * text.length) continue;
    before = at;
    element(place, "text", { x: at, y: TOP - 9, "text-anchor": at < LEFT + 30 ? "start" : at > right - 30 ? "end" : "middle" }, text);
  }
}
