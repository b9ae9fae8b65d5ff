// Amounts over reports as lines with axes. Marks across the lines show the reader's marks, and other times, such as those
// of stacks and snapshots.

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
  /** The text of the tooltip, in place of number and title. */
  about?: string;
}

/** A line across the chart with a link. */
export interface ChartMark {
  /** The time in milliseconds since 1970. */
  time: number;
  text: string;
  title: string;
  /** The address that the link leads to. */
  to: string;
}

export interface SeriesLine {
  path: string;
  units: string;
  amounts: (number | null)[];
}

export const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
export const amountText = (amount: number, units: string) => (units === "BYTES" ? bytes(amount) : count(amount));

function element(parent: Element, name: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const made = draw(name, attributes, text);
  parent.append(made);
  return made;
}

const named = ({ id, title, about }: SeriesReport) => about ?? `${id}. ${title}`;

/** Draws a chart. `times` formats the times of the axis. */
export function chart(lines: SeriesLine[], reports: SeriesReport[], marks: ChartMark[], width: number, clockOfAxis = clock): SVGElement {
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
  reports.forEach((one, report) => {
    const at = x(report);
    if (report > 0 && (at - before < WIDE || (report < end && x(end) - at < WIDE))) return;
    before = at;
    const text = one.time === null ? one.title : clockOfAxis.format(one.time);
    const anchor = report === end && report > 0 ? "end" : report === 0 && reports.length > 1 ? "start" : "middle";
    const label = element(svg, "text", { x: at, y: HEIGHT - 6, "text-anchor": anchor }, shortText(text));
    element(label, "title", {}, named(one));
  });
  drawMarks(svg, reports, marks, isTimed ? across : null, x, bottom, right);
  const ends: { at: number; text: string }[] = [];
  lines.forEach(({ path, amounts }, place) => {
    const points = amounts.flatMap((amount, report) => (amount === null ? [] : [{ x: x(report), y: y(amount), amount, report }]));
    element(svg, "polyline", { class: `s${place}`, points: points.map((point) => `${point.x.toFixed(1)},${point.y.toFixed(1)}`).join(" ") });
    for (const point of points) {
      const dot = element(svg, "circle", { class: `s${place}`, cx: point.x.toFixed(1), cy: point.y.toFixed(1), r: points.length > 60 ? 1 : 3 });
      const { time } = reports[point.report];
      element(dot, "title", {}, `${path}: ${amountText(point.amount, units)} in ${named(reports[point.report])}${time === null ? "" : ` at ${clockOfAxis.format(time)}`}`);
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

/** Draws lines across the chart, with links to the reader's marks, and to what `marks` lead to. */
function drawMarks(
  svg: SVGElement,
  reports: SeriesReport[],
  marks: ChartMark[],
  across: ((time: number) => number) | null,
  x: (report: number) => number,
  bottom: number,
  right: number,
) {
  const all = reports.flatMap(({ id, title, mark }, report) => (mark ? [{ at: x(report), text: `mark ${id}`, title, to: link(["report", id]) }] : []));
  // Without times, the position of other marks among the reports is unknown.
  for (const { time, text, title, to } of across ? marks : []) all.push({ at: across!(time), text, title, to });
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
