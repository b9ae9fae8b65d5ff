// The trees of the reports that pass the filter: sums, and invalid values.

import { type Amount, add, magnitude } from "../text/amount";
import { type ReportData, HEAP_UNCLASSIFIED, heapPart, isCorrection, isItself, isLeaf, rawName } from "../data/reports";
import { type Filter, passing } from "./filter";

export class Forest {
  /** The number of children that pass the filter; for a leaf, 1 if it passes. */
  readonly left: Uint32Array;
  /** For each node, 1 if a value below it is invalid; `null` if all values are valid. */
  readonly invalidBelow: Uint8Array | null;
  private readonly sums: Float64Array;
  private readonly bigSums: bigint[] | null;
  private readonly largestChange: Float64Array | null;
  private readonly bigLargest: bigint[] | null;

  constructor(
    readonly data: ReportData,
    readonly filter: Filter,
  ) {
    const { count, parent, firstChild } = data;
    const passes = passing(data, filter);
    this.left = new Uint32Array(count);
    this.sums = data.amount.slice(0, count);
    this.bigSums = data.big && data.big.slice(0, count);
    for (let node = data.descriptionOf.length - 1; node >= 0; node--) {
      if (firstChild[node] < 0) {
        if (passes && !passes[node]) {
          this.clear(node);
          continue;
        }
        this.left[node] = 1;
      }
      if (this.left[node] > 0 && parent[node] >= 0) this.left[parent[node]]++;
    }
    for (const process of data.processes) this.classify(process);
    if (this.bigSums) {
      const sums = this.bigSums;
      for (let node = count - 1; node >= 0; node--) if (parent[node] >= 0) sums[parent[node]] += sums[node];
    } else {
      const sums = this.sums;
      for (let node = count - 1; node >= 0; node--) if (parent[node] >= 0) sums[parent[node]] += sums[node];
    }
    this.largestChange = data.isDiff && !this.bigSums ? this.largest(this.sums.map(Math.abs)) : null;
    this.bigLargest =
      data.isDiff && this.bigSums ? this.largest(this.bigSums.map((sum) => (sum < 0n ? -sum : sum))) : null;
    this.invalidBelow = this.findInvalid();
  }

  amount(node: number): Amount {
    return this.bigSums ? this.bigSums[node] : this.sums[node];
  }

  /** Returns the sort key of a node. In a diff, the key is the largest change in the node or below it. */
  weight(node: number): Amount {
    if (this.largestChange) return this.largestChange[node];
    if (this.bigLargest) return this.bigLargest[node];
    const amount = this.amount(node);
    return this.isCorrection(node) ? magnitude(amount) : amount;
  }

  isLeft(node: number): boolean {
    return this.left[node] > 0;
  }

  isOutOfRange(amount: Amount, total: Amount): boolean {
    return !this.data.isDiff && !(0 <= amount && amount <= total);
  }

  isInvalid(node: number, root: number): boolean {
    return this.isOutOfRange(this.amount(node), this.amount(root)) && !this.isCorrection(node);
  }

  /**
   * Returns the children that pass the filter. Each child starts a chain of only children; `nodes` contains the ends of
   * the chains.
   */
  children(node: number): { tops: number[]; nodes: number[] } {
    const tops: number[] = [];
    const nodes: number[] = [];
    for (let child = this.data.firstChild[node]; child >= 0; child = this.data.nextSibling[child]) {
      if (this.left[child] === 0) continue;
      tops.push(child);
      nodes.push(this.endOfChain(child));
    }
    return { tops, nodes };
  }

  /** Returns the name of a chain: the names of all nodes from `top` to `node`. */
  name(top: number, node: number): string {
    if (top === node) return rawName(this.data, node);
    const names: string[] = [];
    // If only `(itself)` passes the filter, the chain's name is the parent's name.
    for (let at = node; ; at = this.data.parent[at]) {
      if (at !== node || !isItself(this.data, node)) names.push(rawName(this.data, at));
      if (at === top) break;
    }
    return names.reverse().join("/");
  }

  private endOfChain(node: number): number {
    while (this.left[node] === 1 && !isLeaf(this.data, node)) {
      node = this.data.firstChild[node];
      while (this.left[node] === 0) node = this.data.nextSibling[node];
    }
    return node;
  }

  private isCorrection(node: number): boolean {
    return this.amount(node) < 0 && isCorrection(this.data, node);
  }

  private clear(node: number) {
    if (this.bigSums) this.bigSums[node] = 0n;
    else this.sums[node] = 0;
  }

  /**
   * Computes `heap-unclassified`: the allocated memory minus the reported memory. A report with this name replaces the
   * computation.
   */
  private classify({ explicit, heapAllocated, heapUnclassified }: ReportData["processes"][number]) {
    if (heapUnclassified < 0) return;
    const { data } = this;
    const isNamed = () => {
      for (let child = data.firstChild[explicit]; child >= 0; child = data.nextSibling[child]) {
        if (child === heapUnclassified || this.left[child] === 0) continue;
        const name = rawName(data, child);
        if (name === HEAP_UNCLASSIFIED || name.startsWith(`${HEAP_UNCLASSIFIED}/`)) return true;
      }
      return false;
    };
    if (this.left[explicit] === 0 || this.left[heapAllocated] === 0 || isNamed()) return;
    this.left[heapUnclassified] = 1;
    this.left[explicit]++;
    let claimed: Amount = this.bigSums ? 0n : 0;
    // The nodes of a sub-tree are contiguous: parents are before their children.
    for (let node = explicit + 1; node < data.descriptionOf.length && data.parent[node] >= explicit; node++) {
      if (this.left[node] === 0 || !isLeaf(data, node)) continue;
      const part = heapPart(data, node);
      if (part === 1) claimed = add(claimed, this.amount(node));
      else if (part === 2) claimed = add(claimed, data.heap.get(node)!);
    }
    if (this.bigSums) this.bigSums[heapUnclassified] = this.bigSums[heapAllocated] - BigInt(claimed);
    else this.sums[heapUnclassified] = this.sums[heapAllocated] - Number(claimed);
  }

  private largest<T extends Float64Array | bigint[]>(largest: T): T {
    const { parent, count } = this.data;
    for (let node = count - 1; node >= 0; node--) {
      const above = parent[node];
      if (above >= 0 && largest[node] > largest[above]) largest[above] = largest[node];
    }
    return largest;
  }

  private findInvalid(): Uint8Array | null {
    const { data } = this;
    const { count, parent } = data;
    // A value can exceed its total only if another value is negative.
    const suspect = (node: number) => this.left[node] > 0 && this.amount(node) < 0 && !this.isCorrection(node);
    let any = false;
    for (let node = 0; node < count && !any; node++) any = suspect(node);
    if (data.isDiff || !any) return null;
    const root = new Int32Array(count);
    for (let node = 0; node < count; node++) root[node] = parent[node] < 0 ? node : root[parent[node]];
    const below = new Uint8Array(count);
    for (let node = count - 1; node >= 0; node--) {
      if (this.left[node] === 0 || parent[node] < 0) continue;
      const invalid = this.isInvalid(node, root[node]);
      if (invalid || below[node]) below[parent[node]] = 1;
    }
    return below;
  }
}
