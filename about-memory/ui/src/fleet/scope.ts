// The part of the tables that the page shows: the address, and the controls that change it.

import { create, words } from "../widgets/elements";
import { choice, type MenuOption } from "../widgets/controls";
import { link, type Route } from "../serve/route";

/** What a request is about. Empty texts stand for all. */
export interface Scope {
  service: string;
  path: string;
  version: string;
  from: string;
  to: string;
}

/** The lists of the server. */
export interface FleetState {
  version: string;
  folder: string;
  services: { name: string; versions: string[] }[];
  /** The number of services that are not in the list. */
  omitted: number;
  /** The first and the last day of the tables. */
  from: string | null;
  to: string | null;
}

/** The questions with the heads of their links and their tooltips. */
export const QUESTIONS: [name: string, head: string, about: string][] = [
  ["growth", "Growth", "How much each path grew between the first and the last day"],
  ["versions", "Versions", "The versions that made a path grow"],
  ["leaks", "Leaks", "The paths that grow until their process restarts"],
  ["changes", "Changes", "The days on which a path changed its level"],
  ["outliers", "Outliers", "The processes that hold much more than their peers"],
  ["dark", "Dark", "The share of the heap that no report counts"],
  ["coverage", "Coverage", "The processes that stopped reporting"],
];

/** The path of a scope without a path. */
const PATH = "explicit";

export function scopeOf({ query }: Route): Scope {
  const text = (name: string) => query.get(name) ?? "";
  return { service: text("service"), path: query.get("path") ?? PATH, version: text("version"), from: text("from"), to: text("to") };
}

export const questionOf = ({ parts }: Route) => parts[0] ?? QUESTIONS[0][0];

/** The address of a question about a scope. */
export function address(question: string, { path, ...rest }: Scope): string {
  const to = link([question], { ...rest });
  // An empty path stands for all paths, so it stays in the address.
  if (path === PATH) return to;
  return `${to}${to.includes("?") ? "&" : "?"}${new URLSearchParams({ path })}`;
}

/** Fills the controls. `go` gets the changed scope. */
export function drawScope(form: HTMLElement, scope: Scope, state: FleetState, go: (to: Scope) => void) {
  const focused = document.activeElement?.id;
  const services: MenuOption[] = [["", "all"], ...state.services.map(({ name }): MenuOption => [name, name])];
  if (scope.service && !services.some(([name]) => name === scope.service)) services.push([scope.service, scope.service]);
  const service = choice("Service", services, scope.service, (service) => go({ ...scope, service, version: "" }));
  const known = state.services.find(({ name }) => name === scope.service)?.versions ?? [];
  const versions: MenuOption[] = [["", "all"], ...known.map((name): MenuOption => [name, name])];
  if (scope.version && !known.includes(scope.version)) versions.push([scope.version, scope.version]);
  const version = choice("Version", versions, scope.version, (version) => go({ ...scope, version }));
  const text = (title: string, type: string, name: "path" | "from" | "to") => {
    const label = create("label", "", `${title} `);
    const input = create("input", name);
    input.type = type;
    input.value = scope[name];
    input.spellcheck = false;
    input.id = `scope-${name}`;
    if (type === "date") {
      input.min = state.from ?? "";
      input.max = state.to ?? "";
    }
    input.addEventListener("change", () => go({ ...scope, [name]: input.value }));
    label.append(input);
    return label;
  };
  service.querySelector("select")!.id = "scope-service";
  version.querySelector("select")!.id = "scope-version";
  const all: Node[] = [service, version, text("Path", "text", "path"), text("From", "date", "from"), text("To", "date", "to")];
  if (state.omitted > 0) all.push(words(`${state.omitted} services are not in the list.`));
  form.replaceChildren(...all);
  if (focused) document.getElementById(focused)?.focus();
}
