// Amounts over all reports of the list, as lines and as a table.

import { create } from "../elements";
import type { Api } from "./api";
import { bytes, count } from "./format";
import { exportMenu, type File } from "./export_menu";
import type { Page, Tell } from "./memory";
import { changed, link, type Route } from "./route";

interface Series {
  reports: { id: number; title: string }[];
  rows: { path: string; units: string; amounts: (number | null)[] }[];
  leftOut: number;
}

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
const HEIGHT = 220;
/** The rows that have lines: one for each class of the style. */
const LINES = 6;
const TYPING = 300;

export function seriesPage(main: HTMLElement, api: Api, route: Route, tell: Tell): Page {
  const request = new AbortController();
  const path = route.query.get("path") ?? "";
  const depth = route.query.get("depth") ?? "0";
  const bar = create("div", "bar");
  const go = (changes: Record<string, string>) => location.replace(changed(route, changes));
  const input = create("input");
  input.type = "search";
  input.id = "filter";
  input.value = path;
  input.placeholder = "a path, such as explicit/cache";
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => go({ path: input.value }), TYPING);
  });
  const inLabel = create("label", "", "Path ");
  inLabel.append(input);
  const levels = create("select");
  for (const level of ["0", "1", "2", "3"]) {
    const option = create("option", "", level);
    option.value = level;
    levels.append(option);
  }
  levels.value = depth;
  levels.addEventListener("change", () => go({ depth: levels.value }));
  const ofLevels = create("label", "", "Levels below ");
  ofLevels.append(levels);
  const file = (format: string) => () => api.download("series", { path, depth: Number(depth), format });
  const files: File[] = [
    ["all rows as a table (.tsv)", file("tsv")],
    ["counters for ui.perfetto.dev (.trace.json)", file("chrome-trace")],
  ];
  bar.append(inLabel, ofLevels, exportMenu(files, tell));
  const body = create("div", "series");
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  body.setAttribute("aria-label", "Amounts over the reports");
  main.replaceChildren(bar, body);
  const load = async () => {
    const series = await api.post<Series>("series", { path, depth: Number(depth) }, request.signal);
    show(body, series, tell);
  };
  load().catch((error: Error) => !request.signal.aborted && tell(error.message, true));
  if (path !== "") input.focus();
  return {
    close() {
      clearTimeout(timer);
      request.abort();
    },
  };
}

const text = (amount: number | null, units: string) =>
  amount === null ? "" : units === "BYTES" ? bytes(amount) : count(amount);

function show(body: HTMLElement, { reports, rows, leftOut }: Series, tell: Tell) {
  if (rows.length === 0) {
    body.replaceChildren(create("p", "empty", "No report has this path."));
    return tell("", false);
  }
  const table = create("table", "processes");
  const head = create("tr");
  head.append(create("th", "", "Path"));
  for (const { id, title } of reports) {
    const cell = create("th", "number");
    const to = create("a", "", String(id));
    to.href = link(["report", id]);
    to.title = title;
    to.setAttribute("aria-label", `${id}. ${title}`);
    cell.append(to);
    head.append(cell);
  }
  const growth = create("th", "number");
  if (reports.length > 1) {
    // What changed from the first to the last, row by row.
    const to = create("a", "", "Growth");
    to.href = link(["report", reports[reports.length - 1].id], { against: String(reports[0].id) });
    to.title = "The difference of the last and the first report";
    growth.append(to);
  } else growth.textContent = "Growth";
  head.append(growth);
  table.append(head);
  // Lines have one scale, so only rows of one unit have them.
  const { units } = rows[0];
  const drawn = rows.filter((row) => row.units === units).slice(0, LINES);
  for (const row of rows) {
    const line = create("tr");
    const name = create("td");
    const at = drawn.indexOf(row);
    if (at >= 0) name.append(create("span", `key s${at}`), " ");
    name.append(row.path);
    line.append(name);
    for (const amount of row.amounts) line.append(create("td", "number", text(amount, row.units)));
    const growth = (row.amounts[row.amounts.length - 1] ?? 0) - (row.amounts[0] ?? 0);
    const sign = growth > 0 ? "+" : "";
    line.append(create("td", `number ${growth > 0 ? "grow" : growth < 0 ? "shrink" : ""}`, sign + text(growth, row.units)));
    table.append(line);
  }
  body.replaceChildren(chart(drawn, reports.length), table);
  tell(`${count(rows.length)} rows${leftOut > 0 ? `, ${count(leftOut)} small ones left out` : ""}`, false);
  document.documentElement.dataset.rows = String(rows.length);
}

function chart(rows: Series["rows"], reports: number): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  // The drawing has the width of the page; its lines keep their own.
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `Lines of ${rows.map(({ path }) => path).join(", ")}; the table has the amounts.`);
  const most = Math.max(1, ...rows.flatMap(({ amounts }) => amounts.map((amount) => amount ?? 0)));
  rows.forEach(({ amounts }, at) => {
    const line = document.createElementNS(SVG, "polyline");
    const points = amounts.flatMap((amount, report) => {
      if (amount === null) return [];
      const x = reports === 1 ? WIDTH / 2 : 4 + (report * (WIDTH - 8)) / (reports - 1);
      return [`${x.toFixed(1)},${(HEIGHT - 4 - (amount / most) * (HEIGHT - 8)).toFixed(1)}`];
    });
    line.setAttribute("points", points.join(" "));
    line.setAttribute("class", `s${at}`);
    svg.append(line);
  });
  return svg;
}
