// The colours of crates in a flame graph. The crates that allocated the most have colours of their own.

import type { Frame } from "./flame";

/** The number of crates with their own colour. */
const MOST = 5;
/** The class of the other functions. */
const OTHER = "k0";

/** A crate with its class, and its part of the memory. */
export interface CrateColour {
  name: string;
  colour: string;
  part: number;
}

/** Returns the first identifier of a function's path; an empty text for types, and for functions without a path. */
function crateOf(name: string): string {
  return /^<?(?:dyn |impl |&)*([A-Za-z_][A-Za-z0-9_]*)::/.exec(name)?.[1] ?? "";
}

export class CrateColours {
  /** The crates with their own colour, the largest first. */
  readonly crates: CrateColour[];
  private readonly classes = new Map<string, string>();

  constructor(root: Frame) {
    // A frame counts with the memory that its callers do not have in the same crate: a crate counts once in a stack.
    const sizes = new Map<string, number>();
    const left: { frame: Frame; above: ReadonlySet<string> }[] = root.called.map((frame) => ({ frame, above: new Set<string>() }));
    for (let next = left.pop(); next; next = left.pop()) {
      const { frame } = next;
      let { above } = next;
      const crate = crateOf(frame.name);
      if (crate && !above.has(crate)) {
        sizes.set(crate, (sizes.get(crate) ?? 0) + frame.size);
        above = new Set(above).add(crate);
      }
      for (const called of frame.called) left.push({ frame: called, above });
    }
    const whole = Math.max(1, root.size);
    const largest = [...sizes].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, MOST);
    this.crates = largest.map(([name, size], at) => ({ name, colour: `k${at + 1}`, part: size / whole }));
    for (const { name, colour } of this.crates) this.classes.set(name, colour);
  }

  /** Returns the class of a function. */
  colour(name: string): string {
    return this.classes.get(crateOf(name)) ?? OTHER;
  }
}
