// What a reader can do with a function, a type or a stack: show it in another view, or copy its stack.

import { framesOf, frameName, framePlace, type Stacks } from "../data/stacks";

/** The views that can show one thing. */
export interface HeapActions {
  /** Shows the row of a table, opened to its stacks. */
  openRow(by: number, name: string): void;
  /** Shows a path of function names, outermost first, in the flame graph. */
  showFlame(path: string[]): void;
  /** Shows a function with its callers and callees. */
  showCallers(name: string): void;
}

/** Returns the names of a row's frames, outermost first. */
export function pathOfRow(stacks: Stacks, row: number): string[] {
  return framesOf(stacks, row).reverse().map((frame) => frameName(stacks, frame));
}

/** Returns a stack as text, one line for each frame, the innermost first. */
export function stackText(stacks: Stacks, row: number): string {
  const line = (frame: number) => {
    const place = framePlace(stacks, frame);
    return place ? `${frameName(stacks, frame)} (${place})` : frameName(stacks, frame);
  };
  return framesOf(stacks, row).map((frame) => `${line(frame)}\n`).join("");
}
