// The views of one or more snapshots: aggregate, tree map, dominators, classes, individuals, suspects,
// search, difference, generations.

import { brief, create } from "../widgets/elements";
import type { Api, ServerState } from "./api";
import { breakdownMenu, GROUPS, LABELS } from "./breakdown_menu";
import { button, check, field } from "../widgets/controls";
import { exportMenu, type ExportFile } from "./export_menu";
import { MapView } from "./map";
import { OpenRows } from "./open_rows";
import { JOB_TEXTS, type Page, type ShowStatus } from "./page";
import { PathsPane } from "./paths";
import { changed, link, readRoute, type Route } from "./route";
import { SnapshotSummary } from "./snapshot_summary";
import { Table, type TableRow } from "./table";
import { TypesView } from "./types";

const VIEWS: [string, string][] = [
  ["summary", "Summary"],
  ["treemap", "Tree Map"],
  ["census", "Aggregate"],
  ["dominators", "Dominators"],
  ["classes", "Classes"],
  ["suspects", "Suspects"],
  ["search", "Search"],
];
/** The view of a snapshot with typed blocks. */
const TYPES: [string, string] = ["types", "Types"];
/**
 * The levels of dominators below the root that are open at first. As in Firefox, there are three levels including the
 * root.
 */
const DEPTH = 2;
/** Changes of an address that remove the open rows and the focused row. */
const NO_ROWS = { open: "", all: "", closed: "", at: "" };

/** Shows a route below `#/memory`, `#/diff` or `#/generations`. */
export function memoryPage(main: HTMLElement, api: Api, state: ServerState, route: Route, showStatus: ShowStatus): Page {
  return new MemoryPage(main, api, state, route, showStatus).show();
}

class MemoryPage {
  private readonly isDiff: boolean;
  /** The snapshots side by side; empty for a view of one snapshot or of a difference. */
  private readonly generations: number[];
  private readonly first: number;
  private readonly second: number;
  private readonly view: string;
  private readonly hasGroups: boolean;
  private readonly by: string;
  private readonly invert: boolean;
  private readonly filter: string;
  private readonly label: string;
  private readonly openRows: OpenRows;
  private readonly bar = create("div", "bar");
  /** The check boxes of the snapshots that can be shown side by side. */
  private readonly sides = create("span", "sides");

  constructor(
    private readonly main: HTMLElement,
    private readonly api: Api,
    private readonly state: ServerState,
    private readonly route: Route,
    private readonly showStatus: ShowStatus,
  ) {
    const { parts, query } = route;
    this.isDiff = parts[0] === "diff";
    this.generations = parts[0] === "generations" ? parts.slice(1).map(Number) : [];
    [this.first, this.second] = [Number(parts[1]), Number(parts[2])];
    this.view = this.isDiff ? "diff" : this.generations.length ? "generations" : (parts[2] ?? "census");
    this.hasGroups = ["census", "treemap", "diff", "generations"].includes(this.view);
    this.by = query.get("by") ?? "type";
    // A tree by type shows leaves first, as in Firefox.
    this.invert = (query.get("invert") ?? (this.by === "type" ? "1" : "0")) === "1";
    this.filter = query.get("filter") ?? "";
    this.label = query.get("label") ?? "";
    // The rows that a filter keeps are open, and so are the first levels of dominators.
    this.openRows = new OpenRows(query, this.filter !== "" || this.depth > 0);
  }

  /** The number of levels that are open at first. */
  private get depth() {
    return this.view === "dominators" ? DEPTH : 0;
  }

  private go(changes: Record<string, string>) {
    location.replace(changed(readRoute(), { ...this.openRows.address, ...changes }));
  }

  /** Returns the values for the address, so that the same rows stay open for other snapshots. */
  private kept(): Record<string, string> {
    return { ...Object.fromEntries(readRoute().query), ...this.openRows.address };
  }

  show(): Page {
    const { main, api, first, view, bar, showStatus } = this;
    main.replaceChildren(bar);
    this.drawHead();
    this.drawControls();
    if (view === "types") {
      const types = new TypesView(api, first, this.by, showStatus);
      main.append(types.element);
      types.element.focus();
      return types;
    }
    if (view === "summary") {
      const summary = new SnapshotSummary(api, this.state.snapshots.find(({ id }) => id === first)!, showStatus);
      main.append(summary.element);
      summary.element.focus();
      return summary;
    }
    const question = this.question();
    if (!question) return this.empty(`There is no view called ${view}.`);
    bar.append(exports(api, question, this.isDiff || this.generations.length ? null : first, showStatus));
    if (view === "treemap") return this.showMap(question);
    if (view === "search" && !this.route.query.get("q")) {
      const page = this.empty("Type a part of a name, or the id of a node as @0x1f or 31.");
      bar.querySelector("input")?.focus();
      return page;
    }
    return this.showTable(question);
  }

