// A report: the tree, the treemap and the flame graph of the page that `html` writes, with data from the server. The
// page can repeat the measurement of a process each second, and can show the difference since a mark or another report.

import { decode } from "../data/reports";
import { byId, create, setName, setTip } from "../widgets/elements";
import { Model } from "../model/model";
import { ProcessIndex } from "../widgets/process_index";
import type { View } from "../views/view";
import { TreeView } from "../views/tree_view";
import { TreemapView } from "../views/treemap_view";
import type { Api, ServerState } from "./api";
import { button, check, choice, field, fillOptions, type MenuOption } from "../widgets/controls";
import { exportMenu, type ExportFile } from "./export_menu";
import type { Page, ShowStatus } from "./page";
import { reportFlame } from "../views/report_flame";
import { changed, link, readRoute, replaceAddress, type Route } from "./route";

/** Open rows are written to the address this many milliseconds after the last click or key. */
const RESTING = 300;
/** In a live report, the next measurement starts this many milliseconds after the last answer. */
const OFTEN = 1_000;
/** The format is made only one time, because making it takes longer than formatting a time. */
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
/** An address contains at most this many opened or closed rows. */
const MOST_TOGGLED = 40;

export function reportPage(main: HTMLElement, api: Api, state: ServerState, route: Route, showStatus: ShowStatus): Page {
  const page = new ReportPage(main, api, state, route, showStatus);
  main.replaceChildren(create("p", "empty", "Loading …"));
  page.start().catch((error: Error) => showStatus(error.message, true));
  return page;
}

/** Returns the rows that the reader opened or closed, as a value of the address. */
function written(model: Model): string {
  const all = model.toggled.slice(-MOST_TOGGLED);
  return all.length > 0 ? JSON.stringify(all) : "";
}

function opened(route: Route): Model["toggled"] {
  try {
    const all: unknown = JSON.parse(route.query.get("open") ?? "[]");
    return Array.isArray(all) ? all.filter((one) => Array.isArray(one) && one.length > 1) : [];
  } catch {
    return [];
  }
}

class ReportPage implements Page {
  private isClosed = false;
  private readonly id: number;
  /** The processes that were measured. */
  private readonly pids: number[];
  /** Whether the report never changes. */
  private readonly isKept: boolean;
  /** Whether the report was measured without private names. Later measurements then also omit them. */
  private readonly isAnonymized: boolean;
  private timer = 0;
  private isLooking = false;
  private live: boolean;
  private model!: Model;
  private shown!: View;

  constructor(
    private readonly main: HTMLElement,
    private readonly api: Api,
    private state: ServerState,
    private readonly route: Route,
    private readonly showStatus: ShowStatus,
  ) {
    this.id = Number(route.parts[1]);
    const own = state.reports.find(({ id }) => id === this.id);
    this.pids = own?.pids ?? [];
    this.isKept = own === undefined || own.given || own.mark;
    this.isAnonymized = own?.anonymized ?? false;
    this.live = route.query.get("live") === "1" && !this.isKept && this.pids.length > 0;
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  async start() {
    this.model = new Model(await this.load());
    if (this.isClosed) return;
    this.show();
    if (this.live) this.later();
  }

  /** The number of the report that changes are relative to; `null` without changes. */
  private get against(): number | null {
    const against = this.route.query.get("against");
    return against ? Number(against) : null;
  }

  private async load() {
    const { against } = this;
    return decode(await this.api.bytes(`reports/${this.id}${against === null ? "" : `?against=${against}`}`));
  }

  /** Measures the same processes again, as a new report. Returns its number. */
  private async measure(mark = false): Promise<number> {
    const body = { pids: this.pids, anonymize: this.isAnonymized, mark };
    return (await this.api.post<{ report: number }>("measure", body)).report;
  }

  /**
   * Measures the same processes again, in place of this report. If only amounts changed, the server sends only amounts.
   */
  private async look() {
    const before = this.model.data;
    const look = { against: this.against, shape: before.shape };
    const body = { pids: this.pids, anonymize: this.isAnonymized, renew: this.id, look };
    return decode(await this.api.postForBytes("measure", body), before);
  }

  private later() {
    this.timer = window.setTimeout(() => void this.again(), OFTEN);
  }

  /** Repeats the measurement. Only one measurement runs at a time, even if the reader switches "live" off and on. */
  private async again() {
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      const data = await this.look();
      if (this.isClosed || !this.live) return;
      this.model.renew(data);
      this.shown.update();
      this.showStatus(`Measured at ${clock.format()}`, false);
      this.main.dataset.looks = String(Number(this.main.dataset.looks ?? 0) + 1);
    } catch (error) {
      if (!this.isClosed) this.showStatus((error as Error).message, true);
    } finally {
      this.isLooking = false;
    }
    if (!this.isClosed && this.live) this.later();
  }

