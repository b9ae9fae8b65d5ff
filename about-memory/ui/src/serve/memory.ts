// The views of a snapshot, of two and of more: aggregate, tree map, dominators, classes, individuals, suspects, search,
// difference, generations.

import { brief, create, setName, setTip } from "../elements";
import type { Api, Display, State } from "./api";
import { button, check, choice, field, type Option } from "./controls";
import { exportMenu, type File } from "./export_menu";
import { MapView } from "./map";
import { Opened } from "./opened";
import { PathsPane } from "./paths";
import { changed, link, readRoute, type Route } from "./route";
import { Table } from "./table";
import { TypesView } from "./types";

const GROUPS: Option[] = [
  ["type", "Type"],
  ["stack", "Call Stack"],
  ["objectClass", "Class"],
  ["internalType", "Internal Type"],
  ["coarseType", "Coarse Type"],
  ["filename", "File Name"],
];
/** The type of a node, as the server names nodes by itself. */
const LABEL =
  '{"by":"coarseType","objects":{"by":"objectClass","then":{"by":"count","count":true,"bytes":true},"other":{"by":"count","count":true,"bytes":true}},"strings":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"scripts":{"by":"internalType","then":{"by":"filename","then":{"by":"count","count":true,"bytes":true},"noFilename":{"by":"count","count":true,"bytes":true}}},"other":{"by":"internalType","then":{"by":"count","count":true,"bytes":true}},"domNode":{"by":"descriptiveType","then":{"by":"count","count":true,"bytes":true}}}';
const LABELS: Option[] = [
  ["", "Type"],
  [`{"by":"allocationStack","then":${LABEL},"noStack":${LABEL}}`, "Call Stack"],
];
/** The choice of a breakdown that the reader writes. */
const OWN = "own";
const VIEWS: [string, string][] = [
  ["treemap", "Tree Map"],
  ["census", "Aggregate"],
  ["dominators", "Dominators"],
  ["classes", "Classes"],
  ["suspects", "Suspects"],
  ["search", "Search"],
];
/** The view of a snapshot with typed blocks. */
const TYPES: [string, string] = ["types", "Types"];
/** The levels of dominators that are open at first: as in Firefox three, of which the root is the first. */
const DEPTH = 2;
/** What the page says while it waits for a view. */
const BUSY: Record<string, string> = {
  census: "Generating aggregate report…",
  treemap: "Generating tree map…",
  diff: "Computing difference…",
  generations: "Computing differences…",
  dominators: "Generating dominators report…",
  classes: "Computing dominator's retained sizes…",
  individuals: "Fetching individuals in group…",
  suspects: "Looking for suspects…",
  search: "Searching…",
};

export interface Page {
  close(): void;
  /** The server has other snapshots, reports or stacks. */
  renew?(state: State): void;
}

export type Tell = (text: string, isError: boolean) => void;

