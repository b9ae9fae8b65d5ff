// The address of a view. It contains everything that is needed to show the same rows again.

export interface Route {
  /** `#/memory/1/census` is `["memory", "1", "census"]`. */
  parts: string[];
  query: URLSearchParams;
}

export function readRoute(): Route {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path ? path.split("/") : [], query: new URLSearchParams(query ?? "") };
}

/** Returns the address of a view. Empty values are omitted. */
export function link(parts: (string | number)[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = search.toString();
  return `#/${parts.join("/")}${text ? `?${text}` : ""}`;
}

/** Returns the address of the same view with changed values. */
export function changed(route: Route, changes: Record<string, string>): string {
  return link(route.parts, { ...Object.fromEntries(route.query), ...changes });
}

/** Changes the address without a new entry in the history. The page must already show what the new address names. */
export function replaceAddress(address: string) {
  if (address === location.hash) return;
  history.replaceState(null, "", address);
  dispatchEvent(new Event("address-replaced"));
}
