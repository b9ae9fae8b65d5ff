// Running processes with their actions, the messages so far, and help for problems.

import { brief, create, setName, setText, setTip } from "../widgets/elements";
import type { Api, ServerState } from "./api";
import { arrival } from "./arrivals";
import { button, check } from "../widgets/controls";
import { exportMenu } from "./export_menu";
import { bytes, percent } from "../text/format";
import type { Page, ShowStatus } from "./page";
import { link } from "./route";
import { Sparkline } from "../widgets/sparkline";

interface ListedProcess {
  pid: number;
  name?: string;
  exe?: string;
  error?: string;
  /** Whether the process has ended. Only its recording then still exists. */
  ended?: boolean;
  /** The start time, in seconds since 1970. */
  started?: number;
  requests?: string[];
  /** Whether the process records its call stacks because a page requested it. */
  recording?: boolean;
  /** The reason why the recording could not be opened. */
  unopened?: string | null;
  resident: number | null;
  heap: number | null;
  /** `heap-unclassified` and `explicit` of the latest measurement. */
  unclassified?: [number, number] | null;
}

/** The page requests the list again after this many milliseconds. */
const OFTEN = 2_000;
/** At most this many messages are kept. */
const MESSAGES = 30;
const NOBODY =
  "No process listens. Start a program with ABOUT_MEMORY=listen, or call memory_reporter::listen() in it. " +
  "Or open a heap snapshot or a report: about-memory serve FILE.";
const HEADS = ["", "Process", "PID", "Age", "Resident", "Lately", "Heap", "Unclassified", "Actions"];

function asTable(processes: ListedProcess[]): Blob {
  const line = ({ pid, name, resident, heap }: ListedProcess) =>
    [pid, (name ?? "").replace(/\s/g, " "), resident ?? "", heap ?? ""].join("\t");
  return new Blob([["#pid\tname\tresident\theap", ...processes.map(line), ""].join("\n")]);
}

/** The latest amounts of resident memory of each process. They stay when the reader opens another page. */
const latest = new Map<number, number[]>();
const chosen = new Set<number>();
const messages: string[] = [];
let anonymize = false;
let verbose = false;

/** Returns how long ago a process started, as a text. */
function age(started: number): string {
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - started));
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  return days > 0 ? `${days} d ${hours % 24} h` : hours > 0 ? `${hours} h ${minutes % 60} min` : minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

interface ProcessCells {
  age: HTMLElement;
  resident: HTMLElement;
  heap: HTMLElement;
  unclassified: HTMLElement;
  line: Sparkline;
}

/** `refreshState` requests the state from the server. */
export function processesPage(main: HTMLElement, api: Api, state: ServerState, showStatus: ShowStatus, refreshState: () => Promise<void>): Page {
  const page = new ProcessesPage(main, api, state, showStatus, refreshState);
  page.start();
  return page;
}

class ProcessesPage implements Page {
  private timer = 0;
  private isClosed = false;
  private readonly cells = new Map<number, ProcessCells>();
  private known = "";
  private shown: ListedProcess[] = [];
  private readonly log = create("section", "messages");

  constructor(
    private readonly main: HTMLElement,
    private readonly api: Api,
    private state: ServerState,
    private readonly showStatus: ShowStatus,
    private readonly refreshState: () => Promise<void>,
  ) {}

