// The stacks of a dump as one tree, and as an inverted tree that starts with the innermost frames. html/flame.rs writes
// the stacks.

import { add, type Amount } from "../text/amount";
import { NumberColumn, TextColumn } from "./columns";

export interface FlameHeader {
  frames: number;
  names: number;
  exact: boolean;
}

/**
 * The amounts of a frame before a change. `larger` is a sum over all stacks through the frame. A stack counts with its
 * bytes before or after the change, whichever are more.
 */
export interface AmountsBefore {
  bytes: number;
  blocks: number;
  larger: number;
}

/** A function at a position in the stacks, with the memory that it and its callees allocated. */
export class Frame {
  private made: Frame[] | null = null;

  constructor(
    readonly name: string,
    /** The parent frame in the tree: the caller or, in an inverted tree, the frame that this frame called. */
    readonly caller: Frame | null,
    readonly bytes: Amount,
    readonly blocks: Amount,
    readonly estimated: boolean,
    private readonly make: () => Frame[],
    /** The earlier amounts in a change; otherwise `null`. */
    readonly before: AmountsBefore | null = null,
    /** The file and the line of the frame's largest stack; empty if they are unknown. */
    readonly place = "",
  ) {}

  /** The bytes that determine the width of the frame. */
  get size(): number {
    return this.before ? this.before.larger : Number(this.bytes);
  }

  /** The frames below, the largest first. They are made on demand. */
  get called(): Frame[] {
    return (this.made ??= this.make().sort((a, b) => b.size - a.size));
  }
}

export interface FlameGraph {
  root: Frame;
}

export function readFlame(header: FlameHeader, column: (name: string) => Uint8Array): FlameGraph {
  const children = new NumberColumn(column("flameChildren"));
  const nameOf = new NumberColumn(column("flameNameOf"));
  const names = new TextColumn(column("flameNameLengths"), column("flameNames"), header.names);
  const [bytes, blocks] = ["flameBytes", "flameBlocks"].map((name) => new NumberColumn(column(name)));
  const next = (numbers: NumberColumn): Amount => (header.exact ? numbers.nextSigned() : numbers.nextBig());
  const estimated = column("flameEstimated");
  let root: Frame | null = null;
  // The frames whose callees are not all read yet, with the number of callees that are left.
  const open: { frame: Frame; called: Frame[]; left: number }[] = [];
  for (let i = 0; i < header.frames; i++) {
    const caller = open[open.length - 1];
    const called: Frame[] = [];
    const name = names.get(nameOf.next());
    const frame: Frame = new Frame(name, caller?.frame ?? null, next(bytes), next(blocks), estimated[i] === 1, () => called);
    root ??= frame;
    if (caller) {
      caller.called.push(frame);
      caller.left--;
    }
    const left = children.next();
    if (left > 0) open.push({ frame, called, left });
    while (open.length > 0 && open[open.length - 1].left === 0) open.pop();
  }
  return { root: root! };
}

/** The memory that a frame itself allocated, and the caller that the walk from this frame has reached. */
interface StackEnd {
  at: Frame;
  bytes: Amount;
  blocks: Amount;
  estimated: boolean;
  before: AmountsBefore | null;
}

/** Adds `factor` times the earlier amounts of another frame. */
function addBefore(sum: AmountsBefore | null, other: AmountsBefore | null, factor: number): AmountsBefore | null {
  if (!sum || !other) return sum ?? other;
  const of = (part: keyof AmountsBefore) => sum[part] + factor * other[part];
  return { bytes: of("bytes"), blocks: of("blocks"), larger: of("larger") };
}

/** Returns the stacks below a frame as an inverted tree, from the innermost frames to the callees of `top`. */
export function inverted(top: Frame): Frame {
  const ends: StackEnd[] = [];
  const left = [top];
  for (let frame = left.pop(); frame; frame = left.pop()) {
    const minus = (own: Amount, called: Amount) => add(own, -called);
    const bytes = frame.called.reduce<Amount>((own, called) => minus(own, called.bytes), frame.bytes);
    const blocks = frame.called.reduce<Amount>((own, called) => minus(own, called.blocks), frame.blocks);
    const before = frame.called.reduce((own, called) => addBefore(own, called.before, -1), frame.before);
    const isEnd = before ? before.larger > 0 : bytes > 0;
    if (isEnd && frame !== top) ends.push({ at: frame, bytes, blocks, estimated: frame.estimated, before });
    for (const called of frame.called) left.push(called);
  }
  const made = () => group(root, top, ends);
  const root: Frame = new Frame(top.name, null, top.bytes, top.blocks, top.estimated, made, top.before);
  return root;
}

/** Groups stack ends by the name of the frame that they have reached. */
function group(below: Frame, top: Frame, ends: StackEnd[]): Frame[] {
  const groups = new Map<string, StackEnd[]>();
  for (const end of ends) {
    if (end.at === top) continue;
    const known = groups.get(end.at.name);
    if (known) known.push(end);
    else groups.set(end.at.name, [end]);
  }
  return [...groups].map(([name, ends]) => {
    const sum = (of: "bytes" | "blocks") => ends.reduce<Amount>((sum, end) => add(sum, end[of]), 0);
    const estimated = ends.some((end) => end.estimated);
    const next = () => ends.map((end) => ({ ...end, at: end.at.caller! }));
    const before = ends.reduce<AmountsBefore | null>((sum, end) => addBefore(sum, end.before, 1), null);
    const made = () => group(frame, top, next());
    const largest = ends.reduce((one, other) => (other.bytes > one.bytes ? other : one));
    const frame: Frame = new Frame(name, below, sum("bytes"), sum("blocks"), estimated, made, before, largest.at.place);
    return frame;
  });
}
