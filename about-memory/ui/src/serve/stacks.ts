// The stacks of a dump or a recording: the views of the page that `html` writes, with data from the server.

import { decode } from "../data/reports";
import { create } from "../widgets/elements";
import { HeapViews } from "../views/heap_views";
import { Model } from "../model/model";
import type { View } from "../views/view";
import { FlameView } from "../views/flame_view";
import type { Api, ServerState } from "./api";
import { exportMenu, type ExportFile } from "./export_menu";
import type { Page, ShowStatus } from "./page";
import { button, check, choice, field, fillOptions, type MenuOption } from "../widgets/controls";
import { changed, link, replaceAddress, type Route } from "./route";
import { SuggestionsPane } from "./suggestions";

const FORMATS: [string, string][] = [
  ["pprof", "pprof (.pb.gz)"],
  ["speedscope", "speedscope (.speedscope.json)"],
  ["heaptrack", "heaptrack (.heaptrack)"],
  ["dhat", "DHAT (.dhat.json)"],
  ["firefox-profiler", "the Firefox Profiler (.profile.json)"],
  ["folded", "folded stacks (.folded)"],
];
const TICKET = "an address for go tool pprof (works once)";
/** The formats that contain allocated blocks in addition to live blocks. */
const HISTORIES = ["pprof", "heaptrack", "dhat"];

export function stacksPage(main: HTMLElement, api: Api, state: ServerState, route: Route, showStatus: ShowStatus): Page {
  let isClosed = false;
  let renew: ((state: ServerState) => void) | undefined;
  main.replaceChildren(create("p", "empty", "Loading …"));
  const load = async () => {
    const data = decode(await api.bytes(`stacks/${Number(route.parts[1])}`));
    if (!isClosed) renew = show(main, api, state, route, new Model(data), showStatus);
  };
  load().catch((error: Error) => !isClosed && showStatus(error.message, true));
  return {
    renew(next) {
      state = next;
      renew?.(next);
    },
    close() {
      isClosed = true;
    },
  };
}

