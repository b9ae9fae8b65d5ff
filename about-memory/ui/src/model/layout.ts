// The entries below a node in the order of display: the largest first, and one entry for all tiny entries.

import { type Amount, add, magnitude } from "../text/amount";
import { isItself, mark } from "../data/reports";
import type { Forest } from "./forest";

/** Entries below this percentage of the root of their tree are tiny. */
const THRESHOLD = 1;

const collator = new Intl.Collator("en-US");
export const compareNames = (a: string, b: string) => collator.compare(a, b);

/** Entries below a node. An entry is a chain of nodes: `tops` contains its first node, `nodes` its last. */
interface LevelEntries {
  tops: Int32Array;
  nodes: Int32Array;
}

/** The entries below a node. The entries in `(N tiny)` are sorted only if `withTiny` returned the level. */
export interface Level extends LevelEntries {
  /** The index of the first entry in `(N tiny)`, or the number of entries. */
  cut: number;
  /** The number of entries that are displayed before `(N tiny)`; without `(N tiny)`, the number of all entries. */
  place: number;
  tinyAmount: Amount;
  tinyInvalid: boolean;
}

export class Layout {
  private readonly levels = new Map<number, Level>();
  /** The nodes whose tiny entries are not sorted yet. */
  private readonly unsorted = new Set<number>();
  private readonly before: ReadonlyMap<number, Level> | undefined;

  /** `before` is the layout of an earlier measurement of the same reports with the same settings. */
  constructor(
    readonly forest: Forest,
    private readonly hideTiny: boolean,
    before?: Layout,
  ) {
    this.before = before?.levels;
  }

  level(node: number, root: number): Level {
    let level = this.levels.get(node);
    if (!level) this.levels.set(node, (level = this.arrange(node, root)));
    return level;
  }

  /**
   * Returns a level with sorted tiny entries. They are sorted on demand: most entries are tiny, and few readers open
   * them.
   */
  withTiny(node: number, root: number): Level {
    const level = this.level(node, root);
    if (!this.unsorted.delete(node)) return level;
    const { tops, nodes, cut } = level;
    const order = this.sorted(tops, nodes, cut);
    tops.set(order.map((i) => tops[i]), cut);
    nodes.set(order.map((i) => nodes[i]), cut);
    return level;
  }

  /** Whether even the largest child is tiny. The node then has no `(N tiny)` and starts closed. */
  startsClosed(node: number, root: number): boolean {
    if (!this.hideTiny) return false;
    const { forest } = this;
    const total = this.total(root);
    for (let child = forest.data.firstChild[node]; child >= 0; child = forest.data.nextSibling[child]) {
      if (forest.left[child] > 0 && !this.isTiny(forest.weight(child), total)) return false;
    }
    return true;
  }

  /** Whether a value below the node is invalid. */
  hidesInvalid(node: number, root: number): boolean {
    if (this.forest.invalidBelow?.[node]) return true;
    return this.forest.invalidBelow !== null && this.forest.isInvalid(node, root) && this.level(node, root).tinyInvalid;
  }

  /** Whether a value in the `(N tiny)` below a node is invalid. */
  tinyHidesInvalid(node: number, root: number): boolean {
    if (!this.forest.invalidBelow) return false;
    const { nodes, cut } = this.level(node, root);
    for (let i = cut; i < nodes.length; i++) {
      if (this.forest.isInvalid(nodes[i], root) || this.hidesInvalid(nodes[i], root)) return true;
    }
    return false;
  }

  /** Returns the [N] of an entry: the number of reports that the entry adds up. */
  merged(top: number, node: number): number {
    const { data } = this.forest;
    const own = data.merged.get(node);
    if (own === undefined && top !== node && isItself(data, node)) return data.merged.get(data.parent[node]) ?? 0;
    return own ?? 0;
  }

  /** Returns the mark of an entry in a diff. */
  mark(top: number, node: number): string {
    const { data } = this.forest;
    return data.isDiff && isItself(data, node) && top === node ? "!" : mark(data, node);
  }

  private total(root: number): Amount {
    const amount = this.forest.amount(root);
    return this.forest.data.isDiff ? magnitude(amount) : amount;
  }

  /** Compares floats, as Firefox does. For a root of 0, the result depends on the sign. */
  private isTiny(weight: Amount, total: Amount): boolean {
    return this.hideTiny && (100 * Number(weight)) / Number(total) < THRESHOLD;
  }

