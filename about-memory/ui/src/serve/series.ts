// Amounts over all reports of the list, as lines and as a table.

import { brief, create, setName, setText, setTip, words } from "../widgets/elements";
import type { Api, ServerState } from "./api";
import { amountText, chart, type ChartMark, clock, type SeriesLine, type SeriesReport } from "./chart";
import { choice, field } from "../widgets/controls";
import { count } from "../text/format";
import { exportMenu, type ExportFile } from "./export_menu";
import type { Page, ShowStatus } from "./page";
import { changed, link, type Route } from "./route";

interface Series {
  reports: SeriesReport[];
  rows: SeriesLine[];
  taken: SeriesCapture[];
  leftOut: number;
}

/** At most this many rows have lines in the chart. The style sheet has one class for each line. */
const LINES = 6;

export function seriesPage(main: HTMLElement, api: Api, state: ServerState, route: Route, showStatus: ShowStatus): Page {
  const request = new AbortController();
  const path = route.query.get("path") ?? "";
  const depth = route.query.get("depth") ?? "0";
  const bar = create("div", "bar");
  const go = (changes: Record<string, string>) => location.replace(changed(route, changes));
  const file = (format: string) => () => api.download("series", { path, depth: Number(depth), format });
  const files: ExportFile[] = [
    ["all rows as a table (.tsv)", file("tsv")],
    ["counters for ui.perfetto.dev (.trace.json)", file("chrome-trace")],
  ];
  bar.append(
    field("Path", path, (path) => go({ path }), { isNew: true, hint: "a path, such as explicit/cache" }),
    choice("Levels below", ["0", "1", "2", "3"].map((level) => [level, level]), depth, (depth) => go({ depth })),
    exportMenu(files, showStatus),
  );
  const body = create("div", "series");
  body.tabIndex = 0;
  body.setAttribute("role", "region");
  setName(body, "Amounts over the reports");
  main.replaceChildren(bar, body);
  let series: Series | null = null;
  let width = 0;
  const draw = () => {
    if (series && width > 0) show(body, series, width, showStatus);
  };
  const observer = new ResizeObserver(() => {
    // Subtracts the padding and the width of a possible scroll bar.
    const now = body.clientWidth - 24;
    if (now === width) return;
    width = now;
    draw();
  });
  observer.observe(body);
  let turn = 0;
  const load = async () => {
    const own = ++turn;
    const next = await api.post<Series>("series", { path, depth: Number(depth) }, request.signal);
    if (own !== turn) return;
    series = next;
    draw();
  };
  const ask = () => void load().catch((error: Error) => !request.signal.aborted && showStatus(error.message, true));
  ask();
  /**
   * Returns a text that changes when the columns or marks of the chart change. A report that another page makes adds a
   * column. The time of a snapshot is known after the server has read the snapshot.
   */
  const listed = ({ reports, stacks, snapshots }: ServerState) =>
    JSON.stringify([reports.map(({ id }) => id), stacks.map(({ id }) => id), snapshots.map(({ id, state }) => [id, state])]);
  let known = listed(state);
  return {
    renew(state) {
      if (listed(state) === known) return;
      known = listed(state);
      ask();
    },
    close() {
      observer.disconnect();
      request.abort();
    },
  };
}

/** Stacks or a heap snapshot that was taken of a process. */
interface SeriesCapture {
  kind: "stacks" | "snapshot";
  id: number;
  title: string;
  time: number;
}

function markOf({ kind, id, title, time }: SeriesCapture): ChartMark {
  const to = kind === "stacks" ? link(["stacks", id]) : link(["memory", id, "census"]);
  return { time, text: `${kind} ${id}`, title: `${title} at ${clock.format(time)}`, to };
}

const text = (amount: number | null, units: string) => (amount === null ? "" : amountText(amount, units));

function show(body: HTMLElement, { reports, rows, taken, leftOut }: Series, width: number, showStatus: ShowStatus) {
  if (rows.length === 0) {
    body.replaceChildren(create("p", "empty", "No report has this path."));
    return showStatus("", false);
  }
  const table = create("table", "processes");
  const head = create("tr");
  head.append(create("th", "", "Path"));
  for (const { id, title } of reports) {
    const cell = create("th", "number");
    const to = create("a", "", String(id));
    to.href = link(["report", id]);
    setTip(to, title);
    setName(to, `${id}. ${title}`);
    cell.append(to);
    head.append(cell);
  }
  const growth = create("th", "number");
  if (reports.length > 1) {
    // Shows the changes from the first report to the last, row by row.
    const to = create("a", "", "Growth");
    to.href = link(["report", reports[reports.length - 1].id], { against: String(reports[0].id) });
    setTip(to, "The difference of the last and the first report");
    growth.append(to);
  } else setText(growth, "Growth");
  head.append(growth);
  table.append(head);
  // All lines share one scale, so only rows of one unit are drawn.
  const { units } = rows[0];
  const drawn = rows.filter((row) => row.units === units).slice(0, LINES);
  for (const row of rows) {
    const line = create("tr");
    const name = create("td");
    const at = drawn.indexOf(row);
    if (at >= 0) name.append(create("span", `key s${at}`), " ");
    name.append(words(brief(row.path)));
    line.append(name);
    for (const amount of row.amounts) line.append(create("td", "number", text(amount, row.units)));
    const growth = (row.amounts[row.amounts.length - 1] ?? 0) - (row.amounts[0] ?? 0);
    const sign = growth > 0 ? "+" : "";
    line.append(create("td", `number ${growth > 0 ? "grow" : growth < 0 ? "shrink" : ""}`, sign + text(growth, row.units)));
    table.append(line);
  }
  const { activeElement } = document;
  const focused = activeElement && body.contains(activeElement) ? activeElement.getAttribute("href") : null;
  const { scrollTop, scrollLeft } = body;
  body.replaceChildren(chart(drawn, reports, taken.map(markOf), width), table);
  body.scrollTo(scrollLeft, scrollTop);
  if (focused !== null) [...body.querySelectorAll<HTMLElement>("a")].find((one) => one.getAttribute("href") === focused)?.focus({ preventScroll: true });
  showStatus(`${count(rows.length)} rows${leftOut > 0 ? `, ${count(leftOut)} small ones left out` : ""}`, false);
  document.documentElement.dataset.rows = String(rows.length);
}
