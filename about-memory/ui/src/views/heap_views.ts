// The views of a recording, of a change or of a dump. Above the views are the time line of the recording, the names of
// both heaps, or the choice of blocks of the dump.

import { formatAmount, formatBytes, Units } from "../text/amount";
import { create, setText, setTip } from "../widgets/elements";
import { showText } from "../text/escape";
import { stackTrees } from "../data/stack_trees";
import { flameByReporter, stackFlame } from "../data/stack_flame";
import { kindForPath } from "../data/kinds";
import type { Model } from "../model/model";
import type { Heap } from "../data/heap";
import type { RowAmounts } from "../data/stacks";
import { TimeStrip } from "../widgets/time_strip";
import { select, type ShownBlocks } from "../data/timeline";
import type { View } from "./view";
import { CallTreeView } from "./call_tree_view";
import { CallersView } from "./callers_view";
import type { HeapActions } from "./heap_actions";
import { FlameView } from "./flame_view";
import { SummaryView } from "./summary_view";
import { TableView } from "./table_view";
import { TreemapView } from "./treemap_view";

export class HeapViews {
  readonly views: View[];
  readonly table: TableView;
  /** Called when a view asks to show another view. */
  onShow: (view: View) => void = () => {};
  /** The time line, the choices and the notes above the views. */
  readonly above = create("div", "above");
  private readonly strip: TimeStrip | null = null;
  private readonly stale = new Set<string>();
  private amounts: RowAmounts;
  private waiting = false;
  /** The index of the kind of blocks that the views of a dump show. */
  private kind = 0;
  private readonly choice = create("select");
  private readonly sum = create("output", "sum");
  /** Whether the flame graph starts with the reporters of the blocks. */
  private readonly byReporter = create("input");

  constructor(
    private readonly heap: Heap,
    private readonly model: Model,
    /** Shows the current view again. */
    private readonly redraw: () => void,
  ) {
    const { stacks, timeline, change, kinds } = heap;
    if (kinds?.memory) {
      const memory = create("pre", "memory", kinds.memory.split("\n").map(showText).join("\n"));
      memory.tabIndex = 0;
      this.above.append(memory);
    }
    if (kinds && kinds.list.length > 1) {
      kinds.list.forEach(({ title }, index) => {
        const option = create("option", "", title);
        option.value = String(index);
        this.choice.append(option);
      });
      this.choice.id = "kind";
      this.choice.addEventListener("change", () => this.select(Number(this.choice.value)));
      const label = create("label", "", "Blocks ");
      label.append(this.choice);
      const bar = create("p", "notes");
      bar.append(label, " ", this.sum);
      if (kinds.list.some(({ reporter }) => reporter !== null)) {
        this.byReporter.type = "checkbox";
        this.byReporter.id = "by-reporter";
        this.byReporter.addEventListener("change", () => this.later());
        const roots = create("label");
        setTip(roots, "The flame graph starts with the reporters, and shows the blocks of all reporters");
        roots.append(" ", this.byReporter, " reporters as roots");
        bar.append(roots);
      }
      this.above.append(bar);
    }
    if (timeline) {
      this.strip = new TimeStrip(timeline, () => this.later());
      this.above.append(this.strip.element);
    }
    const notes = heapNotes(heap);
    if (change) notes.unshift(`before: ${showText(change.before)} · after: ${showText(change.after)}`);
    if (notes.length > 0) this.above.append(create("p", "notes", notes.join(" · ")));
    this.amounts = this.current();
    const estimated = change?.estimated ?? kinds?.estimated ?? false;
    const show = (id: string) => this.onShow(this.views.find((view) => view.id === id)!);
    const actions: HeapActions = {
      openRow: (by, name) => {
        show("table");
        table.openRow(by, name);
      },
      showFlame: (path) => {
        show("flame");
        flame.goTo(path);
      },
      showCallers: (name) => {
        show("callers");
        callers.goTo(name);
      },
    };
    const table = new TableView(stacks, this.amounts, model, estimated, actions);
    this.table = table;
    const summary = new SummaryView(heap, this.amounts, model, estimated, actions);
    model.replace(stackTrees(stacks, this.amounts));
    const graph = () => ({ root: stackFlame(stacks, this.amounts, estimated) });
    const drawn = () => (kinds && this.byReporter.checked ? { root: flameByReporter(stacks, kinds) } : graph());
    const flame = new FlameView(graph(), model);
    const treemap = new TreemapView(model);
    const callers = new CallersView(graph().root, model);
    const calls = new CallTreeView(graph().root, model, actions.showCallers);
    this.views = [
      this.lazily(summary, () => summary.show(this.amounts)),
      this.lazily(table, () => table.show(this.amounts)),
      this.lazily(treemap, () => model.replace(stackTrees(stacks, this.amounts))),
      this.lazily(flame, () => flame.show(drawn())),
      // A tree of calls has no place for two sides.
      ...(change ? [] : [this.lazily(calls, () => calls.show(graph().root))]),
      this.lazily(callers, () => callers.show(graph().root)),
    ];
    this.showSum();
  }

