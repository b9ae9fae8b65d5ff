// The lines of the page, without the lines in closed sub-trees: a flat list of five numbers per line.
//
// The text of a line is made on demand, because only some forty lines are visible.

import { type Amount, formatAmount, formatShare, type Units } from "../text/amount";
import { isLeaf, type ReportProcess, units } from "../data/reports";
import { showName } from "../text/escape";
import { type Layout, tinyName } from "./layout";

export const enum RowKind {
  /** Plain text from the list of texts. */
  Text,
  /** A node of a tree. */
  Node,
  /** `(N tiny)` of a node. */
  Tiny,
  /** A report outside of trees. */
  Line,
}

/** The entries that the reader opened or closed. They keep their state when the filter changes. */
export interface OpenEntries {
  nodes: Map<number, boolean>;
  /** The state of `(N tiny)`, by its parent. */
  tiny: Map<number, boolean>;
  /** The state of all other entries; `null` for the default. */
  all: boolean | null;
}

/** The parts of a line. Each has a style. */
export interface LineParts {
  /** The style of plain text: `heading`, `process`, `warning` or empty. */
  style: string;
  branch: string;
  value: string;
  percent: string;
  separator: string;
  name: string;
  notes: string;
  invalid: boolean;
}

const LAST = 1;
const OPEN = 2;
const TOGGLES = 4;

export class Rows {
  length = 0;
  private kinds = new Uint8Array(1024);
  private bits = new Uint8Array(1024);
  /** The node of each row; for `(N tiny)`, its parent; for text, the index of the text. */
  private ids = new Int32Array(1024);
  /** The first node of the chain; for `(N tiny)`, the root of the tree; for a line, the width of the widest value. */
  private tops = new Int32Array(1024);
  /** The row of the parent, or -1. */
  private parents = new Int32Array(1024);
  /** The widths of values that are known, by row. Many branches need the width of the same value. */
  private readonly widths = new Map<number, number>();
  private readonly texts: string[] = [];
  private readonly styles: string[] = [];
  /** The first row of each process; -1 if the process has no report that passes the filter. */
  readonly starts: number[] = [];

  constructor(
    private readonly layout: Layout,
    private readonly opened: OpenEntries,
    private readonly verbose: boolean,
  ) {}

  addText(text: string, style = "") {
    this.texts.push(text);
    this.styles.push(style);
    this.add(RowKind.Text, this.texts.length - 1, 0, -1, 0);
  }

  addLines(lines: number[]) {
    let width = 0;
    for (const line of lines) width = Math.max(width, this.value(line).length);
    for (const line of lines) this.add(RowKind.Line, line, width, -1, 0);
  }

  /** Adds the open part of a tree. */
  addTree(root: number) {
    const { layout } = this;
    const { data } = layout.forest;
    // The rows to add, in reverse: kind, node, top, parent row and bits of each.
    const left: number[] = [RowKind.Node, root, root, -1, LAST];
    while (left.length > 0) {
      let bits = left.pop()!;
      const parent = left.pop()!;
      const top = left.pop()!;
      const node = left.pop()!;
      const kind: RowKind = left.pop()!;
      const row = this.length;
      if (kind === RowKind.Tiny) {
        const open = this.opened.tiny.get(node) ?? this.opened.all ?? layout.tinyHidesInvalid(node, root);
        this.add(kind, node, root, parent, bits | TOGGLES | (open ? OPEN : 0));
        if (open) {
          const { tops, nodes, cut } = layout.withTiny(node, root);
          for (let i = nodes.length - 1; i >= cut; i--) {
            left.push(RowKind.Node, nodes[i], tops[i], row, i === nodes.length - 1 ? LAST : 0);
          }
        }
        continue;
      }
      if (!isLeaf(data, node)) {
        bits |= TOGGLES;
        const open =
          this.opened.nodes.get(node) ??
          (this.opened.all === null || node === root
            ? !layout.startsClosed(node, root) || layout.hidesInvalid(node, root)
            : this.opened.all);
        if (open) bits |= OPEN;
      }
      this.add(kind, node, top, parent, bits);
      if (!(bits & OPEN)) continue;
      const { tops, nodes, cut, place } = layout.level(node, root);
      const hasTiny = cut < nodes.length;
      for (let i = cut - 1; i >= place; i--) left.push(RowKind.Node, nodes[i], tops[i], row, i === cut - 1 ? LAST : 0);
      if (hasTiny) left.push(RowKind.Tiny, node, root, row, place === cut ? LAST : 0);
      for (let i = place - 1; i >= 0; i--) {
        left.push(RowKind.Node, nodes[i], tops[i], row, !hasTiny && i === cut - 1 ? LAST : 0);
      }
    }
  }