  /** The title of a comparison, or the tabs of a snapshot. */
  private drawHead() {
    const { bar, first, second, generations } = this;
    if (this.isDiff) {
      bar.append(create("strong", "", `From snapshot ${first} to snapshot ${second}`));
      bar.append(button("Swap", () => (location.hash = link(["diff", second, first], this.kept()))));
    } else if (generations.length) {
      const swap = () => (location.hash = link(["generations", ...[...generations].reverse()], this.kept()));
      bar.append(create("strong", "", "Growth from the first snapshot to the last"), button("Swap", swap), this.sides);
      this.drawSides(this.state);
    } else {
      const tabs = create("span", "tabs");
      const views = this.state.types.includes(first) ? [TYPES, ...VIEWS] : VIEWS;
      for (const [name, title] of views) {
        const tab = create("a", "", title);
        tab.href = link(["memory", first, name]);
        if (name === this.view) tab.setAttribute("aria-current", "page");
        tabs.append(tab);
      }
      bar.append(tabs);
    }
  }

  private drawSides({ snapshots }: ServerState) {
    const { sides, generations } = this;
    const read = snapshots.filter(({ state }) => state === "read");
    const boxes = new Map([...sides.querySelectorAll("label")].map((label) => [Number(label.dataset.snapshot), label]));
    for (const [id, label] of boxes) if (!read.some((snapshot) => snapshot.id === id)) label.remove();
    const box = (id: number, title: string) => {
      const chosen = generations.includes(id);
      const label = check(`${id}. ${brief(title)}`, chosen, () => {
        const next = chosen ? generations.filter((other) => other !== id) : [...generations, id];
        location.hash = link(["generations", ...next], this.kept());
      });
      label.dataset.snapshot = String(id);
      // At least one snapshot stays chosen.
      label.querySelector("input")!.disabled = chosen && generations.length === 1;
      return label;
    };
    // A new snapshot has a larger number than all earlier ones, so it is last.
    sides.append(...read.filter(({ id }) => !boxes.has(id)).map(({ id, title }) => box(id, title)));
  }

  /** Draws the menus and fields of the view. */
  private drawControls() {
    const { bar, view, hasGroups, state, by, invert, route } = this;
    if (hasGroups) {
      const displays = view === "treemap" ? state.displays["tree-map"] : state.displays.census;
      const set = (value: string, inverted: string) => this.go({ by: value, invert: inverted, ...NO_ROWS });
      bar.append(...breakdownMenu("Group by", GROUPS, displays, [by, invert], set));
    }
    if (hasGroups && view !== "treemap") {
      bar.append(check("Invert tree", invert, (value) => this.go({ invert: value ? "1" : "0", ...NO_ROWS })));
    }
    if (view !== "suspects" && view !== "search" && view !== "types" && view !== "summary") {
      bar.append(field("Filter", this.filter, (value) => this.go({ filter: value, at: "" }), { isNew: true }));
    }
    if (view === "search") {
      const set = (value: string) => this.go({ q: value, at: "" });
      bar.append(field("Name or id", route.query.get("q") ?? "", set, { isNew: true }));
    }
    if (["dominators", "suspects", "search", "individuals"].includes(view)) {
      const set = (value: string) => this.go({ label: value });
      bar.append(...breakdownMenu("Label by", LABELS, state.displays.label, [this.label, null], set));
    }
    if (view === "individuals") bar.append(...groupHead(route, this.first));
  }

  /** Returns the query for the server; `undefined` for an unknown view. */
  private question(): Record<string, unknown> | undefined {
    const { first, second, by, invert, filter, generations } = this;
    const { query } = this.route;
    const questions: Record<string, Record<string, unknown>> = {
      census: { view: "census", snapshot: first, by, invert, filter },
      treemap: { view: "tree-map", snapshot: first, by, filter },
      diff: { view: "diff", baseline: first, comparison: second, by, invert, filter },
      generations: { view: "generations", snapshots: generations, by, invert, filter },
      dominators: { view: "dominators", snapshot: first, filter },
      classes: { view: "classes", snapshot: first, filter },
      suspects: { view: "suspects", snapshot: first },
      search: { view: "search", snapshot: first, text: query.get("q") ?? "" },
      individuals: { view: "individuals", snapshot: first, by, invert, group: Number(query.get("group")), filter },
    };
    return questions[this.view];
  }

  private empty(text: string): Page {
    this.main.append(create("p", "empty", text));
    return { close() {} };
  }

  private showMap(question: Record<string, unknown>): Page {
    const { api, first, by, showStatus } = this;
    const choose = (name: string) => (location.hash = link(["memory", first, "census"], { by, filter: name }));
    const map = new MapView(api, question, choose, showStatus, JOB_TEXTS["tree-map"]);
    const fill = create("div", "fill");
    fill.append(map.element);
    this.main.append(fill);
    return map;
  }

