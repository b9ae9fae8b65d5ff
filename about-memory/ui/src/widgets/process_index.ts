// Links to all processes. A process without reports that pass the filter is plain text.

import { formatAmount, Units } from "../text/amount";
import { create, setTip } from "./elements";
import { showText } from "../text/escape";
import type { Model } from "../model/model";

/** At most this many links are shown. */
const MOST = 1000;

export class ProcessIndex {
  constructor(
    readonly element: HTMLElement,
    private readonly model: Model,
    private readonly go: (row: number) => void,
  ) {}

  update() {
    const { data, rows, settings } = this.model;
    const list = create("ol");
    data.processes.slice(0, MOST).forEach((process, index) => {
      const item = create("li");
      const resident = formatAmount(BigInt(process.resident), Units.Bytes, settings.verbose);
      const name = showText(process.name);
      if (rows.starts[index] < 0) {
        item.append(create("span", "none", name));
      } else {
        const link = create("a", "", name);
        link.href = "#";
        setTip(link, `resident: ${resident}`);
        link.addEventListener("click", (event) => {
          event.preventDefault();
          this.go(this.model.rows.starts[index]);
        });
        item.append(link);
      }
      list.append(item);
    });
    if (data.processes.length > MOST) {
      list.append(create("li", "none", `(${data.processes.length - MOST} more; use the filter or the treemap)`));
    }
    this.element.replaceChildren(list);
  }
}
