// The views of a recording or of a change, and what is above them: the time line, or the names of both sides.

import { formatAmount, Units } from "./amount";
import { create } from "./elements";
import { showText } from "./escape";
import { dataOf } from "./heap_data";
import { flameOf } from "./heap_flame";
import type { Model } from "./model";
import type { Amounts, Heap } from "./stacks";
import { TimeStrip } from "./time_strip";
import { select } from "./timeline";
import type { View } from "./view";
import { FlameView } from "./views/flame_view";
import { TableView } from "./views/table_view";
import { TreemapView } from "./views/treemap_view";

export class HeapViews {
  readonly views: View[];
  /** What is above the views. */
  readonly above = create("div", "above");
  private readonly strip: TimeStrip | null = null;
  private readonly stale = new Set<string>();
  private amounts: Amounts;
  private waiting = false;

  constructor(
    private readonly heap: Heap,
    private readonly model: Model,
    /** Shows the current view again. */
    private readonly redraw: () => void,
  ) {
    const { stacks, timeline, change } = heap;
    if (timeline) {
      this.strip = new TimeStrip(timeline, () => this.later());
      this.above.append(this.strip.element);
    }
    const notes = notesOf(heap);
    if (change) notes.unshift(`before: ${showText(change.before)} · after: ${showText(change.after)}`);
    if (notes.length > 0) this.above.append(create("p", "notes", notes.join(" · ")));
    this.amounts = this.current();
    const estimated = change?.estimated ?? false;
    const table = new TableView(stacks, this.amounts, model, estimated);
    model.replace(dataOf(stacks, this.amounts));
    const graph = () => ({ root: flameOf(stacks, this.amounts, estimated) });
    const flame = new FlameView(graph(), model);
    const treemap = new TreemapView(model);
    this.views = [
      this.lazily(table, () => table.show(this.amounts)),
      this.lazily(treemap, () => model.replace(dataOf(stacks, this.amounts))),
      this.lazily(flame, () => flame.show(graph())),
    ];
    this.tell();
  }

  /** Says how much the views show. */
  tell() {
    const sum = (amounts: Float64Array) => amounts.reduce((sum, amount) => sum + amount, 0);
    this.strip?.tell(sum(this.amounts.bytes), sum(this.amounts.blocks), this.model.asked.verbose);
  }

  private current(): Amounts {
    const { timeline, change } = this.heap;
    if (change) return change.amounts;
    const { from, to, shown } = this.strip!.current;
    return select(timeline!, from, to, shown);
  }

  /** A drag may select many ranges before the next frame. */
  private later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.amounts = this.current();
      for (const view of this.views) this.stale.add(view.id);
      this.tell();
      this.redraw();
    });
  }

  /** A view that takes new amounts when it is shown. */
  private lazily(view: View, refresh: () => void): View {
    return {
      id: view.id,
      title: view.title,
      element: view.element,
      isOfDump: view.isOfDump,
      focused: view.focused,
      update: () => {
        if (this.stale.delete(view.id)) refresh();
        view.update();
      },
    };
  }
}

/** What a reader must know about the figures. */
function notesOf({ stacks, timeline, change }: Heap): string[] {
  const notes: string[] = [];
  if (stacks.merged > 0) {
    const count = formatAmount(stacks.merged, Units.Count, true);
    notes.push(`${count} smaller stacks share rows named (small), below the frames that they have in common with others`);
  }
  if (timeline && !timeline.isComplete) notes.push("The recording has no end: later events may be missing");
  if (timeline?.beganLate) notes.push("The recording began while the program ran: blocks from before are not in it");
  if (change?.estimated) notes.push("Amounts are estimates from a sample");
  return notes;
}