  start() {
    this.main.replaceChildren(create("p", "empty", "Looking for processes …"));
    void this.refresh();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  /** Runs the action of a button. Adds a message with the result and the time. */
  private async act(title: string, done: string, run: () => Promise<unknown>) {
    this.showStatus(`${title}…`, false);
    const outcome = await run().then(
      () => ({ text: done, isError: false }),
      (error: Error) => ({ text: error.message, isError: true }),
    );
    this.showStatus(outcome.text, outcome.isError);
    messages.unshift(`${new Date().toISOString()} ${outcome.text}`);
    messages.splice(MESSAGES);
    this.drawLog();
  }

  private drawLog() {
    const list = create("ul");
    list.append(...messages.map((message) => create("li", "", message)));
    this.log.replaceChildren(create("h2", "", "Messages"), messages.length > 0 ? list : create("p", "none", "No messages yet."));
  }

  private async measure(pids: number[], minimize: boolean): Promise<number> {
    return (await this.api.post<{ report: number }>("measure", { pids, minimize, anonymize })).report;
  }

  private show(report: number, more: Record<string, string> = {}) {
    location.hash = link(["report", report], { verbose: verbose ? "1" : "", ...more });
  }

  private button(title: string, done: string, run: () => Promise<unknown>) {
    return button(title, () => void this.act(title, done, run));
  }

  private actions(process: ListedProcess): HTMLElement[] {
    const { api, state } = this;
    const { pid } = process;
    const can = (request: string) => !state.readOnly && process.requests?.includes(request);
    const of = `processes/${pid}`;
    const post = (action: string) => () => api.post<{ stacks: number }>(`${of}/${action}`, {});
    const name = `process ${pid}`;
    const take = async () => arrival((await api.post<{ snapshot: number }>(`${of}/heap-snapshot`, {})).snapshot, this.refreshState);
    const measured = (minimize: boolean) => async () => this.show(await this.measure([pid], minimize));
    const all: HTMLElement[] = [this.button("Measure", `Measured ${name}`, measured(false))];
    if (!state.readOnly) {
      all.push(this.button("Minimize", `Memory minimization completed (${name})`, post("minimize")));
      all.push(this.button("Minimize and measure", `Memory minimization completed (${name})`, measured(true)));
    }
    if (can("collect")) all.push(this.button("Collect garbage", `Garbage collection completed (${name})`, post("collect")));
    if (can("heap-snapshot")) all.push(this.button("Take snapshot", `Took a snapshot of ${name}`, take));
    if (state.typesOfProcesses && can("dmd-copy")) all.push(this.button("Types", `Reading the types of ${name}`, post("types")));
    if (can("dmd-dump")) {
      const stacks = async () => (location.hash = link(["stacks", (await post("stacks")()).stacks]));
      all.push(this.button("Stacks", `Took the stacks of ${name}`, stacks));
      all.push(this.button("Save DMD output", `Saved DMD's output of ${name}`, () => api.download(`${of}/dmd-dump`, {})));
    }
    if (can("dmd-track") && !process.unopened) all.push(this.recording(process, post));
    all.push(...this.unopenedActions(process));
    return all;
  }

  /** Returns the check box that starts and ends a recording. */
  private recording(process: ListedProcess, post: (action: string) => () => Promise<{ stacks: number }>): HTMLElement {
    const label = check("Record call stacks", process.recording ?? false, (on) => {
      // A second click would send a second request, which the server would refuse.
      label.querySelector("input")!.disabled = true;
      const start = () => post("record")();
      const stop = async () => (location.hash = link(["stacks", (await post("stop")()).stacks]));
      const done = on ? `Recording call stacks of process ${process.pid}` : `Recorded process ${process.pid}`;
      void this.act("Record call stacks", done, on ? start : stop).then(() => this.again());
    });
    label.className = process.recording ? "recording on" : "recording";
    return label;
  }

  /** Returns the check box for private names. The server may omit them in any case. */
  private anonymizing(): HTMLElement {
    const always = this.state.anonymize;
    const label = check("anonymize", anonymize || always, (on) => (anonymize = on));
    label.querySelector("input")!.disabled = always;
    if (always) setTip(label, "The server was started with --anonymize");
    return label;
  }

  /** Returns the actions for a recording that could not be opened. */
  private unopenedActions({ pid, name, unopened }: ListedProcess): HTMLElement[] {
    if (!unopened || this.state.readOnly) return [];
    const of = `processes/${pid}`;
    const stacks = async () => (location.hash = link(["stacks", (await this.api.post<{ stacks: number }>(`${of}/stop`, {})).stacks]));
    const discard = () => this.api.post(`${of}/discard`, {}).then(() => this.again());
    const remove = this.button("Discard recording", `Discarded the recording of process ${pid}`, discard);
    setTip(remove, `Removes the file. What ${name ?? "the process"} allocated while it was recorded is lost; save the recording first if you need it`);
    return [
      create("span", "error", `Its recording cannot be opened: ${unopened}`),
      this.button("Open again", `Recorded process ${pid}`, stacks),
      this.button("Save recording", `Saved the recording of process ${pid}`, () => this.api.download(`${of}/recording`)),
      remove,
    ];
  }

  renew(state: ServerState) {
    const hasChanged = state.anonymize !== this.state.anonymize || state.readOnly !== this.state.readOnly;
    this.state = state;
    if (hasChanged) this.again();
    else setText(this.counts, this.countsText());
  }

  private again() {
    this.known = "";
    clearTimeout(this.timer);
    void this.refresh();
  }

  /** Returns the buttons for all chosen processes. */
  private chosenActions(): HTMLElement[] {
    const pids = () => [...chosen];
    const needs = (least: number, run: () => Promise<unknown>) => () =>
      chosen.size < least ? Promise.reject(new Error(least === 1 ? "Choose processes first." : "Choose two processes.")) : run();
    const save = async () => this.api.download(`reports/${await this.measure(pids(), false)}/file?format=json`);
    const difference = async () => {
      const [first, second] = [await this.measure([pids()[0]], false), await this.measure([pids()[1]], false)];
      this.show(second, { against: String(first) });
    };
    const minimize = async () => {
      for (const pid of chosen) await this.api.post(`processes/${pid}/minimize`, {});
    };
    const all = [
      this.button("Measure chosen", "Measured", needs(1, async () => this.show(await this.measure(pids(), false)))),
      this.button("Measure and save…", "Measured and saved", needs(1, save)),
      this.button("Difference of two", "Measured", needs(2, difference)),
    ];
    if (!this.state.readOnly) all.push(this.button("Minimize chosen", "Memory minimization completed", needs(1, minimize)));
    return all;
  }

  private draw(processes: ListedProcess[]) {
    this.shown = processes;
    const now = JSON.stringify(processes.map(({ pid, name, error, requests, recording, unopened }) => [pid, name, error, requests, recording, unopened]));
    // Unchanged processes keep their rows, so that no button moves under the pointer.
    if (now !== this.known) {
      this.known = now;
      this.drawRows(processes);
    }
    for (const { pid, ended, resident, heap, started, unclassified } of processes) {
      const cells = ended ? undefined : this.cells.get(pid);
      if (!cells) continue;
      setText(cells.age, started ? age(started) : "");
      setText(cells.resident, resident == null ? "" : bytes(resident));
      if (resident != null) cells.line.add(resident);
      setText(cells.heap, heap == null ? "" : bytes(heap));
      setText(cells.unclassified, unclassified ? percent(...unclassified) : "");
      setTip(cells.unclassified, unclassified ? `${bytes(unclassified[0])} of ${bytes(unclassified[1])}, when it was measured last` : "Measure the process to see its unreported memory");
    }
  }

  private drawRows(processes: ListedProcess[]) {
    this.cells.clear();
    for (const all of [latest, chosen]) {
      for (const pid of all.keys()) if (!processes.some((process) => process.pid === pid)) all.delete(pid);
    }
    if (processes.length === 0) {
      this.drawLog();
      return this.main.replaceChildren(create("p", "empty", NOBODY), this.log, this.troubleshooting());
    }
    const table = create("table", "processes");
    const head = create("tr");
    head.append(...HEADS.map((title) => create(title ? "th" : "td", "", title)));
    table.append(head, ...processes.map((process) => this.row(process)));
    const bar = create("div", "bar");
    bar.append(
      ...this.chosenActions(),
      this.anonymizing(),
      check("verbose", verbose, (on) => (verbose = on)),
      exportMenu([["this list as a table (.tsv)", async () => this.api.save("processes.tsv", asTable(this.shown))]], this.showStatus),
    );
    this.drawLog();
    const body = create("div", "scrolls");
    body.tabIndex = 0;
    body.setAttribute("role", "region");
    setName(body, "Processes");
    body.append(table, this.log, this.troubleshooting());
    this.main.replaceChildren(bar, body);
  }

  private row(process: ListedProcess): HTMLElement {
    const { pid } = process;
    const row = create("tr");
    const number = () => create("td", "number");
    const [of, resident, heap, unclassified] = [number(), number(), number(), number()];
    const before = latest.get(pid) ?? [];
    latest.set(pid, before);
    const line = new Sparkline(before, bytes);
    // An ended process must not replace the cells of a new process with the same id.
    if (!process.ended) this.cells.set(pid, { age: of, resident, heap, unclassified, line });
    const box = check("", chosen.has(pid), (on) => (on ? chosen.add(pid) : chosen.delete(pid)));
    setName(box.querySelector("input")!, `Choose ${process.name ?? "process"} ${pid}`);
    const [choose, lately, last] = [create("td"), create("td"), create("td", "actions")];
    if (!process.ended) choose.append(box);
    lately.append(line.element);
    if (!process.error) last.append(...this.actions(process));
    else {
      const error = create("span", "error", brief(process.error));
      setTip(error, process.error);
      last.append(error);
      const post = (action: string) => () => this.api.post<{ stacks: number }>(`processes/${pid}/${action}`, {});
      if (process.unopened) last.append(...this.unopenedActions(process));
      else if (process.recording && !this.state.readOnly) last.append(this.recording(process, post));
    }
    const name = create("td", "", brief(process.name ?? "?"));
    setTip(name, process.exe ?? "");
    row.append(choose, name, create("td", "number", String(pid)), of, resident, lately, heap, unclassified, last);
    return row;
  }

  private readonly counts = create("li");

  private countsText(): string {
    const { snapshots, reports, stacks, cache } = this.state;
    return `${snapshots.length} heap snapshots, ${reports.length} reports, ${stacks.length} stacks; ${bytes(cache)} of results in the cache`;
  }

  /** Returns help for problems. */
  private troubleshooting(): HTMLElement {
    const { state } = this;
    const details = create("details", "troubleshooting");
    const list = create("ul");
    const lines = [
      `about-memory ${state.version} on ${state.system}${state.readOnly ? ", read-only" : ""}`,
      ...this.shown.map(({ pid, name, error, requests }) => `process ${pid} (${brief(name ?? "?")}): ${brief(error ?? `answers report, minimize, amounts${requests?.length ? `, ${requests.join(", ")}` : ""}`)}`),
      "no button “Take snapshot”: the program has to call heap_graph::answer_snapshots",
      "no button “Collect garbage”: the program has to call memory_reporter::live::answer_collections",
      "no buttons for stacks: start the program with about-memory run, or declare dmd::Dmd as its allocator",
      "no “Record call stacks”: DMD has to wait in the program (about-memory run --wait-for-track, dmd::Dmd::on_request)",
      "no button “Types”: the program runs under DMD and was built with debug = 2",
    ];
    setText(this.counts, this.countsText());
    const [first, ...rest] = lines.map((line) => create("li", "", line));
    list.append(first, this.counts, ...rest);
    details.append(create("summary", "", "Troubleshooting information"), list);
    return details;
  }

  private async refresh() {
    try {
      const { processes } = await this.api.get<{ processes: ListedProcess[] }>("processes");
      if (!this.isClosed) this.draw(processes);
    } catch (error) {
      if (!this.isClosed) this.showStatus((error as Error).message, true);
    }
    if (!this.isClosed) this.timer = window.setTimeout(() => void this.refresh(), OFTEN);
  }
}
