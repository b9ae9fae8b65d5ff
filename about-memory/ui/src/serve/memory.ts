// The views of a snapshot, of two and of more: aggregate, tree map, dominators, individuals, suspects, search, difference,
// generations.

import { create } from "../elements";
import type { Api, State } from "./api";
import { choice, exportMenu, type File } from "./export_menu";
import { MapView } from "./map";
import { PathsPane } from "./paths";
import { changed, link, type Route } from "./route";
import { Table } from "./table";
import { TypesView } from "./types";

const GROUPS: [string, string][] = [
  ["type", "Type"],
  ["stack", "Call Stack"],
  ["objectClass", "Class"],
  ["internalType", "Internal Type"],
  ["coarseType", "Coarse Type"],
  ["filename", "File Name"],
];
const VIEWS: [string, string][] = [
  ["treemap", "Tree Map"],
  ["census", "Aggregate"],
  ["dominators", "Dominators"],
  ["suspects", "Suspects"],
  ["search", "Search"],
];
/** The view of a snapshot with typed blocks. */
const TYPES: [string, string] = ["types", "Types"];
/** A search begins this many milliseconds after the last key. */
const TYPING = 300;

export interface Page {
  close(): void;
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
  const go = (changes: Record<string, string>) => location.replace(changed(route, changes));
  const bar = create("div", "bar");
  main.replaceChildren(bar);
  if (isDiff) {
    bar.append(create("strong", "", `From snapshot ${first} to snapshot ${second}`));
    const swap = create("a", "", "Swap");
    swap.href = link(["diff", second, first], Object.fromEntries(query));
    bar.append(swap);
  } else if (generations.length) {
    bar.append(create("strong", "", "Growth from the first snapshot to the last"));
    bar.append(...state.snapshots.filter(({ state }) => state === "read").map(({ id, title }) => {
      const chosen = generations.includes(id);
      const label = check(`${id}. ${title}`, chosen, () => {
        const next = chosen ? generations.filter((other) => other !== id) : [...generations, id].sort((a, b) => a - b);
        location.hash = link(["generations", ...next], Object.fromEntries(query));
      });
      // One snapshot stays.
      label.querySelector("input")!.disabled = chosen && generations.length === 1;
      return label;
    }));
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
  if (hasGroups) bar.append(choice("Group by", GROUPS, by, (value) => go({ by: value, invert: "" })));
  if (hasGroups && view !== "treemap") {
    bar.append(check("Invert tree", invert, (value) => go({ invert: value ? "1" : "0" })));
    bar.append(field("Filter", filter, (value) => go({ filter: value })));
  }
  if (view === "search") bar.append(field("Name or id", query.get("q") ?? "", (value) => go({ q: value })));
  if (view === "individuals") {
    bar.append(create("strong", "", `Nodes of the group ${query.get("name") ?? ""}`));
    const back = create("a", "", "← Back to the aggregate");
    back.href = link(["memory", first, "census"], { by });
    bar.append(back);
  }

  if (view === "types") {
    const types = new TypesView(api, first, by, tell);
    main.append(types.element);
    types.element.focus();
    return types;
  }
  const asked: Record<string, Record<string, unknown>> = {
    census: { view: "census", snapshot: first, by, invert, filter },
    treemap: { view: "tree-map", snapshot: first, by },
    diff: { view: "diff", baseline: first, comparison: second, by, invert, filter },
    generations: { view: "generations", snapshots: generations, by, invert, filter },
    dominators: { view: "dominators", snapshot: first },
    suspects: { view: "suspects", snapshot: first },
    search: { view: "search", snapshot: first, text: query.get("q") ?? "" },
    individuals: {
      view: "individuals",
      snapshot: first,
      by,
      leaves: (query.get("leaves") ?? "").split(",").filter(Boolean).map(Number),
    },
  };
  const question = asked[view];
  if (!question) {
    main.append(create("p", "empty", `There is no view called ${view}.`));
    return { close() {} };
  }
  bar.append(exports(api, question, isDiff || generations.length ? null : first, tell));
  if (view === "treemap") {
    const choose = (name: string) => (location.hash = link(["memory", first, "census"], { by, filter: name }));
    const map = new MapView(api, question, choose, tell);
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
  const isOfNodes = !hasGroups;
  const paths = isOfNodes ? new PathsPane(api, first) : null;
  const column = query.get("sort");
  const ascending = query.get("asc") === "1";
  const table = new Table(api, {
    query: question,
    isOfNodes,
    isDiff,
    heads: Object.fromEntries(generations.map((id, place) => [`in-${place}`, `Snapshot ${id}`])),
    label: isOfNodes ? "Nodes" : "Groups",
    sort: column ? { column, ascending } : null,
    onSort: (next) => go({ sort: next, asc: next === column && !ascending ? "1" : "" }),
    ...(paths ? { onFocus: (row) => paths.show(row.id) } : {}),
    ...(view === "census"
      ? {
          onBehind: (row) => {
            const leaves = row.leaves.join(",");
            location.hash = link(["memory", first, "individuals"], { by, leaves, name: row.name.join(" › ") });
          },
        }
      : {}),
    onState: tell,
    empty: filter ? "No matches." : isDiff ? "No difference between the two snapshots." : "Empty.",
  });
  main.append(table.element);
  if (paths) main.append(paths.element);
  if (!bar.contains(document.activeElement)) table.focus();
  return {
    close() {
      table.close();
      paths?.close();
    },
  };
}

function exports(api: Api, query: Record<string, unknown>, snapshot: number | null, tell: Tell): HTMLElement {
  const isOfNodes = ["dominators", "suspects", "search", "individuals"].includes(String(query.view));
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

function check(title: string, value: boolean, set: (value: boolean) => void) {
  const label = create("label");
  const box = create("input");
  box.type = "checkbox";
  box.checked = value;
  box.addEventListener("change", () => set(box.checked));
  label.append(box, ` ${title}`);
  return label;
}

function field(title: string, value: string, set: (value: string) => void) {
  const label = create("label", "", `${title} `);
  const input = create("input");
  input.type = "search";
  input.id = "filter";
  input.value = value;
  input.spellcheck = false;
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      sessionStorage.setItem("typing", "1");
      set(input.value);
    }, TYPING);
  });
  label.append(input);
  // The view was made anew by what the reader types.
  if (sessionStorage.getItem("typing")) {
    sessionStorage.removeItem("typing");
    queueMicrotask(() => {
      input.focus();
      input.setSelectionRange(value.length, value.length);
    });
  }
  return label;
}
