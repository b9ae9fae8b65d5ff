// The menu "Export": the files that a view can save.

import { byId } from "../widgets/elements";
import { choice } from "../widgets/controls";
import type { ShowStatus } from "./page";

/** The title of a file in the menu, and a function that fetches it. */
export type ExportFile = [title: string, fetch: () => Promise<void>];

/** Returns a menu that fetches the file that the reader chooses. */
export function exportMenu(files: ExportFile[], showStatus: ShowStatus): HTMLElement {
  const status = byId("status");
  /** The status line before the exports, and the status line of the latest export. */
  let [said, latest] = ["", ""];
  const options = files.map(([title], at): [string, string] => [String(at), title]);
  const menu = choice("Export", [["", "…"], ...options], "", (value) => {
    select.value = "";
    if (value === "") return;
    const [title, fetch] = files[Number(value)];
    const own = `Export: ${title} …`;
    // The status line of a running export does not belong to the view, and an error must not be restored.
    if (status.textContent !== latest) said = status.className === "error" ? "" : status.textContent!;
    latest = own;
    showStatus(own, false);
    fetch().then(
      // After success, restores the earlier status line, unless it has changed in the meantime.
      () => status.textContent === own && showStatus(said, false),
      (error: Error) => showStatus(error.message, true),
    );
  });
  const select = menu.querySelector("select")!;
  select.className = "export";
  return menu;
}
