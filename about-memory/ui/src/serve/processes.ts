// Running processes with their actions, the messages so far, and help for problems.

import { brief, create, setName, setText, setTip } from "../widgets/elements";
import type { Api, ServerState } from "./api";
import { arrival } from "./arrivals";
import { button, check, field } from "../widgets/controls";
import { exportMenu } from "./export_menu";
import { menu } from "../widgets/menu";
import { bytes, percent } from "../text/format";
import { age, type ListedProcess } from "./listed_process";
import { MOST_SAMPLES, type Sample } from "./live_chart";
import { ProcessCard } from "./process_card";
import type { Page, ShowStatus } from "./page";
import { link } from "./route";
import { keepAmount, Sparkline } from "../widgets/sparkline";

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

/** The amounts of each process over the last minutes. */
const samples = new Map<number, Sample[]>();
/** The processes whose cards the reader opened or closed. */
const cards = new Map<number, boolean>();
let wanted = "";
/** The column that sorts the list, and its direction. */
let order: { by: string; ascending: boolean } | null = null;

/** The columns that sort the list, by title. */
const ORDERS: Record<string, (process: ListedProcess) => number | string> = {
  Process: ({ name }) => name ?? "",
  PID: ({ pid }) => pid,
  Age: ({ started }) => -(started ?? 0),
  Resident: ({ resident }) => resident ?? -1,
  Heap: ({ heap }) => heap ?? -1,
  Unclassified: ({ unclassified }) => (unclassified ? unclassified[0] / Math.max(1, unclassified[1]) : -1),
};