  /** Whether a click opens or closes this row. */
  toggles(row: number): boolean {
    return (this.bits[row] & TOGGLES) !== 0;
  }

  isOpen(row: number): boolean {
    return (this.bits[row] & OPEN) !== 0;
  }

  kind(row: number): RowKind {
    return this.kinds[row];
  }

  node(row: number): number {
    return this.ids[row];
  }

  parent(row: number): number {
    return this.parents[row];
  }

  /** Returns the depth in a tree: 0 for a root, and for rows outside of trees. */
  depth(row: number): number {
    let depth = 0;
    while (this.parents[row] >= 0) {
      row = this.parents[row];
      depth++;
    }
    return depth;
  }

  /** Returns the path of a row in a tree; empty for other rows. */
  path(row: number): string {
    const names: string[] = [];
    for (let at = row; at >= 0; at = this.parents[at]) {
      if (this.kinds[at] === RowKind.Node) names.push(this.layout.forest.name(this.tops[at], this.ids[at]));
    }
    return names.reverse().join("/");
  }

  amount(row: number): Amount {
    const { forest } = this.layout;
    return this.kinds[row] === RowKind.Tiny
      ? this.layout.level(this.ids[row], this.tops[row]).tinyAmount
      : forest.amount(this.ids[row]);
  }

  units(row: number): Units {
    return units(this.layout.forest.data, this.ids[row]);
  }

  /** Returns all parts of a line except its branch. */
  parts(row: number): LineParts {
    const parts: LineParts = {
      style: "",
      branch: "",
      value: "",
      percent: "",
      separator: "",
      name: "",
      notes: "",
      invalid: false,
    };
    const { forest } = this.layout;
    const node = this.ids[row];
    const kind = this.kinds[row];
    if (kind === RowKind.Text) return { ...parts, style: this.styles[node], name: this.texts[node] };
    const amount = this.amount(row);
    parts.value = formatAmount(amount, this.units(row), this.verbose);
    let top = node;
    if (kind === RowKind.Line) {
      parts.branch = " ".repeat(this.tops[row] - parts.value.length);
      parts.separator = " ── ";
      parts.invalid = forest.isOutOfRange(amount, amount);
    } else {
      const total = forest.amount(this.root(row));
      parts.percent = ` (${formatShare(amount, total)})`;
      parts.invalid = kind === RowKind.Tiny ? forest.isOutOfRange(amount, total) : forest.isInvalid(node, this.root(row));
      const bits = this.bits[row];
      // An invalid entry looks open even if it is closed, unless the reader closed it.
      const looksOpen = bits & OPEN || (parts.invalid && this.opened.nodes.get(node) !== false);
      parts.separator = !(bits & TOGGLES) ? " ── " : looksOpen ? " -- " : " ++ ";
      if (kind === RowKind.Node) top = this.tops[row];
    }
    parts.notes = parts.invalid ? " [?!]" : "";
    if (kind === RowKind.Tiny) {
      const { nodes, cut } = this.layout.level(node, this.tops[row]);
      parts.name = tinyName(nodes.length - cut);
      return parts;
    }
    parts.name = showName(forest.name(top, node));
    const merged = this.layout.merged(top, node);
    const mark = this.layout.mark(top, node);
    if (merged > 0) parts.notes += ` [${merged}]`;
    if (mark) parts.notes += ` [${mark}]`;
    return parts;
  }

  /** Returns the branch before a line of a tree. `known` caches the text before the children of rows. */
  branch(row: number, value: string, known?: Map<number, string>): string {
    if (this.parents[row] < 0) return "";
    const longer = Math.max(0, this.widthAbove(row) - value.length);
    return this.before(this.parents[row], known) + (this.bits[row] & LAST ? "└──" : "├──") + "─".repeat(longer);
  }

  /** Returns the text before the children of a row. */
  before(row: number, known?: Map<number, string>): string {
    const pieces: string[] = [];
    for (let at = row; this.parents[at] >= 0; at = this.parents[at]) {
      const before = known?.get(at);
      if (before !== undefined) {
        pieces.push(before);
        break;
      }
      const longer = Math.max(0, this.widthAbove(at) - this.valueWidth(at));
      pieces.push((this.bits[at] & LAST ? "   " : "│  ") + " ".repeat(longer));
    }
    return pieces.reverse().join("");
  }

