// The model of all views: the settings and the filtered data.

import { type ReportData, rawName } from "../data/reports";
import { arrange } from "./document";
import { makeFilter } from "./filter";
import { Forest } from "./forest";
import { Layout } from "./layout";
import { RowKind, type OpenEntries, type Rows } from "./rows";

export interface Settings {
  filter: string;
  regex: boolean;
  verbose: boolean;
  hideTiny: boolean;
}

/** Returns the process of a node and the names on the path to the node. */
function namesOf(data: ReportData, node: number): string[] {
  const names: string[] = [];
  let root = node;
  for (let at = node; at >= 0; at = data.parent[at]) {
    names.unshift(rawName(data, at));
    root = at;
  }
  return [data.processes.find(({ trees, lines }) => trees.includes(root) || lines.includes(root))?.name ?? "", ...names];
}

/** Returns the node at the end of these names; -1 if it does not exist. */
function find(to: ReportData, [process, first, ...rest]: string[]): number {
  const same = to.processes.find(({ name }) => name === process);
  const isFirst = (root: number) => rawName(to, root) === first;
  let at = same?.trees.find(isFirst) ?? (rest.length === 0 ? same?.lines.find(isFirst) : undefined) ?? -1;
  for (const name of rest) {
    if (at < 0) break;
    at = to.firstChild[at];
    while (at >= 0 && rawName(to, at) !== name) at = to.nextSibling[at];
  }
  return at;
}

export class Model {
  settings: Settings = { filter: "", regex: false, verbose: false, hideTiny: true };
  /** The error in the filter; empty if there is none. */
  filterError = "";
  forest: Forest;
  layout: Layout;
  /** The entry that keys act on; `null` if this is plain text. */
  focus: { isTiny: boolean; node: number } | null = null;
  private lines: Rows | null = null;
  private readonly opened: OpenEntries = { nodes: new Map(), tiny: new Map(), all: null };

  constructor(public data: ReportData) {
    this.forest = new Forest(data, null);
    this.layout = this.makeLayout();
  }

  /** Applies new settings. Returns whether anything changed. */
  apply(settings: Settings): boolean {
    const old = this.settings;
    const keys = Object.keys(old) as (keyof Settings)[];
    if (keys.every((key) => old[key] === settings[key])) return false;
    this.settings = settings;
    if (old.filter !== settings.filter || old.regex !== settings.regex) {
      const { filter, error } = makeFilter(settings.filter, settings.regex);
      this.filterError = error;
      this.forest = new Forest(this.data, filter);
    }
    this.layout = this.makeLayout();
    this.lines = null;
    return true;
  }

  /** Shows other data with the same settings. `before` is the layout of data with the same nodes. */
  replace(data: ReportData, before?: Layout) {
    this.data = data;
    this.forest = new Forest(data, makeFilter(this.settings.filter, this.settings.regex).filter);
    this.layout = this.makeLayout(before);
    this.lines = null;
  }

  /** Shows a later measurement. Open entries stay open by their paths, and the focus stays on its entry. */
  renew(data: ReportData) {
    const { nodes, tiny } = this.opened;
    const before = this.data;
    // The same reports have the same nodes.
    if (data.parent === before.parent) return this.replace(data, this.layout);
    const focus = this.focus && find(data, namesOf(before, this.focus.node));
    this.focus = focus === null || focus < 0 ? null : { isTiny: this.focus!.isTiny, node: focus };
    for (const opened of [nodes, tiny]) {
      const moved = new Map<number, boolean>();
      for (const [node, open] of opened) {
        const later = find(data, namesOf(before, node));
        if (later >= 0) moved.set(later, open);
      }
      opened.clear();
      for (const [node, open] of moved) opened.set(node, open);
    }
    this.replace(data);
  }

  /**
   * `true` if the reader opened all entries, `false` if the reader closed all entries, `null` for the default. Entries
   * that the reader toggled later may have another state.
   */
  get all(): boolean | null {
    return this.opened.all;
  }

  /** The entries that the reader opened or closed, by process and path. */
  get toggled(): [boolean, ...string[]][] {
    return [...this.opened.nodes].map(([node, open]) => [open, ...namesOf(this.data, node)]);
  }

  set toggled(all: [boolean, ...string[]][]) {
    for (const [open, ...names] of all) {
      const node = find(this.data, names);
      if (node >= 0) this.opened.nodes.set(node, open);
    }
    this.lines = null;
  }

  /** The lines of the text, made on demand. */
  get rows(): Rows {
    return (this.lines ??= arrange(this.layout, this.opened, this.settings.verbose));
  }

  /** Returns the row of the entry with the focus; `otherwise` if the entry is not shown. */
  focused(otherwise: number): number {
    const { focus, rows } = this;
    if (!focus) return otherwise;
    const isFocused = (row: number) =>
      rows.node(row) === focus.node && rows.kind(row) !== RowKind.Text && (rows.kind(row) === RowKind.Tiny) === focus.isTiny;
    if (isFocused(otherwise)) return otherwise;
    for (let row = 0; row < rows.length; row++) if (isFocused(row)) return row;
    return otherwise;
  }

  /** Opens or closes the entry of a row. */
  toggle(row: number, open = !this.rows.isOpen(row)) {
    const { rows } = this;
    if (!rows.toggles(row)) return;
    const opened = rows.kind(row) === RowKind.Tiny ? this.opened.tiny : this.opened.nodes;
    opened.set(rows.node(row), open);
    this.lines = null;
  }

  /** Opens or closes all entries. */
  toggleAll(open: boolean) {
    this.opened.nodes.clear();
    this.opened.tiny.clear();
    this.opened.all = open;
    this.lines = null;
  }

  private makeLayout(before?: Layout): Layout {
    return new Layout(this.forest, this.settings.hideTiny && !this.settings.verbose, before);
  }
}