  private run(what: () => Promise<void>) {
    what().catch((error: Error) => this.showStatus(error.message, true));
  }

  private show() {
    const { main, model, route } = this;
    const views: View[] = [new TreeView(model), new TreemapView(model), ...(model.data.isDiff ? [] : [reportFlame(model)])];
    this.shown = views.find((view) => view.id === route.query.get("view")) ?? views[0];
    const bar = create("div", "bar");
    const tabs = create("span", "tabs");
    for (const view of views) {
      const tab = create("a", "", view.title);
      tab.href = changed(route, { view: view.id });
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        location.hash = changed(readRoute(), { view: view.id });
      });
      if (view === this.shown) tab.setAttribute("aria-current", "page");
      tabs.append(tab);
    }
    const filterLabel = field("Filter", route.query.get("filter") ?? "", () => update(), { hint: "part of a path" });
    const filter = filterLabel.querySelector("input")!;
    const box = (id: string, title: string, value: boolean) => {
      const label = check(title, value, () => update());
      const input = label.querySelector("input")!;
      input.id = id;
      return { label, input };
    };
    const is = (id: string) => route.query.get(id) === "1";
    const [verbose, regex] = [box("verbose", "verbose", is("verbose")), box("regex", "regular expression", is("regex"))];
    const tiny = box("hide-tiny", "hide tiny", route.query.get("tiny") !== "1");
    setTip(tiny.label, "Group entries below 1% of their tree as (N tiny)");
    const all = route.query.get("all");
    if (all !== null) model.toggleAll(all === "1");
    model.toggled = opened(route);
    const index = new ProcessIndex(create("nav", "process-index"), model, (row) => {
      const tree = views[0] as TreeView;
      tree.goTo(row);
      tree.element.focus();
    });
    const update = () => {
      model.apply({ filter: filter.value, regex: regex.input.checked, verbose: verbose.input.checked, hideTiny: tiny.input.checked });
      this.shown.update();
      if (model.filterError) this.showStatus(model.filterError, true);
      else if (byId("status").className) this.showStatus("", false);
      index.update();
      const on = (input: HTMLInputElement) => (input.checked ? "1" : "");
      const now = { filter: filter.value, verbose: on(verbose.input), regex: on(regex.input), live: this.live ? "1" : "" };
      const shown = { tiny: tiny.input.checked ? "" : "1", all: model.all === null ? "" : model.all ? "1" : "0" };
      replaceAddress(changed(route, { ...now, ...shown, open: written(model) }));
    };
    const toggleAll = (open: boolean) => {
      model.toggleAll(open);
      update();
    };
    // Only the tree has rows to open.
    const ofTree = this.shown === views[0] ? [tiny.label, button("Expand all", () => toggleAll(true)), button("Collapse all", () => toggleAll(false))] : [];
    views[0].element.addEventListener("click", () => this.note());
    views[0].element.addEventListener("keydown", () => this.note());
    this.toStacks.addEventListener("change", () => {
      location.hash = link(["stacks", this.toStacks.value], { reporter: (views[0] as TreeView).path });
    });
    this.drawLists();
    bar.append(tabs, filterLabel, regex.label, verbose.label, ...ofTree, ...this.processControls(update), this.since, this.toStacks, this.exports());
    const fill = create("div", "fill");
    fill.append(this.shown.element);
    const processes = model.data.processes.length > 1 && this.shown === views[0] ? [index.element] : [];
    main.replaceChildren(bar, ...processes, fill);
    update();
    if (!model.filterError) this.showStatus("", false);
    (this.shown.focused ?? this.shown.element).focus();
  }

  private noting = 0;

  /** Writes the open rows into the address after a delay. */
  private note() {
    clearTimeout(this.noting);
    this.noting = window.setTimeout(() => {
      if (!this.isClosed) replaceAddress(changed(readRoute(), { open: written(this.model) }));
    }, RESTING);
  }

  /** Returns the controls that measure the processes again; none for a report of a file. */
  private processControls(update: () => void): HTMLElement[] {
    if (this.pids.length === 0) return [];
    const live = create("input");
    live.type = "checkbox";
    live.id = "live";
    live.checked = this.live;
    live.addEventListener("change", () => {
      if (this.isKept) return this.run(() => this.follow({}));
      this.live = live.checked;
      clearTimeout(this.timer);
      if (this.live) void this.again();
      update();
    });
    const label = create("label");
    setTip(label, "Measure again each second");
    label.append(live, " live");
    const mark = () => this.run(async () => this.follow({ against: String(await this.measure(true)) }));
    return [label, button("Mark", mark, "Measure now, and show what changes from now on")];
  }

  /** Follows the processes in this report, or in a new report if this report never changes. */
  private async follow(changes: Record<string, string>) {
    const id = this.isKept ? await this.measure() : this.id;
    const { query } = this.route;
    location.hash = link(["report", id], { ...Object.fromEntries(query), ...changes, live: "1" });
  }

  /** The choice of an earlier report for the comparison. */
  private readonly since = choice("Since", [], "", (against) => (location.hash = changed(readRoute(), { against })));
  /** The menu that leads from the chosen row to the stacks of its blocks in a dump of DMD. */
  private readonly toStacks = create("select");

  /** Updates the lists of reports and stacks. The reader's choice stays. */
  private drawLists() {
    const others = this.state.reports.filter(({ id }) => id !== this.id);
    const against = this.route.query.get("against") ?? "";
    const select = this.since.querySelector("select")!;
    select.id = "against";
    const reports: MenuOption[] = [["", "nothing"], ...others.map(({ id, title }): MenuOption => [String(id), `${id}. ${title}`])];
    if (against !== "" && !others.some(({ id }) => String(id) === against)) reports.push([against, `the mark (${against})`]);
    fillOptions(select, reports, against);
    this.since.hidden = reports.length === 1;
    const { toStacks } = this;
    toStacks.id = "to-stacks";
    setName(toStacks, "Stacks of the chosen row");
    setTip(toStacks, "The stacks that allocated the memory of the chosen row");
    fillOptions(toStacks, [["", "Stacks of the row …"], ...this.state.stacks.map(({ id, title }): MenuOption => [String(id), `in ${id}. ${title}`])]);
    toStacks.hidden = this.state.stacks.length === 0;
  }

  renew(state: ServerState) {
    this.state = state;
    this.drawLists();
  }

  /** Returns the menu that exports the shown report for other tools. */
  private exports(): HTMLElement {
    const against = Number(this.route.query.get("against") ?? 0);
    const file = (format: string) => () => {
      const query = against ? `&against=${against}` : "";
      return this.api.download(`reports/${this.id}/file?format=${format}${query}`);
    };
    const files: ExportFile[] = [
      ["for Firefox and about-memory (.json.gz)", file("json")],
      ["the text of about:memory (.txt)", file("text")],
      ["the text with exact bytes and all entries (.txt)", file("verbose")],
    ];
    if (!against) {
      files.push(["OpenMetrics (.om)", file("openmetrics")], ["metrics for Prometheus (.prom)", file("prometheus")]);
    }
    return exportMenu(files, this.showStatus);
  }
}
