// Functions with their callers and callees. In a recursion, each function counts once.

import type { Frame } from "./flame";

export interface CallEdge {
  name: string;
  bytes: number;
}

export interface FunctionCalls {
  name: string;
  /** The bytes of the function and of everything that it called. */
  bytes: number;
  /** The bytes of the function itself. */
  own: number;
  callers: Map<string, number>;
  callees: Map<string, number>;
}

/** Returns the functions of all frames below `root`, the largest function first. */
export function functionCalls(root: Frame): FunctionCalls[] {
  const all = new Map<string, FunctionCalls>();
  const of = (name: string) => {
    let known = all.get(name);
    if (!known) all.set(name, (known = { name, bytes: 0, own: 0, callers: new Map(), callees: new Map() }));
    return known;
  };
  const add = (to: Map<string, number>, name: string, bytes: number) => to.set(name, (to.get(name) ?? 0) + bytes);
  // For each function: how often it is on the path from the root to the current frame.
  const open = new Map<string, number>();
  const enter = (key: string) => {
    const depth = open.get(key) ?? 0;
    open.set(key, depth + 1);
    return depth === 0;
  };
  const leave = (key: string) => open.set(key, open.get(key)! - 1);
  const call = (frame: Frame) => `${frame.caller!.name}\0${frame.name}`;
  const left: { frame: Frame; ends: boolean }[] = root.called.map((frame) => ({ frame, ends: false }));
  for (let next = left.pop(); next; next = left.pop()) {
    const { frame, ends } = next;
    const isOutermost = frame.caller === root;
    if (ends) {
      leave(frame.name);
      if (!isOutermost) leave(call(frame));
      continue;
    }
    const peeked = of(frame.name);
    const bytes = Number(frame.bytes);
    if (enter(frame.name)) peeked.bytes += bytes;
    peeked.own += frame.called.reduce((own, called) => own - Number(called.bytes), bytes);
    if (!isOutermost && enter(call(frame))) {
      add(peeked.callers, frame.caller!.name, bytes);
      add(of(frame.caller!.name).callees, frame.name, bytes);
    }
    left.push({ frame, ends: true });
    for (const called of frame.called) left.push({ frame: called, ends: false });
  }
  return [...all.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
}

/** The neighbours of a function, the largest first. */
export function callEdges(of: Map<string, number>): CallEdge[] {
  return [...of].map(([name, bytes]) => ({ name, bytes })).sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
}