/** Shows a route below `#/memory`, `#/diff` or `#/generations`. */
export function memoryPage(main: HTMLElement, api: Api, state: State, route: Route, tell: Tell): Page {
  const isDiff = route.parts[0] === "diff";
  const generations = route.parts[0] === "generations" ? route.parts.slice(1).map(Number) : [];
  const [first, second] = [Number(route.parts[1]), Number(route.parts[2])];
  const view = isDiff ? "diff" : generations.length ? "generations" : (route.parts[2] ?? "census");
  const { query } = route;
  const by = query.get("by") ?? "type";
  // By type the leaves come first, as in Firefox.
  const invert = (query.get("invert") ?? (by === "type" ? "1" : "0")) === "1";
  const filter = query.get("filter") ?? "";
  const names = query.get("label") ?? "";
  // Those that a filter keeps are open, and so are the first levels of dominators.
  const depth = view === "dominators" ? DEPTH : 0;
  const opened = new Opened(query, filter !== "" || depth > 0);
  const go = (changes: Record<string, string>) => location.replace(changed(readRoute(), { ...opened.address, ...changes }));
  /** The same rows of other snapshots stay open. */
  const kept = () => ({ ...Object.fromEntries(readRoute().query), ...opened.address });
  const bar = create("div", "bar");
  main.replaceChildren(bar);
  /** The snapshots that may stand side by side. */
  const sides = create("span", "sides");
  const drawSides = ({ snapshots }: State) => {
    const read = snapshots.filter(({ state }) => state === "read");
    const boxes = new Map([...sides.querySelectorAll("label")].map((label) => [Number(label.dataset.snapshot), label]));
    for (const [id, label] of boxes) if (!read.some((snapshot) => snapshot.id === id)) label.remove();
    // Numbers only grow, so new ones come last.
    sides.append(...read.filter(({ id }) => !boxes.has(id)).map(({ id, title }) => {
      const chosen = generations.includes(id);
      const label = check(`${id}. ${brief(title)}`, chosen, () => {
        const next = chosen ? generations.filter((other) => other !== id) : [...generations, id];
        location.hash = link(["generations", ...next], kept());
      });
      label.dataset.snapshot = String(id);
      // One snapshot stays.
      label.querySelector("input")!.disabled = chosen && generations.length === 1;
      return label;
    }));
  };
  if (isDiff) {
    bar.append(create("strong", "", `From snapshot ${first} to snapshot ${second}`));
    bar.append(button("Swap", () => (location.hash = link(["diff", second, first], kept()))));
  } else if (generations.length) {
    bar.append(create("strong", "", "Growth from the first snapshot to the last"));
    bar.append(button("Swap", () => (location.hash = link(["generations", ...[...generations].reverse()], kept()))), sides);
    drawSides(state);
  } else {
    const tabs = create("span", "tabs");
    const views = state.types.includes(first) ? [TYPES, ...VIEWS] : VIEWS;
    for (const [name, title] of views) {
      const tab = create("a", "", title);
      tab.href = link(["memory", first, name]);
      if (name === view) tab.setAttribute("aria-current", "page");
      tabs.append(tab);
    }
    bar.append(tabs);
  }
  const hasGroups = ["census", "treemap", "diff", "generations"].includes(view);
  const others = { open: "", all: "", closed: "", at: "" };
  if (hasGroups) {
    const displays = view === "treemap" ? state.displays["tree-map"] : state.displays.census;
    bar.append(...breakdown("Group by", GROUPS, displays, [by, invert], (value, inverted) => go({ by: value, invert: inverted, ...others })));
  }
  if (hasGroups && view !== "treemap") {
    bar.append(check("Invert tree", invert, (value) => go({ invert: value ? "1" : "0", ...others })));
  }
  if (view !== "suspects" && view !== "search" && view !== "types") {
    bar.append(field("Filter", filter, (value) => go({ filter: value, at: "" }), { isNew: true }));
  }
  if (view === "search") bar.append(field("Name or id", query.get("q") ?? "", (value) => go({ q: value, at: "" }), { isNew: true }));
  if (["dominators", "suspects", "search", "individuals"].includes(view)) {
    bar.append(...breakdown("Label by", LABELS, state.displays.label, [names, null], (value) => go({ label: value })));
  }
  if (view === "individuals") bar.append(...ofGroup(route, first));

  if (view === "types") {
    const types = new TypesView(api, first, by, tell);
    main.append(types.element);
    types.element.focus();
    return types;
  }
  const asked: Record<string, Record<string, unknown>> = {
    census: { view: "census", snapshot: first, by, invert, filter },
    treemap: { view: "tree-map", snapshot: first, by, filter },
    diff: { view: "diff", baseline: first, comparison: second, by, invert, filter },
    generations: { view: "generations", snapshots: generations, by, invert, filter },
    dominators: { view: "dominators", snapshot: first, filter },
    classes: { view: "classes", snapshot: first, filter },
    suspects: { view: "suspects", snapshot: first },
    search: { view: "search", snapshot: first, text: query.get("q") ?? "" },
    individuals: { view: "individuals", snapshot: first, by, invert, group: Number(query.get("group")), filter },
  };
  const question = asked[view];
  if (!question) {
    main.append(create("p", "empty", `There is no view called ${view}.`));
    return { close() {} };
  }
  bar.append(exports(api, question, isDiff || generations.length ? null : first, tell));
  if (view === "treemap") {
    const choose = (name: string) => (location.hash = link(["memory", first, "census"], { by, filter: name }));
    const map = new MapView(api, question, choose, tell, BUSY[view]);
    const fill = create("div", "fill");
    fill.append(map.element);
    main.append(fill);
    return map;
  }
  if (view === "search" && !query.get("q")) {
    main.append(create("p", "empty", "Type a part of a name, or the id of a node as @0x1f or 31."));
    bar.querySelector("input")?.focus();
    return { close() {} };
  }
  const isOfNodes = !hasGroups && view !== "classes";
  const paths = isOfNodes ? new PathsPane(api, first) : null;
  const column = query.get("sort");
  const ascending = query.get("asc") === "1";
  const all = isDiff ? [first, second] : generations.length ? generations : [first];
  const table = new Table(api, {
    query: question,
    isOfNodes,
    isDiff,
    heads: Object.fromEntries(generations.map((id, place) => [`in-${place}`, `Snapshot ${id}`])),
    label: isOfNodes ? "Nodes" : "Groups",
    names,
    depth,
    sort: column ? { column, ascending } : null,
    onSort: (next) => go({ sort: next, asc: next === column && !ascending ? "1" : "", at: "" }),
    ...(paths ? { onFocus: (row) => (row.node ? paths.show(row.id) : paths.clear()) } : {}),
    ...(hasGroups
      ? {
          // Of several sides the last comes first.
          onBehind: (row) => {
            const of = all.length > 1 ? { of: all.join(".") } : {};
            const from = changed(readRoute(), opened.address).slice(2);
            const group = { by, invert: invert ? "1" : "0", group: String(row.id), name: row.name.join(" › "), from };
            location.hash = link(["memory", all[all.length - 1], "individuals"], { ...group, ...of });
          },
        }
      : {}),
    behind: "The nodes of this group",
    onState: tell,
    opened,
    busy: BUSY[view],
    empty: (only) => {
      if (only) {
        const isWithoutStacks = by === "stack" && !filter && only.name[0] === "(no stack available)";
        return isWithoutStacks ? "No call stacks found. Record call stacks before taking a snapshot." : "";
      }
      if (filter) return "No matches.";
      if (view === "individuals") return "This snapshot has no nodes of the group.";
      return isDiff ? "No difference between the baseline and comparison." : "Empty.";
    },
  });
  main.append(table.element);
  if (paths) main.append(paths.splitter, paths.element);
  if (!bar.contains(document.activeElement)) table.focus();
  return {
    ...(generations.length ? { renew: drawSides } : {}),
    close() {
      opened.close();
      table.close();
      paths?.close();
    },
  };
}

