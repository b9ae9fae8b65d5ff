// Which reports are shown: a substring or a regular expression of the path as reported.

import { type Data, isItself, rawName } from "./data";

/** `null` if all pass; an error if the pattern is none, and then nothing passes, as in Firefox. */
export type Filter = { accepts: (path: string) => boolean; extends: boolean } | null;

export function makeFilter(text: string, isRegex: boolean): { filter: Filter; error: string } {
  if (text === "") return { filter: null, error: "" };
  // What contains a text does so with anything behind it; a pattern may be bound to the end.
  if (!isRegex) return { filter: { accepts: (path) => path.includes(text), extends: true }, error: "" };
  try {
    const regex = new RegExp(text);
    return { filter: { accepts: (path) => regex.test(path), extends: false }, error: "" };
  } catch {
    return { filter: { accepts: () => false, extends: true }, error: "not a regular expression" };
  }
}

/** For each leaf, whether it passes: nothing else is told. */
export function passing(data: Data, filter: Filter): Uint8Array | null {
  if (!filter) return null;
  const passes = new Uint8Array(data.count);
  const stored = data.descriptionOf.length;
  // The nodes above the one looked at, their paths, and whether that decides.
  const nodes: number[] = [];
  const paths: string[] = [];
  const sure: boolean[] = [];
  for (let node = 0; node < stored; node++) {
    const parent = data.parent[node];
    while (nodes.length > 0 && nodes[nodes.length - 1] !== parent) {
      nodes.pop();
      paths.pop();
      sure.pop();
    }
    const top = nodes.length - 1;
    if (top >= 0 && sure[top]) {
      passes[node] = 1;
      if (data.firstChild[node] >= 0) {
        nodes.push(node);
        paths.push("");
        sure.push(true);
      }
      continue;
    }
    const above = top < 0 ? "" : paths[top];
    const path = top < 0 ? rawName(data, node) : isItself(data, node) ? above : `${above}/${rawName(data, node)}`;
    if (data.firstChild[node] >= 0) {
      nodes.push(node);
      paths.push(path);
      sure.push(filter.extends && filter.accepts(path));
    } else if (filter.accepts(path)) {
      passes[node] = 1;
    }
  }
  return passes;
}
