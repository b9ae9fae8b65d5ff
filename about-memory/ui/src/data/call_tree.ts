// Functions by call, for the call tree. A node is a function below a caller, and stands for one or more frames.

import type { Frame } from "./flame";

export class CallNode {
  private made: CallNode[] | null = null;

  private constructor(
    readonly name: string,
    /** The frames whose callees are below this node. */
    private readonly frames: Frame[],
    /** The bytes of the function and of everything that it called. */
    readonly total: number,
    readonly blocks: number,
    readonly place: string,
    /** Whether a function that calls itself has one node. */
    private readonly merges: boolean,
  ) {}

  /** Returns the node of a tree's root. */
  static from(root: Frame, merges: boolean): CallNode {
    return CallNode.grouped(root.name, [root], merges);
  }

  /** Returns a root with the calls below all outermost frames of a function. */
  static startingWith(all: CallNode, name: string): CallNode {
    const found: Frame[] = [];
    const left = [...all.frames];
    for (let frame = left.pop(); frame; frame = left.pop()) {
      if (frame.name === name) found.push(frame);
      else left.push(...frame.called);
    }
    const { merges } = all;
    const node = CallNode.grouped(name, found, merges);
    const root = new CallNode(all.name, [], node.total, node.blocks, "", merges);
    root.made = found.length > 0 ? [node] : [];
    return root;
  }

  private static grouped(name: string, tops: Frame[], merges: boolean): CallNode {
    const sum = (of: "bytes" | "blocks") => tops.reduce((all, frame) => all + Number(frame[of]), 0);
    const frames = [...tops];
    if (merges) for (const frame of frames) frames.push(...frame.called.filter((called) => called.name === name));
    const largest = tops.reduce<Frame | null>((one, other) => (one === null || other.bytes > one.bytes ? other : one), null);
    return new CallNode(name, frames, sum("bytes"), sum("blocks"), largest?.place ?? "", merges);
  }

  /** The functions that this one called, the largest first. They are made on demand. */
  get called(): CallNode[] {
    if (this.made) return this.made;
    const groups = new Map<string, Frame[]>();
    for (const frame of this.frames) {
      for (const called of frame.called) {
        if (this.merges && called.name === this.name) continue;
        const known = groups.get(called.name);
        if (known) known.push(called);
        else groups.set(called.name, [called]);
      }
    }
    const all = [...groups].map(([name, frames]) => CallNode.grouped(name, frames, this.merges));
    return (this.made = all.sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1)));
  }

  /** The bytes that the function allocated itself. */
  get own(): number {
    return this.called.reduce((own, { total }) => own - total, this.total);
  }
}
