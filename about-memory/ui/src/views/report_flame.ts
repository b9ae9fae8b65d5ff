// A report as a flame graph: the tree `explicit` of each process. A flame graph cannot show negative amounts, so
// differences have no flame graph.

import { Frame } from "../data/flame";
import type { Model } from "../model/model";
import { rawName } from "../data/reports";
import type { View } from "./view";
import { FlameView } from "./flame_view";

export function reportFlame(model: Model): View {
  const flame = new FlameView({ root: rootOf(model) }, model, "report");
  let shown = model.forest;
  return {
    id: flame.id,
    title: flame.title,
    element: flame.element,
    focused: flame.focused,
    update() {
      // A filter or a later measurement has made a new forest.
      if (shown !== model.forest) {
        shown = model.forest;
        flame.show({ root: rootOf(model) });
      }
      flame.update();
    },
  };
}

function rootOf(model: Model): Frame {
  const { data, forest } = model;
  const leaves = new Float64Array(data.count);
  for (let node = data.count - 1; node >= 0; node--) {
    if (data.firstChild[node] < 0) leaves[node] = forest.left[node];
    if (data.parent[node] >= 0) leaves[data.parent[node]] += leaves[node];
  }
  const below = (node: number, caller: Frame): Frame[] => {
    const frames: Frame[] = [];
    for (let child = data.firstChild[node]; child >= 0; child = data.nextSibling[child]) {
      if (forest.isLeft(child) && forest.amount(child) > 0) frames.push(of(child, rawName(data, child), caller));
    }
    return frames;
  };
  const of = (node: number, name: string, caller: Frame): Frame => {
    const frame: Frame = new Frame(name, caller, Number(forest.amount(node)), leaves[node], false, () => below(node, frame));
    return frame;
  };
  const known = data.processes.filter(({ explicit }) => explicit >= 0 && forest.amount(explicit) > 0);
  const sum = (amount: (node: number) => number) => known.reduce((all, { explicit }) => all + amount(explicit), 0);
  const made = () => known.map(({ explicit, name }) => of(explicit, name, root));
  const root: Frame = new Frame("explicit", null, sum((node) => Number(forest.amount(node))), sum((node) => leaves[node]), false, made);
  return root;
}
