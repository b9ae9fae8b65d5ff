// The list of snapshots and reports beside each view.

import { brief, create, setName } from "../widgets/elements";
import type { Api, Snapshot, ServerState } from "./api";
import { bytes, count } from "../text/format";
import { button, chooseFile } from "../widgets/controls";
import type { ShowStatus } from "./page";
import { link, readRoute } from "./route";

const STATES: Record<string, string> = {
  saving: "Saving snapshot…",
  saved: "Saved",
  importing: "Importing snapshot…",
  reading: "Reading snapshot…",
};

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** Returns a list of links to the pages of one kind. */
function linkList(title: string, kind: string, all: { id: number; title: string; time?: number | null }[]): HTMLElement[] {
  const list = create("ul");
  const [current, own] = readRoute().parts;
  for (const { id, title, time } of all) {
    const item = create("li");
    if (current === kind && own === String(id)) item.className = "current";
    const to = create("a", "title", brief(title));
    to.href = link([kind, id]);
    item.append(to);
    if (time) item.append(create("small", "", clock.format(time)));
    list.append(item);
  }
  return [create("h2", "", title), list];
}

/** Returns the key of a control in the list. A control that is created again has the same key. */
function controlKey(element: Element): string {
  return element.getAttribute("aria-label") ?? element.getAttribute("href") ?? element.textContent!;
}

export class Side {
  /** The first snapshot of a comparison; 0 until it is chosen. */
  private baseline = 0;

  constructor(
    private readonly element: HTMLElement,
    private readonly api: Api,
    private readonly showStatus: ShowStatus,
  ) {}

  draw(state: ServerState) {
    if (!state.snapshots.some(({ id }) => id === this.baseline)) this.baseline = 0;
    const parts: HTMLElement[] = [create("h2", "", "Heap snapshots")];
    const list = create("ul");
    list.append(...state.snapshots.map((snapshot) => this.snapshot(snapshot, state)));
    parts.push(list);
    const read = state.snapshots.filter((snapshot) => snapshot.state === "read");
    if (read.length > 1) {
      const all = create("a", "title", "All snapshots side by side");
      // The server accepts at most 16 snapshots at once.
      all.href = link(["generations", ...read.slice(-16).map(({ id }) => id)]);
      parts.push(all);
    }
    if (!state.readOnly && state.snapshots.length > 0) {
      parts.push(button("Delete all", () => this.run(this.api.remove("snapshots")), "Remove all snapshots"));
    }
    if (state.snapshots.length === 0) parts.push(create("p", "none", "None yet. Take one of a process, or import one."));
    if (!state.readOnly) parts.push(this.importer());
    if (state.reports.length > 0) parts.push(...linkList("Reports", "report", state.reports));
    if (state.reports.length > 1) {
      const over = create("a", "title", "All reports over time");
      over.href = link(["series"]);
      parts.push(over);
    }
    if (state.stacks.length > 0) parts.push(...linkList("Stacks", "stacks", state.stacks));
    const { activeElement } = document;
    const focused = activeElement && this.element.contains(activeElement) ? controlKey(activeElement) : null;
    const { scrollTop } = this.element;
    this.element.replaceChildren(...parts);
    this.element.scrollTop = scrollTop;
    if (focused === null) return;
    const same = [...this.element.querySelectorAll<HTMLElement>("a, button")].find((element) => controlKey(element) === focused);
    same?.focus({ preventScroll: true });
  }

  private run(what: Promise<unknown>) {
    what.catch((error: Error) => this.showStatus(error.message, true));
  }