/** Shows the stacks. Returns a function that updates the menus after the server's lists have changed. */
function show(main: HTMLElement, api: Api, state: ServerState, route: Route, model: Model, showStatus: ShowStatus) {
  // The views replace the data of the model, so these parts are read first.
  const { flame, heapView } = model.data;
  const values = Object.fromEntries(route.query);
  const heap = heapView && new HeapViews(heapView, model, () => update());
  const views: View[] = heap ? heap.views : flame ? [new FlameView(flame, model)] : [];
  let shown = views.find((view) => view.id === values.view) ?? views[0];
  if (!shown) {
    showStatus("There are no stacks in this file.", true);
    return;
  }
  if (heap) {
    heap.onShow = (view) => {
      shown = view;
      update();
      (view.focused ?? view.element).focus();
    };
  }
  let suggestions: SuggestionsPane | null = null;
  const fill = create("div", "fill");
  const tabs = create("span", "tabs");
  const buttons = views.map((view) => {
    const tab = create("button", "", view.title);
    tab.type = "button";
    tab.addEventListener("click", () => {
      shown = view;
      update();
      (view.focused ?? view.element).focus();
    });
    return tab;
  });
  tabs.append(...buttons);
  const filterLabel = field("Filter", values.filter ?? "", () => update(), { hint: "part of a name" });
  const filter = filterLabel.querySelector("input")!;
  const update = () => {
    model.apply({ filter: filter.value, regex: false, verbose: false, hideTiny: true });
    views.forEach((view, at) => {
      if (view === shown) buttons[at].setAttribute("aria-current", "page");
      else buttons[at].removeAttribute("aria-current");
    });
    if (fill.firstChild !== shown.element) fill.replaceChildren(shown.element);
    shown.update();
    const suggest = suggestions ? "1" : "";
    replaceAddress(changed(route, { ...heap?.address, view: shown.id, filter: filter.value, suggest }));
  };
  const bar = create("div", "bar");
  bar.append(tabs, filterLabel);
  const toObjects = heap && objectsButton(heap, () => state, showStatus);
  if (toObjects) bar.append(toObjects);
  const id = Number(route.parts[1]);
  if (state.stacks.find((stacks) => stacks.id === id)?.files) {
    const file = ([format, title]: [string, string]): ExportFile => [
      title,
      async () => {
        // The amounts of one time do not contain blocks that were freed before.
        if (heap?.address.shown === "allocated" && !HISTORIES.includes(format)) {
          throw new Error(`${title} has only what is alive at the end; choose pprof, heaptrack or DHAT, or other blocks.`);
        }
        await api.download(`stacks/${id}/export`, { format, ...heap?.window });
      },
    ];
    bar.append(exportMenu([...FORMATS.map(file), [TICKET, () => ticket(api, id, heap, showStatus)]], showStatus));
  }
  main.replaceChildren(bar, ...(heap ? [heap.above] : []), fill);
  /** Shows or removes the suggested reporters beside the stacks. */
  const suggest = (on: boolean) => {
    suggestions?.element.remove();
    suggestions = on && heap ? new SuggestionsPane(heap, api, id, showStatus) : null;
    if (suggestions) main.append(suggestions.element);
    update();
  };
  const hasBlocks = state.stacks.find((stacks) => stacks.id === id)?.blocks ?? false;
  const compare = async (before: string) => {
    showStatus("Computing difference…", false);
    const { stacks } = await api.post<{ stacks: number }>("stacks/compare", { before: Number(before), after: id });
    location.hash = link(["stacks", stacks]);
  };
  const since = choice("Since", [], "", (before) => {
    if (before) compare(before).catch((error: Error) => showStatus(error.message, true));
  });
  const select = since.querySelector("select")!;
  select.id = "since";
  bar.append(since);
  const drawLists = () => {
    const others = state.stacks.filter((other) => other.blocks && other.id !== id);
    fillOptions(select, [["", "nothing"], ...others.map(({ id, title }): MenuOption => [String(id), `${id}. ${title}`])]);
    since.hidden = !hasBlocks || others.length === 0;
    if (toObjects) toObjects.hidden = state.types.length === 0;
  };
  drawLists();
  if (heap && hasBlocks && heapView?.kinds) {
    bar.append(check("suggest reporters", values.suggest === "1", suggest));
    for (const event of ["click", "keydown"]) heap.table.element.addEventListener(event, () => suggestions?.update());
  }
  if (heap) heap.address = values;
  if (values.suggest === "1") suggest(true);
  update();
  showStatus("", false);
  document.documentElement.dataset.stacks = route.parts[1];
  (shown.focused ?? shown.element).focus();
  return (next: ServerState) => {
    state = next;
    drawLists();
  };
}

/**
 * Makes an address that gives the stacks to a program that cannot send the token. Copies a command with this address to
 * the clipboard.
 */
async function ticket(api: Api, id: number, heap: HeapViews | null | undefined, showStatus: ShowStatus) {
  const { path } = await api.post<{ path: string }>(`stacks/${id}/ticket`, { format: "pprof", ...heap?.window });
  const command = `go tool pprof ${location.origin}${path}`;
  // The browser may deny the clipboard. The status line shows the command in any case.
  const copied = await navigator.clipboard?.writeText(command).then(() => true, () => false);
  showStatus(`${copied ? "In the clipboard: " : ""}${command} (once, within a minute)`, false);
}

/** Returns a button that shows the blocks of a type in the newest heap snapshot with types. */
function objectsButton(heap: HeapViews, state: () => ServerState, showStatus: ShowStatus): HTMLElement {
  const title = "The blocks of the chosen type in the newest heap snapshot with types: who keeps them alive";
  const go = () => {
    const row = heap.table.row;
    if (row?.by !== "type") return showStatus("Choose a row of the table by type first.", true);
    const newest = Math.max(...state().types);
    location.hash = link(["memory", newest, "census"], { by: "type", filter: row.name });
  };
  return button("Objects", go, title);
}
