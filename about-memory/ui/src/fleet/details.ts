// Below the rows: the selected row's amounts over time with the versions as marks, the processes that hold most, and
// the questions that lead on.

import { brief, create, setTip, words } from "../widgets/elements";
import { button } from "../widgets/controls";
import { bytes } from "../text/format";
import type { Api } from "../serve/api";
import { chart, type ChartMark } from "../serve/chart";
import type { NamedRow } from "./rows";
import { address, QUESTIONS, type Scope } from "./scope";

/** A process of a row. */
interface ProcessName {
  host: string;
  process: string;
  pid: number | null;
}

interface FleetSeries {
  /** The times in milliseconds since 1970. */
  times: number[];
  /** The number of processes at each time. */
  processes: number[];
  lines: { name: string; amounts: (number | null)[] }[];
  marks: { time: number; text: string }[];
}

interface LargestProcess extends ProcessName {
  service: string;
  version: string;
  seen: number;
  amount: number | null;
}

const dateClock = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false, timeZone: "UTC" });

/** The scope of a row: the row's own service, path and version. */
function rowScope(scope: Scope, question: string, row: NamedRow | null): Scope {
  const text = (...names: string[]) => names.map((name) => row?.[name]).find((value) => typeof value === "string" && value !== "") as string | undefined;
  const path = question === "dark" ? "explicit/heap-unclassified" : text("path", "largest_path");
  // The version of other questions is a part of the answer, not of the processes to show.
  const version = question === "dark" ? text("version") : undefined;
  return { ...scope, service: text("service") ?? scope.service, path: path ?? scope.path, version: version ?? scope.version };
}

function rowProcess(row: NamedRow | null): ProcessName | null {
  const { host, process, pid } = row ?? {};
  if (typeof host !== "string" || typeof process !== "string") return null;
  return { host, process, pid: typeof pid === "number" ? pid : null };
}

/** Shows the details of a row, or of the whole scope. Returns when all parts are there. */
export async function showDetails(
  element: HTMLElement,
  api: Api,
  { question, scope, row, width }: { question: string; scope: Scope; row: NamedRow | null; width: number },
  showError: (text: string) => void,
  signal: AbortSignal,
) {
  const own = rowScope(scope, question, row);
  const process = rowProcess(row);
  const heading = create("h3", "", [own.service || "all services", own.path || "all paths", own.version].filter(Boolean).join(", "));
  const leads = create("nav", "leads");
  leads.setAttribute("aria-labelledby", "leads");
  for (const [name, head, about] of QUESTIONS) {
    if (name === question || name === "coverage") continue;
    const to = create("a", "", head);
    to.href = address(name, own);
    setTip(to, about);
    leads.append(to);
  }
  const lines = create("div");
  lines.append(create("p", "", "Loading the lines …"));
  const list = create("div");
  element.replaceChildren(heading, leads, lines, list);
  const ask = async <T>(path: string, body: unknown) => (await api.post(path, body, signal)) as T;
  const [series, largest] = await Promise.all([
    ask<FleetSeries>("series", { scope: own, process }),
    ask<{ processes: LargestProcess[] }>("processes", own),
  ]);
  lines.replaceChildren(...drawSeries(series, own, width));
  list.replaceChildren(processTable(largest.processes, api, own, showError));
}

function drawSeries({ times, processes, lines, marks }: FleetSeries, scope: Scope, width: number): Node[] {
  if (times.length === 0) return [create("p", "empty", "No process reports this path in these days.")];
  const reports = times.map((time, id) => ({ id, title: "", time, mark: false, about: `${processes[id]} processes` }));
  const drawn = lines.map(({ name, amounts }) => ({ path: name, units: "BYTES", amounts }));
  const versions = marks.map(
    ({ time, text }): ChartMark => ({
      time,
      text: brief(text),
      title: `version ${text} since ${dateClock.format(time)}`,
      to: address("versions", { ...scope, version: text }),
    }),
  );
  const legend = create("p", "legend");
  lines.forEach(({ name }, place) => {
    const item = create("span");
    item.append(create("span", `key s${place}`), words(` ${brief(name)}`));
    legend.append(item);
  });
  return [legend, chart(drawn, reports, versions, width, dateClock)];
}

function processTable(processes: LargestProcess[], api: Api, scope: Scope, showError: (text: string) => void): HTMLElement {
  const part = create("section");
  part.append(create("h3", "", "Processes that hold most"));
  const table = create("table", "processes rows");
  const head = create("tr");
  for (const name of ["service", "host", "process", "pid", "version", "last report", "amount", "report"]) {
    head.append(create("th", name === "amount" || name === "pid" ? "number" : "", name));
  }
  table.append(head);
  for (const one of processes) {
    const line = create("tr");
    for (const text of [one.service, one.host, one.process]) line.append(create("td", "name", brief(text)));
    line.append(create("td", "number", String(one.pid)), create("td", "name", brief(one.version)));
    line.append(create("td", "", dateClock.format(one.seen)), create("td", "number", one.amount === null ? "" : bytes(one.amount)));
    const cell = create("td");
    const open = button("Report", () => void show(), `Shows the last report of ${one.process} on ${one.host} in about-memory serve`);
    const show = async () => {
      open.disabled = true;
      try {
        const { host, process, pid } = one;
        const body = { scope: { ...scope, service: one.service, version: "" }, process: { host, process, pid } };
        const { url, title } = await api.post<{ url: string; title: string }>("report", body);
        const to = create("a", "", "Open the report");
        to.href = url;
        to.target = "_blank";
        to.rel = "noopener noreferrer";
        setTip(to, title);
        open.replaceWith(to);
        to.focus();
        window.open(url, "_blank", "noopener,noreferrer");
      } catch (error) {
        open.disabled = false;
        showError((error as Error).message);
      }
    };
    cell.append(open);
    line.append(cell);
    table.append(line);
  }
  const scrolls = create("div", "scrolls");
  scrolls.append(table);
  part.append(scrolls);
  return part;
}