  private snapshot(snapshot: Snapshot, state: ServerState): HTMLElement {
    const { id } = snapshot;
    const item = create("li");
    const { parts } = readRoute();
    if ((parts[0] === "memory" && parts[1] === String(id)) || (parts[0] === "diff" && parts.includes(String(id), 1))) {
      item.className = "current";
    }
    const isRead = snapshot.state === "read";
    const title = create(isRead ? "a" : "span", "title", `${id}. ${brief(snapshot.title)}`);
    if (title instanceof HTMLAnchorElement) title.href = link(["memory", id, state.types.includes(id) ? "types" : "summary"]);
    item.append(title);
    if (snapshot.error !== null) item.append(create("small", "error", brief(snapshot.error)));
    else if (!isRead) item.append(create("small", "", STATES[snapshot.state] ?? snapshot.state));
    else {
      item.append(create("small", "", `${bytes(snapshot.bytes)} in ${count(snapshot.nodes)} nodes`));
      if (snapshot.time !== null) item.append(create("small", "", new Date(snapshot.time / 1000).toLocaleString()));
    }
    const add = (text: string, title: string, act: () => void) => {
      const element = button(text, act, title);
      setName(element, `${title}: ${id}. ${brief(snapshot.title)}`);
      item.append(element, " ");
    };
    if (isRead) {
      add("Save", "Save this snapshot as a file", () => {
        this.run(this.api.download("export", { format: "fxsnapshot", snapshot: id }));
      });
      if (state.snapshots.filter((other) => other.state === "read").length > 1) {
        const begins = this.baseline === id;
        const text = this.baseline === 0 ? "Compare" : begins ? "Baseline" : "…with this";
        add(text, "Compare two snapshots, the earlier first", () => {
          if (this.baseline !== 0 && !begins) location.hash = link(["diff", this.baseline, id]);
          this.baseline = this.baseline === 0 ? id : 0;
          this.draw(state);
          if (this.baseline !== 0) this.showStatus("Select the snapshot to compare to the baseline.", false);
          else if (begins) this.showStatus("", false);
        });
      }
    }
    const { pid } = snapshot;
    if (!state.readOnly && pid !== null) {
      add("Again", `Take another snapshot of process ${pid}`, () => {
        this.run(this.api.post(`processes/${pid}/heap-snapshot`, {}));
      });
    }
    if (!state.readOnly) {
      add("×", "Remove this snapshot", () => this.run(this.api.remove(`snapshots/${id}`)));
    }
    return item;
  }

  /** Returns the buttons that send files: heap snapshots, reports, dumps and recordings, and two reports to compare. */
  private importer(): HTMLElement {
    const one = chooseFile("", (file) => this.run(this.send(file)));
    const two = chooseFile(".json,.gz", (file) => this.run(this.compare(file)));
    const both = create("div");
    const load = button("Import…", () => one.click(), "Open a heap snapshot, a report, a dump of DMD or a recording");
    const diff = button("Load and diff…", () => two.click(), "Open two reports, the earlier first, and show what changed");
    both.append(load, " ", diff, one, two);
    return both;
  }

  private async send(file: File) {
    this.showStatus(`Importing ${file.name}…`, false);
    if (file.name.endsWith(".fxsnapshot")) await this.api.upload("snapshots", file);
    else if (/\.dmdrec$/.test(file.name)) location.hash = link(["stacks", (await this.api.upload("stacks", file)).stacks!]);
    else await this.report(file);
    this.showStatus("", false);
  }

  /**
   * Sends a report or a dump of DMD. Reports and dumps have the same extension. If the server accepts the file as
   * neither, the error has both reasons.
   */
  private async report(file: File) {
    const asReport = await this.api.upload("reports", file).catch((error: Error) => error);
    if (!(asReport instanceof Error)) {
      location.hash = link(["report", asReport.report!]);
      return;
    }
    const asStacks = await this.api.upload("stacks", file).catch((error: Error) => error);
    if (asStacks instanceof Error) {
      throw new Error(`Not a report: ${asReport.message}. Not a dump or a recording of DMD: ${asStacks.message}.`);
    }
    location.hash = link(["stacks", asStacks.stacks!]);
  }

  private first: number | null = null;

  /** Compares two files, which the reader chooses one after the other. */
  private async compare(...files: File[]) {
    for (const file of files) {
      const { report } = await this.api.upload("reports", file);
      if (this.first === null) {
        this.first = report!;
        this.showStatus(`${file.name} is the baseline. Choose the report to compare with it.`, false);
      } else {
        location.hash = link(["report", report!], { against: String(this.first) });
        this.first = null;
      }
    }
  }
}