  private arrange(node: number, root: number): Level {
    const { tops, nodes } = this.kept(node, root) ?? this.ordered(node, root);
    const level: Level = { tops, nodes, cut: nodes.length, place: nodes.length, tinyAmount: 0, tinyInvalid: false };
    this.group(level, root);
    return level;
  }

  /** Returns the entries of a node in the order of display. */
  private ordered(node: number, root: number): LevelEntries {
    const { tops, nodes } = this.forest.children(node);
    const order = this.order(node, root, tops, nodes);
    return { tops: Int32Array.from(order, (i) => tops[i]), nodes: Int32Array.from(order, (i) => nodes[i]) };
  }

  /**
   * Returns the entries in the order of the earlier measurement if `ordered` would give the same order. Most orders
   * stay the same for hours.
   */
  private kept(node: number, root: number): LevelEntries | undefined {
    const before = this.before?.get(node);
    if (!before) return undefined;
    const { tops, nodes } = before;
    const total = this.total(root);
    const isTiny = (i: number) => this.isTiny(this.forest.weight(nodes[i]), total);
    const compare = this.compare(tops, nodes);
    let large = 0;
    if (total > 0) while (large < nodes.length && !isTiny(large)) large++;
    const tiny = nodes.length - large;
    const hasTiny = large > 0 && tiny > 1;
    const sorted = hasTiny ? large : nodes.length;
    for (let i = 1; i < sorted; i++) if (compare(i - 1, i) >= 0) return undefined;
    if (!hasTiny) return before;
    for (let i = large; i < nodes.length; i++) if (!isTiny(i)) return undefined;
    this.unsorted.add(node);
    return before;
  }

  /**
   * Returns the indices of all entries in the order of display. Tiny entries are last; they are not sorted if they will
   * be in a `(N tiny)`.
   */
  private order(node: number, root: number, tops: number[], nodes: number[]): number[] {
    const total = this.total(root);
    const isTiny = (i: number) => this.isTiny(this.forest.weight(nodes[i]), total);
    const all = nodes.map((_, i) => i);
    // Below a root that is not positive, a larger entry may be tiny while a smaller entry is not tiny.
    const tiny = total > 0 ? all.filter(isTiny) : [];
    if (tiny.length < 2 || tiny.length === all.length) return this.sorted(tops, nodes);
    this.unsorted.add(node);
    const large = all.filter((i) => !isTiny(i));
    return [...large.sort(this.compare(tops, nodes)), ...tiny];
  }

  /** Returns the indices of the entries from `from` on, in the order of display. */
  private sorted(tops: ArrayLike<number>, nodes: ArrayLike<number>, from = 0): number[] {
    return Array.from({ length: nodes.length - from }, (_, i) => from + i).sort(this.compare(tops, nodes));
  }

  private compare(tops: ArrayLike<number>, nodes: ArrayLike<number>) {
    const { forest } = this;
    return (a: number, b: number) => {
      const [left, right] = [forest.weight(nodes[a]), forest.weight(nodes[b])];
      if (left !== right) return left < right ? 1 : -1;
      return compareNames(forest.name(tops[a], nodes[a]), forest.name(tops[b], nodes[b]));
    };
  }

  private group(level: Level, root: number) {
    const { forest } = this;
    const total = this.total(root);
    const weight = (i: number) => forest.weight(level.nodes[i]);
    const count = level.nodes.length;
    if (count === 0 || this.isTiny(weight(0), total)) return;
    let cut = 1;
    while (cut < count && !this.isTiny(weight(cut), total)) cut++;
    // A single tiny entry at the end is not grouped.
    if (cut + 1 >= count) return;
    let amount: Amount = forest.data.big ? 0n : 0;
    let largest: Amount = amount;
    for (let i = cut; i < count; i++) {
      amount = add(amount, forest.amount(level.nodes[i]));
      if (weight(i) > largest) largest = weight(i);
    }
    level.cut = cut;
    level.tinyAmount = amount;
    level.tinyInvalid = forest.isOutOfRange(amount, forest.amount(root));
    if (forest.data.isDiff && magnitude(amount) > largest) largest = magnitude(amount);
    const own = forest.data.isDiff ? largest : amount;
    const name = tinyName(count - cut);
    level.place = cut;
    while (level.place > 0) {
      const i = level.place - 1;
      const before = weight(i) < own || (weight(i) === own && compareNames(this.name(level, i), name) > 0);
      if (!before) break;
      level.place--;
    }
  }

  private name(level: Level, i: number): string {
    return this.forest.name(level.tops[i], level.nodes[i]);
  }
}

export const tinyName = (count: number) => `(${count} tiny)`;

