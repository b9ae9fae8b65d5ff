// Running processes, with what each of them can do.

import { create } from "../elements";
import type { Api, State } from "./api";
import { bytes } from "./format";
import { exportMenu } from "./export_menu";
import type { Page, Tell } from "./memory";
import { link } from "./route";
import { Sparkline } from "./sparkline";

interface Process {
  pid: number;
  name?: string;
  error?: string;
  requests?: string[];
  resident: number | null;
  heap: number | null;
}

/** The list is read anew this often, in milliseconds. */
const OFTEN = 2_000;
const NOBODY =
  "No process listens. Start a program with ABOUT_MEMORY=listen, or call memory_reporter::listen() in it. " +
  "Or open a heap snapshot or a report: about-memory serve FILE.";

function asTable(processes: Process[]): Blob {
  const line = ({ pid, name, resident, heap }: Process) =>
    [pid, (name ?? "").replace(/\s/g, " "), resident ?? "", heap ?? ""].join("\t");
  return new Blob([["#pid\tname\tresident\theap", ...processes.map(line), ""].join("\n")]);
}

/** The latest resident memory by process; it outlives the page. */
const latest = new Map<number, number[]>();

export function processesPage(main: HTMLElement, api: Api, state: State, tell: Tell): Page {
  let timer = 0;
  let isClosed = false;
  main.replaceChildren(create("p", "empty", "Looking for processes …"));
  const act = async (title: string, run: () => Promise<void>) => {
    tell(`${title} …`, false);
    await run().then(
      () => tell(`${title}: done`, false),
      (error: Error) => tell(error.message, true),
    );
  };
  const measure = (pid: number, minimize: boolean) => async () => {
    const { report } = await api.post<{ report: number }>("measure", { pids: [pid], minimize });
    location.hash = link(["report", report]);
  };
  const button = (title: string, run: () => Promise<void>) => {
    const element = create("button", "", title);
    element.type = "button";
    element.addEventListener("click", () => void act(title, run));
    return element;
  };
  const actions = (process: Process) => {
    const can = (request: string) => !state.readOnly && process.requests?.includes(request);
    const of = `processes/${process.pid}`;
    const all = [button("Measure", measure(process.pid, false))];
    if (can("minimize")) all.push(button("Minimize and measure", measure(process.pid, true)));
    if (can("heap-snapshot")) {
      all.push(button("Take snapshot", () => api.post(`${of}/heap-snapshot`, {})));
    }
    if (state.typesOfProcesses && can("dmd-copy")) all.push(button("Types", () => api.post(`${of}/types`, {})));
    if (can("dmd-dump")) {
      all.push(
        button("Stacks", async () => {
          const { stacks } = await api.post<{ stacks: number }>(`${of}/stacks`, {});
          location.hash = link(["stacks", stacks]);
        }),
      );
    }
    if (can("dmd-dump")) all.push(button("Save DMD output", () => api.download(`${of}/dmd-dump`, {})));
    return all;
  };
  const amounts = new Map<number, { resident: HTMLElement; heap: HTMLElement; line: Sparkline }>();
  let known = "";
  let shown: Process[] = [];
  const draw = (processes: Process[]) => {
    shown = processes;
    const now = JSON.stringify(processes.map(({ pid, name, error, requests }) => [pid, name, error, requests]));
    // The same processes keep their rows, so that no button moves under the mouse.
    if (now !== known) {
      known = now;
      amounts.clear();
      for (const pid of latest.keys()) if (!processes.some((process) => process.pid === pid)) latest.delete(pid);
      if (processes.length === 0) return main.replaceChildren(create("p", "empty", NOBODY));
      const table = create("table", "processes");
      const head = create("tr");
      head.append(...["Process", "PID", "Resident", "Lately", "Heap", "Actions"].map((title) => create("th", "", title)));
      const rows = processes.map((process) => {
        const row = create("tr");
        const [resident, heap] = [create("td", "number"), create("td", "number")];
        const before = latest.get(process.pid) ?? [];
        latest.set(process.pid, before);
        const line = new Sparkline(before, bytes);
        amounts.set(process.pid, { resident, heap, line });
        const lately = create("td");
        lately.append(line.element);
        const last = create("td");
        if (process.error) last.append(create("span", "error", process.error));
        else last.append(...actions(process));
        const pid = create("td", "number", String(process.pid));
        row.append(create("td", "", process.name ?? "?"), pid, resident, lately, heap, last);
        return row;
      });
      table.append(head, ...rows);
      const bar = create("div", "bar");
      bar.append(exportMenu([["this list as a table (.tsv)", async () => api.save("processes.tsv", asTable(shown))]], tell));
      main.replaceChildren(bar, table);
    }
    for (const { pid, resident, heap } of processes) {
      const cells = amounts.get(pid);
      if (!cells) continue;
      cells.resident.textContent = resident == null ? "" : bytes(resident);
      if (resident != null) cells.line.add(resident);
      cells.heap.textContent = heap == null ? "" : bytes(heap);
    }
  };
  const refresh = async () => {
    try {
      const { processes } = await api.get<{ processes: Process[] }>("processes");
      if (!isClosed) draw(processes);
    } catch (error) {
      if (!isClosed) tell((error as Error).message, true);
    }
    if (!isClosed) timer = window.setTimeout(() => void refresh(), OFTEN);
  };
  void refresh();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
