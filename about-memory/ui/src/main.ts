// The page: reads its data, then shows a view with the settings of the toolbar.

import { read } from "./data/reports";
import { copyText } from "./widgets/clipboard";
import { byId, create, setText } from "./widgets/elements";
import { showName, showText } from "./text/escape";
import { Model } from "./model/model";
import { HeapViews } from "./views/heap_views";
import { ProcessIndex } from "./widgets/process_index";
import type { View } from "./views/view";
import { FlameView } from "./views/flame_view";
import { TreeView } from "./views/tree_view";
import { TreemapView } from "./views/treemap_view";

declare global {
  interface Window {
    /** Returns the shown text. It has the same bytes as the text that a reader copies from Firefox's page. */
    aboutMemoryText: () => string;
  }
}

/** The filter is applied this many milliseconds after the last key. */
const TYPING = 300;

function start(model: Model) {
  const tree = new TreeView(model);
  const views: View[] = [tree, new TreemapView(model)];
  const { flame, processes, heapView } = model.data;
  // A page with only a dump has no reports to show.
  const flameOnly = flame !== null && processes.length === 0;
  if (flame) views.push(new FlameView(flame, model));
  if (flameOnly) views.splice(0, 2);
  // The tree shows the warnings itself, but a page with only a dump has no tree.
  const warnings = flameOnly || heapView ? model.data.setWarnings : [];
  if (warnings.length > 0) {
    const above = create("div", "above");
    for (const { subject, message } of warnings) {
      above.append(create("p", "notes warning", `WARNING: ${showName(subject)}: ${showText(message)}`));
    }
    byId("toolbar").parentElement!.after(above);
  }
  const heap = heapView && new HeapViews(heapView, model, () => shown.update());
  if (heap) {
    heap.onShow = (view) => {
      show(view);
      (view.focused ?? view.element).focus();
    };
    views.splice(0, views.length, ...heap.views);
    byId("toolbar").parentElement!.after(heap.above);
    byId("tree-tools").classList.remove("reports");
    byId("tree-tools").hidden = true;
  }
  const tabs = views.map((view) => {
    const tab = create("button", "", view.title);
    tab.type = "button";
    tab.id = `tab-${view.id}`;
    tab.setAttribute("role", "tab");
    tab.addEventListener("click", () => show(view));
    view.element.id = `view-${view.id}`;
    return tab;
  });
  const index = new ProcessIndex(byId("processes"), model, (row) => {
    show(tree);
    tree.goTo(row);
    tree.element.focus();
  });
  let shown: View = views[0];

  function show(view: View) {
    shown = view;
    views.forEach((other, i) => {
      other.element.hidden = other !== view;
      tabs[i].setAttribute("aria-selected", String(other === view));
    });
    const ofReports = document.querySelectorAll<HTMLElement>(".reports, #processes");
    for (const element of ofReports) element.hidden = view.isOfDump === true;
    byId("processes").hidden ||= heap !== null;
    view.update();
  }

  function update() {
    showMessage(model.filterError, true);
    if (heap) heap.showSum();
    else index.update();
    shown.update();
  }

  const filter = byId<HTMLInputElement>("filter");
  const checked = (id: string) => byId<HTMLInputElement>(id).checked;
  const apply = () => {
    const settings = {
      filter: filter.value,
      regex: checked("regex"),
      verbose: checked("verbose"),
      hideTiny: checked("hide-tiny"),
    };
    if (model.apply(settings)) update();
  };
  let typing = 0;
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = window.setTimeout(apply, TYPING);
  });
  filter.addEventListener("change", apply);
  for (const id of ["regex", "verbose", "hide-tiny"]) byId(id).addEventListener("change", apply);
  const toggleAll = (open: boolean) => {
    model.toggleAll(open);
    update();
  };
  byId("expand").addEventListener("click", () => toggleAll(true));
  byId("collapse").addEventListener("click", () => toggleAll(false));
  byId("copy").addEventListener("click", () => void copy(model.rows.text()));
  window.aboutMemoryText = () => model.rows.text();

  setText(byId("title"), document.title);
  byId("tabs").append(...tabs);
  byId("views").replaceChildren(...views.map((view) => view.element));
  show(shown);
  if (!heap) index.update();
  (shown.focused ?? shown.element).focus();
}

/** Shows a message beside the buttons. An empty message removes it. */
function showMessage(message: string, isError = false) {
  setText(byId("message"), message);
  byId("message").classList.toggle("error", isError);
}

async function copy(text: string) {
  const copied = await copyText(text);
  showMessage(copied ? "Copied." : "The browser does not allow this page to copy.", !copied);
}

read(byId("data")).then(
  (data) => {
    start(new Model(data));
    document.documentElement.dataset.state = "ready";
  },
  (error: unknown) => {
    setText(byId("loading"), `The data of this page cannot be read: ${String(error)}`);
    document.documentElement.dataset.state = "failed";
  },
);