  /** Shows the sum of the blocks that the views show. */
  showSum() {
    const sum = (amounts: Float64Array) => amounts.reduce((sum, amount) => sum + amount, 0);
    const [bytes, blocks] = [sum(this.amounts.bytes), sum(this.amounts.blocks)];
    this.strip?.showSum(bytes, blocks, this.model.settings.verbose);
    const about = this.heap.kinds?.estimated ? "~" : "";
    const inBlocks = `${about}${formatAmount(blocks, Units.Count, true)} block${blocks === 1 ? "" : "s"}`;
    setText(this.sum, `${about}${formatBytes(bytes, this.model.settings.verbose)} in ${inBlocks}`);
  }

  /** Returns the values for an address that shows the same amounts again. */
  get address(): Record<string, string> {
    if (this.strip) {
      const { from, to, shown } = this.strip.current;
      return { from: String(from), to: String(to), shown };
    }
    return { kind: this.kind === 0 ? "" : String(this.kind), reporter: "", roots: this.byReporter.checked ? "1" : "" };
  }

  /**
   * Returns the part of a recording that the views show, in nanoseconds since its start; `null` for a change or a dump.
   */
  get window(): { from?: number; to: number } | null {
    if (!this.strip) return null;
    const { from, to, shown } = this.strip.current;
    const { bounds } = this.heap.timeline!;
    return shown === "alive" ? { to: bounds[to] } : { from: bounds[from], to: bounds[to] };
  }

  /** Shows the amounts that an address selects. */
  set address(address: Record<string, string>) {
    const { from, to, shown, kind, reporter, roots } = address;
    const { kinds } = this.heap;
    if (roots === "1" && !this.byReporter.checked) {
      this.byReporter.checked = true;
      this.later();
    }
    if (this.strip && to) this.strip.current = { from: Number(from), to: Number(to), shown: shown as ShownBlocks };
    else if (kinds && reporter) this.select(kindForPath(kinds, reporter));
    else if (kind) this.select(Number(kind) || 0);
  }

  private select(kind: number) {
    this.kind = Math.max(0, Math.min(kind, (this.heap.kinds?.list.length ?? 1) - 1));
    this.choice.value = String(this.kind);
    this.later();
  }

  private current(): RowAmounts {
    const { timeline, change, kinds } = this.heap;
    if (change) return change.amounts;
    if (kinds) return kinds.list[this.kind].amounts;
    const { from, to, shown } = this.strip!.current;
    return select(timeline!, from, to, shown);
  }

  /** Shows the chosen amounts at the next animation frame, because a drag may select many ranges before that. */
  private later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.amounts = this.current();
      for (const view of this.views) this.stale.add(view.id);
      this.showSum();
      this.redraw();
    });
  }

  /** Wraps a view so that it gets new amounts only when it is shown. */
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

/** Returns notes on the figures, for example about missing events. */
function heapNotes({ stacks, timeline, change, kinds }: Heap): string[] {
  const notes: string[] = [];
  if (stacks.merged > 0) {
    const count = formatAmount(stacks.merged, Units.Count, true);
    notes.push(`${count} smaller stacks share frames named (small), below the frames that they have in common with others`);
  }
  if (timeline && !timeline.isComplete) notes.push("The recording has no end: later events may be missing");
  if (timeline?.beganLate) notes.push("The recording started while the program ran: older blocks are missing");
  if (change?.estimated || kinds?.estimated) notes.push("Amounts are estimates from a sample");
  return notes;
}