/** What the nodes of a group belong to: the view that the reader comes from, and the other sides of a difference. */
function ofGroup({ query }: Route, snapshot: number): HTMLElement[] {
  const { by, invert, group, name, of, from } = Object.fromEntries(query) as Record<string, string | undefined>;
  const sides = (of ?? "").split(".").filter(Boolean);
  const back = create("a", "", "← Back to the aggregate");
  const kept = { by: by ?? "type", invert: invert ?? "" };
  // An address without `from` is of a group, too; then the aggregate has that group.
  back.href = from ? `#/${from}` : link(["memory", snapshot, "census"], kept);
  const links = sides.map((side) => {
    const to = create("a", "", `in snapshot ${side}`);
    to.href = link(["memory", side, "individuals"], { ...kept, group: group ?? "", name: name ?? "", of: of ?? "", from: from ?? "" });
    if (Number(side) === snapshot) to.setAttribute("aria-current", "page");
    return to;
  });
  const tabs = create("span", "tabs");
  tabs.append(...links);
  return [create("strong", "", `⁂ Nodes of the group ${name ?? ""}`), tabs, back];
}

/**
 * The choice of a breakdown: one of the page's, one of the user's, or one that the reader writes. Two of the user's may have one
 * breakdown, of which one is turned around.
 */
function breakdown(
  title: string,
  known: Option[],
  own: Record<string, Display>,
  [value, invert]: [string, boolean | null],
  set: (value: string, inverted: string) => void,
): HTMLElement[] {
  const ofUser = new Map(Object.entries(own ?? {}).map(([name, display]) => [`display:${name}`, display]));
  const same = [...ofUser].filter(([, { breakdown }]) => JSON.stringify(breakdown) === value);
  const chosen = same.find(([, { inverted }]) => invert === null || inverted === invert) ?? same[0];
  const all: Option[] = [...known, ...[...ofUser].map(([name, { displayName, tooltip }]): Option => [name, displayName, tooltip])];
  const isWritten = !chosen && !known.some(([name]) => name === value);
  const input = create("input", "breakdown");
  input.value = isWritten ? value : "";
  input.hidden = !isWritten;
  input.placeholder = '{"by":"internalType"} and Enter';
  input.spellcheck = false;
  setName(input, `${title}: breakdown as JSON`);
  input.addEventListener("change", () => input.value && set(input.value, "0"));
  const menu = choice(title, [...all, [OWN, "own …"]], isWritten ? OWN : (chosen?.[0] ?? value), (next) => {
    const display = ofUser.get(next);
    if (display) return set(JSON.stringify(display.breakdown), display.inverted ? "1" : "0");
    if (next !== OWN) return set(next, "");
    input.hidden = false;
    input.focus();
  });
  setTip(menu, chosen?.[1].tooltip ?? "");
  return [menu, input];
}

function exports(api: Api, query: Record<string, unknown>, snapshot: number | null, tell: Tell): HTMLElement {
  const isOfNodes = ["dominators", "suspects", "search", "individuals", "classes"].includes(String(query.view));
  const own: [string, unknown] = isOfNodes
    ? ["this view as a table (.tsv)", { format: "tsv", query }]
    : ["this view as JSON", { format: "json", query }];
  const whole: [string, unknown][] =
    snapshot === null
      ? []
      : [
          ["the snapshot for Firefox (.fxsnapshot)", { format: "fxsnapshot", snapshot }],
          ["the snapshot for Chrome (.heapsnapshot)", { format: "heapsnapshot", snapshot }],
          ["the nodes by call stack for pprof (.pb.gz)", { format: "stacks", of: "pprof", snapshot }],
          ["the nodes by call stack for speedscope", { format: "stacks", of: "speedscope", snapshot }],
        ];
  const files = [own, ...whole].map(([title, body]): File => [title, () => api.download("export", body)]);
  return exportMenu(files, tell);
}
