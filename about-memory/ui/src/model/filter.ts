// Filters on paths as reported: a substring or a regular expression.

import { type ReportData, isItself, rawName } from "../data/reports";

/** `null` accepts all paths. `extends` means that a filter that accepts a path also accepts all paths below it. */
export type Filter = { accepts: (path: string) => boolean; extends: boolean } | null;

/** Makes a filter. An invalid regular expression returns an error, and the filter accepts nothing, as in Firefox. */
export function makeFilter(text: string, isRegex: boolean): { filter: Filter; error: string } {
  if (text === "") return { filter: null, error: "" };
  // A path below a path that contains a text also contains the text. A pattern with `$` does not have this property.
  if (!isRegex) return { filter: { accepts: (path) => path.includes(text), extends: true }, error: "" };
  try {
    const regex = new RegExp(text);
    return { filter: { accepts: (path) => regex.test(path), extends: false }, error: "" };
  } catch {
    return { filter: { accepts: () => false, extends: true }, error: "not a regular expression" };
  }
}

/** Returns for each leaf whether the filter accepts it. The values of inner nodes have no meaning. */
export function passing(data: ReportData, filter: Filter): Uint8Array | null {
  if (!filter) return null;
  const passes = new Uint8Array(data.count);
  const stored = data.descriptionOf.length;
  // The nodes above the current node, their paths, and whether all leaves below them pass.
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