  /** Returns all lines, as copied from Firefox's page. */
  text(): string {
    const lines: string[] = [];
    // The text before the children of the open rows above the current row.
    const known = new Map<number, string>();
    const open: number[] = [];
    for (let row = 0; row < this.length; row++) {
      const parts = this.parts(row);
      const kind = this.kinds[row];
      if (kind === RowKind.Node || kind === RowKind.Tiny) {
        while (open.length > 0 && open[open.length - 1] !== this.parents[row]) known.delete(open.pop()!);
        parts.branch = this.branch(row, parts.value, known);
        if (this.bits[row] & OPEN) {
          known.set(row, this.before(row, known));
          open.push(row);
        }
      }
      lines.push(lineText(parts));
    }
    return `${lines.join("\n")}\n`;
  }

  /** Returns the root of the tree of a row. */
  root(row: number): number {
    while (this.parents[row] >= 0) row = this.parents[row];
    return this.ids[row];
  }

  private value(node: number): string {
    const { forest } = this.layout;
    return formatAmount(forest.amount(node), units(forest.data, node), this.verbose);
  }

  private valueWidth(row: number): number {
    let width = this.widths.get(row);
    if (width === undefined) {
      width = formatAmount(this.amount(row), this.units(row), this.verbose).length;
      this.widths.set(row, width);
    }
    return width;
  }

  private widthAbove(row: number): number {
    return this.valueWidth(this.parents[row]);
  }

  private add(kind: RowKind, id: number, top: number, parent: number, bits: number) {
    if (this.length === this.ids.length) this.grow();
    const row = this.length++;
    this.kinds[row] = kind;
    this.bits[row] = bits;
    this.ids[row] = id;
    this.tops[row] = top;
    this.parents[row] = parent;
  }

  private grow() {
    const more = <T extends Uint8Array | Int32Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    const size = this.ids.length * 2;
    this.kinds = more(this.kinds, new Uint8Array(size));
    this.bits = more(this.bits, new Uint8Array(size));
    this.ids = more(this.ids, new Int32Array(size));
    this.tops = more(this.tops, new Int32Array(size));
    this.parents = more(this.parents, new Int32Array(size));
  }
}

export function lineText(parts: LineParts): string {
  return parts.branch + parts.value + parts.percent + parts.separator + parts.name + parts.notes;
}

/** Returns the paths of all invalid entries of a tree, open or closed, in the order of the text. */
export function invalidPaths(layout: Layout, root: number): string[] {
  const paths: string[] = [];
  const { forest } = layout;
  if (!forest.invalidBelow) return paths;
  const left: { tiny: boolean; top: number; node: number; above: string }[] = [
    { tiny: false, top: root, node: root, above: "" },
  ];
  for (let entry = left.pop(); entry; entry = left.pop()) {
    const { tiny, top, node, above } = entry;
    const level = () => layout.withTiny(node, root);
    let path: string;
    if (tiny) {
      const { nodes, tops, cut, tinyInvalid } = level();
      path = above + tinyName(nodes.length - cut);
      if (tinyInvalid) paths.push(path);
      for (let i = nodes.length - 1; i >= cut; i--) {
        left.push({ tiny: false, top: tops[i], node: nodes[i], above: `${path}/` });
      }
      continue;
    }
    path = above + showName(forest.name(top, node));
    if (forest.isInvalid(node, root)) paths.push(path);
    if (isLeaf(forest.data, node) || !layout.hidesInvalid(node, root)) continue;
    const { tops, nodes, cut, place } = level();
    const push = (i: number) => left.push({ tiny: false, top: tops[i], node: nodes[i], above: `${path}/` });
    for (let i = cut - 1; i >= place; i--) push(i);
    if (cut < nodes.length) left.push({ tiny: true, top: node, node, above: `${path}/` });
    for (let i = place - 1; i >= 0; i--) push(i);
  }
  return paths;
}

/** Whether a report of this process passes the filter. */
export function isShown(layout: Layout, process: ReportProcess): boolean {
  const isLeft = (node: number) => layout.forest.isLeft(node);
  return process.trees.some(isLeft) || process.lines.some(isLeft);
}
