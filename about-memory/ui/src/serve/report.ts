// A report: the tree and the treemap of the page that `html` writes, with data from the server.

import { decode } from "../data";
import { create } from "../elements";
import { Model } from "../model";
import type { View } from "../view";
import { TreeView } from "../views/tree_view";
import { TreemapView } from "../views/treemap_view";
import type { Api } from "./api";
import type { Page, Tell } from "./memory";
import { changed, type Route } from "./route";

const TYPING = 300;

export function reportPage(main: HTMLElement, api: Api, route: Route, tell: Tell): Page {
  let isClosed = false;
  const id = Number(route.parts[1]);
  const load = async () => {
    const model = new Model(decode(await api.bytes(`reports/${id}`)));
    if (isClosed) return;
    show(main, api, route, model, tell);
  };
  main.replaceChildren(create("p", "empty", "Loading …"));
  load().catch((error: Error) => tell(error.message, true));
  return {
    close() {
      isClosed = true;
    },
  };
}

function show(main: HTMLElement, api: Api, route: Route, model: Model, tell: Tell) {
  const views: View[] = [new TreeView(model), new TreemapView(model)];
  const shown = views.find((view) => view.id === route.query.get("view")) ?? views[0];
  const bar = create("div", "bar");
  const tabs = create("span", "tabs");
  for (const view of views) {
    const tab = create("a", "", view.title);
    tab.href = changed(route, { view: view.id });
    if (view === shown) tab.setAttribute("aria-current", "page");
    tabs.append(tab);
  }
  const filter = create("input");
  filter.type = "search";
  filter.id = "filter";
  filter.placeholder = "part of a path";
  filter.value = route.query.get("filter") ?? "";
  filter.setAttribute("aria-label", "Filter");
  const verbose = create("input");
  verbose.type = "checkbox";
  verbose.id = "verbose";
  verbose.checked = route.query.get("verbose") === "1";
  const label = create("label");
  label.append(verbose, " verbose");
  const save = create("button", "", "Save");
  save.type = "button";
  save.title = "Save as memory-report.json.gz, which Firefox loads, too";
  save.addEventListener("click", () => {
    api.download(`reports/${route.parts[1]}/file`).catch((error: Error) => tell(error.message, true));
  });
  const update = () => {
    model.ask({ filter: filter.value, regex: false, verbose: verbose.checked, hideTiny: true });
    shown.update();
    history.replaceState(null, "", changed(route, { filter: filter.value, verbose: verbose.checked ? "1" : "" }));
  };
  let timer = 0;
  filter.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(update, TYPING);
  });
  verbose.addEventListener("change", update);
  bar.append(tabs, filter, label, save);
  const fill = create("div", "fill");
  fill.append(shown.element);
  main.replaceChildren(bar, fill);
  update();
  tell("", false);
  (shown.focused ?? shown.element).focus();
}