  private showTable(question: Record<string, unknown>): Page {
    const { api, first, second, view, hasGroups, generations, openRows, main, bar } = this;
    const { query } = this.route;
    const isOfNodes = !hasGroups && view !== "classes";
    const paths = isOfNodes ? new PathsPane(api, first) : null;
    const column = query.get("sort");
    const ascending = query.get("asc") === "1";
    const all = this.isDiff ? [first, second] : generations.length ? generations : [first];
    const table = new Table(api, {
      query: question,
      isOfNodes,
      isDiff: this.isDiff,
      heads: Object.fromEntries(generations.map((id, place) => [`in-${place}`, `Snapshot ${id}`])),
      label: isOfNodes ? "Nodes" : "Groups",
      names: this.label,
      depth: this.depth,
      sort: column ? { column, ascending } : null,
      onSort: (next) => this.go({ sort: next, asc: next === column && !ascending ? "1" : "", at: "" }),
      ...(paths ? { onFocus: (row: TableRow) => (row.node ? paths.show(row.id) : paths.clear()) } : {}),
      ...(hasGroups ? { onBehind: (row: TableRow) => this.showNodesOf(row, all) } : {}),
      behind: "The nodes of this group",
      onState: this.showStatus,
      openRows,
      busy: JOB_TEXTS[view],
      empty: (only) => this.textFor(only),
    });
    main.append(table.element);
    if (paths) main.append(paths.splitter, paths.element);
    if (!bar.contains(document.activeElement)) table.focus();
    return {
      ...(generations.length ? { renew: (state: ServerState) => this.drawSides(state) } : {}),
      close() {
        openRows.close();
        table.close();
        paths?.close();
      },
    };
  }

  /** Shows the nodes of a group. If there are several snapshots, the last snapshot is shown first. */
  private showNodesOf(row: TableRow, all: number[]) {
    const of = all.length > 1 ? { of: all.join(".") } : {};
    const from = changed(readRoute(), this.openRows.address).slice(2);
    const group = { by: this.by, invert: this.invert ? "1" : "0", group: String(row.id), name: row.name.join(" › "), from };
    location.hash = link(["memory", all[all.length - 1], "individuals"], { ...group, ...of });
  }

  /**
   * Returns the status line for a table without rows, or with the one row `only`. If the text is empty, the line shows
   * the number of rows.
   */
  private textFor(only: TableRow | null): string {
    if (only) {
      const isWithoutStacks = this.by === "stack" && !this.filter && only.name[0] === "(no stack available)";
      return isWithoutStacks ? "No call stacks found. Record call stacks before taking a snapshot." : "";
    }
    if (this.filter) return "No matches.";
    if (this.view === "individuals") return "This snapshot has no nodes of the group.";
    return this.isDiff ? "No difference between the baseline and comparison." : "Empty.";
  }
}

/**
 * Returns the name of the group whose nodes the view shows, with links to the previous view and to the other snapshots.
 */
function groupHead({ query }: Route, snapshot: number): HTMLElement[] {
  const { by, invert, group, name, of, from } = Object.fromEntries(query) as Record<string, string | undefined>;
  const sides = (of ?? "").split(".").filter(Boolean);
  const back = create("a", "", "← Back to the aggregate");
  const kept = { by: by ?? "type", invert: invert ?? "" };
  // For an address without `from`, the link leads to the aggregate that contains the group.
  back.href = from ? `#/${from}` : link(["memory", snapshot, "census"], kept);
  const links = sides.map((side) => {
    const to = create("a", "", `in snapshot ${side}`);
    to.href = link(["memory", side, "individuals"], { ...kept, group: group ?? "", name: name ?? "", of: of ?? "", from: from ?? "" });
    if (Number(side) === snapshot) to.setAttribute("aria-current", "page");
    return to;
  });
  const tabs = create("span", "tabs");
  tabs.append(...links);
  return [create("strong", "", `⁂ Nodes of the group ${name ?? ""}`), tabs, back];
}

function exports(api: Api, query: Record<string, unknown>, snapshot: number | null, showStatus: ShowStatus): HTMLElement {
  const isOfNodes = ["dominators", "suspects", "search", "individuals", "classes"].includes(String(query.view));
  const own: [string, unknown] = isOfNodes
    ? ["this view as a table (.tsv)", { format: "tsv", query }]
    : ["this view as JSON", { format: "json", query }];
  const whole: [string, unknown][] =
    snapshot === null
      ? []
      : [
          ["the snapshot for Firefox (.fxsnapshot)", { format: "fxsnapshot", snapshot }],
          ["the snapshot for Chrome (.heapsnapshot)", { format: "heapsnapshot", snapshot }],
          ["the nodes by call stack for pprof (.pb.gz)", { format: "stacks", of: "pprof", snapshot }],
          ["the nodes by call stack for speedscope", { format: "stacks", of: "speedscope", snapshot }],
        ];
  const files = [own, ...whole].map(([title, body]): ExportFile => [title, () => api.download("export", body)]);
  return exportMenu(files, showStatus);
}