interface ProcessCells {
  age: HTMLElement;
  resident: HTMLElement;
  heap: HTMLElement;
  unclassified: HTMLElement;
  line: Sparkline;
  card: ProcessCard | null;
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
    const main = this.button("Measure", `Measured ${name}`, measured(false));
    main.classList.add("primary");
    const all: HTMLElement[] = [];
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
    const more = all.length > 0 ? [menu("More", `More actions for ${process.name ?? "process"} ${pid}`, all)] : [];
    const isRecording = process.recording && can("dmd-track") && !process.unopened ? [this.stopping(post)] : [];
    return [main, ...more, ...isRecording, ...this.unopenedActions(process)];
  }

  /** Returns the button that ends a recording, beside the menu, so that the reader sees that the process records. */
  private stopping(post: (action: string) => () => Promise<{ stacks: number }>): HTMLElement {
    const stop = async () => (location.hash = link(["stacks", (await post("stop")()).stacks]));
    const element = this.button("Stop recording", "Recorded", stop);
    element.classList.add("stop");
    return element;
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
      const [first, second] = await Promise.all(pids().slice(0, 2).map((pid) => this.measure([pid], false)));
      this.show(second, { against: String(first) });
    };
    const minimize = async () => {
      // A process that hangs must not delay the other ones.
      await Promise.all([...chosen].map((pid) => this.api.post(`processes/${pid}/minimize`, {})));
    };
    const all = [
      this.button("Measure chosen", "Measured", needs(1, async () => this.show(await this.measure(pids(), false)))),
      this.button("Measure and save…", "Measured and saved", needs(1, save)),
      this.button("Difference of two", "Measured", needs(2, difference)),
    ];
    if (!this.state.readOnly) all.push(this.button("Minimize chosen", "Memory minimization completed", needs(1, minimize)));
    return all;
  }

  /** Keeps the amounts of a new list. */
  private sample(processes: ListedProcess[]) {
    for (const { pid, ended, resident, heap } of processes) {
      if (ended || resident == null) continue;
      const all = samples.get(pid) ?? [];
      samples.set(pid, all);
      all.push({ time: Date.now(), resident, heap });
      if (all.length > MOST_SAMPLES) all.shift();
      const amounts = latest.get(pid) ?? [];
      latest.set(pid, amounts);
      keepAmount(amounts, resident);
    }
  }

  private draw(processes: ListedProcess[]) {
    this.shown = processes;
    const now = JSON.stringify([wanted, order, processes.map(({ pid, name, error, requests, recording, unopened }) => [pid, name, error, requests, recording, unopened])]);
    // Unchanged processes keep their rows, so that no button moves under the pointer.
    if (now !== this.known) {
      this.known = now;
      this.drawRows(processes);
    }
    for (const process of processes) {
      const { pid, ended, resident, heap, started, unclassified } = process;
      const cells = ended ? undefined : this.cells.get(pid);
      if (!cells) continue;
      cells.card?.update(process, this.state);
      setText(cells.age, started ? age(started) : "");
      setText(cells.resident, resident == null ? "" : bytes(resident));
      cells.line.draw();
      setText(cells.heap, heap == null ? "" : bytes(heap));
      setText(cells.unclassified, unclassified ? percent(...unclassified) : "");
      setTip(cells.unclassified, unclassified ? `${bytes(unclassified[0])} of ${bytes(unclassified[1])}, when it was measured last` : "Measure the process to see its unreported memory");
    }
  }

  private drawRows(processes: ListedProcess[]) {
    this.cells.clear();
    for (const all of [latest, chosen, samples, cards]) {
      for (const pid of all.keys()) if (!processes.some((process) => process.pid === pid)) all.delete(pid);
    }
    if (processes.length === 0) {
      this.drawLog();
      return this.main.replaceChildren(create("p", "empty", NOBODY), this.log, this.troubleshooting());
    }
    const table = create("table", "processes");
    const head = create("tr");
    head.append(...HEADS.map((title) => this.head(title, processes)));
    const rows = this.ordered(processes);
    table.append(head, ...rows.flatMap((process) => this.row(process, processes.length === 1)));
    if (rows.length === 0) table.append(this.emptyRow());
    const bar = create("div", "bar");
    // The actions for several processes are useful only if there are several.
    const filter = processes.length > 1 ? [this.filter(processes)] : [];
    const several = this.chosenActions();
    bar.append(
      ...filter,
      menu("Chosen processes", "Actions for the chosen processes", several),
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

  /** Returns the head of a column, with a button if the column can sort the list. */
  private head(title: string, processes: ListedProcess[]): HTMLElement {
    const cell = create(title ? "th" : "td", ["PID", "Age", "Resident", "Heap", "Unclassified"].includes(title) ? "number" : "");
    if (!(title in ORDERS)) {
      setText(cell, title);
      return cell;
    }
    const isSorted = order?.by === title;
    cell.setAttribute("aria-sort", !isSorted ? "none" : order!.ascending ? "ascending" : "descending");
    const sort = button(title + (isSorted ? (order!.ascending ? " ▲" : " ▼") : ""), () => {
      // The first click sorts names from the start of the alphabet, and amounts from the largest.
      const first = title === "Process" || title === "PID";
      order = { by: title, ascending: isSorted ? !order!.ascending : first };
      this.draw(processes);
      [...this.main.querySelectorAll<HTMLButtonElement>(".processes th button")].find((one) => one.textContent!.startsWith(title))?.focus();
    });
    sort.className = "sort";
    cell.append(sort);
    return cell;
  }

  /** Returns the processes that pass the filter, in the chosen order. */
  private ordered(processes: ListedProcess[]): ListedProcess[] {
    const text = wanted.trim().toLowerCase();
    const shown = processes.filter(({ pid, name }) => `${name ?? ""} ${pid}`.toLowerCase().includes(text));
    if (!order) return shown;
    const [key, sign] = [ORDERS[order.by], order.ascending ? 1 : -1];
    return shown.sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : a.pid - b.pid));
  }

  private filter(processes: ListedProcess[]): HTMLElement {
    return field("Filter", wanted, (value) => {
      wanted = value;
      sessionStorage.setItem("typing", "1");
      this.draw(processes);
    }, { isNew: true, hint: "part of a name, or a PID" });
  }

  private emptyRow(): HTMLElement {
    const row = create("tr");
    const cell = create("td", "", "No process passes the filter.");
    cell.colSpan = HEADS.length;
    row.append(cell);
    return row;
  }

  /** Returns the card of a process, in a row of its own. */
  private cardRow(process: ListedProcess): { row: HTMLElement; card: ProcessCard } {
    const { pid } = process;
    const all = samples.get(pid) ?? [];
    samples.set(pid, all);
    const can = (request: string) => !this.state.readOnly && process.requests?.includes(request) === true;
    const post = (action: string) => this.api.post<{ stacks: number }>(`processes/${pid}/${action}`, {});
    const act = (title: string, done: string, run: () => Promise<unknown>) => void this.act(title, done, run);
    const card = new ProcessCard(process, all, this.state, {
      stacks: can("dmd-dump") ? () => act("Stacks", `Took the stacks of process ${pid}`, async () => (location.hash = link(["stacks", (await post("stacks")).stacks]))) : null,
      record: can("dmd-track") && !process.recording && !process.unopened ? (length) => act("Record call stacks", `Recorded process ${pid}`, async () => {
        // The server ends the recording, also if the reader closes the page.
        await post(`record?milliseconds=${Math.round(length)}`);
        this.again();
        await new Promise((later) => setTimeout(later, length));
        // The reader may have gone to another view, or have stopped the recording.
        if (this.isClosed || !this.shown.find((one) => one.pid === pid)?.recording) return;
        location.hash = link(["stacks", (await post("stop")).stacks]);
      }) : null,
    });
    const row = create("tr", "of-card");
    const cell = create("td");
    cell.colSpan = HEADS.length;
    cell.append(card.element);
    row.append(cell);
    return { row, card };
  }

  private row(process: ListedProcess, isOnly: boolean): HTMLElement[] {
    const { pid } = process;
    const row = create("tr");
    const number = () => create("td", "number");
    const [of, resident, heap, unclassified] = [number(), number(), number(), number()];
    const before = latest.get(pid) ?? [];
    latest.set(pid, before);
    const line = new Sparkline(before, bytes);
    // An ended process must not replace the cells of a new process with the same id.
    const hasCard = !process.ended && !process.error;
    const isOpen = hasCard && (cards.get(pid) ?? isOnly);
    const detail = isOpen ? this.cardRow(process) : null;
    if (!process.ended) this.cells.set(pid, { age: of, resident, heap, unclassified, line, card: detail?.card ?? null });
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
    const name = create("td", "", hasCard ? "" : brief(process.name ?? "?"));
    setTip(name, process.exe ?? "");
    if (hasCard) {
      const open = button(brief(process.name ?? "?"), () => {
        cards.set(pid, !isOpen);
        this.known = "";
        this.draw(this.shown);
        this.main.querySelector<HTMLElement>(`.processes button[data-pid="${pid}"]`)?.focus();
      });
      open.className = "name";
      open.dataset.pid = String(pid);
      open.setAttribute("aria-expanded", String(isOpen));
      name.append(open);
    }
    row.append(choose, name, create("td", "number", String(pid)), of, resident, lately, heap, unclassified, last);
    return detail ? [row, detail.row] : [row];
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
      if (this.isClosed) return;
      this.sample(processes);
      this.draw(processes);
    } catch (error) {
      if (!this.isClosed) this.showStatus((error as Error).message, true);
    }
    if (!this.isClosed) this.timer = window.setTimeout(() => void this.refresh(), OFTEN);
  }
}
