// The menu of a view's files.

import { byId } from "../widgets/elements";
import { choice } from "../widgets/controls";
import type { Tell } from "./page";

/** A file as the menu calls it, and what fetches it. */
export type File = [title: string, fetch: () => Promise<void>];

/** A menu that fetches the file that the reader chooses. */
export function exportMenu(files: File[], tell: Tell): HTMLElement {
  const status = byId("status");
  /** What the view said before the exports, and what the latest of them said. */
  let [said, latest] = ["", ""];
  const options = files.map(([title], at): [string, string] => [String(at), title]);
  const menu = choice("Export", [["", "…"], ...options], "", (value) => {
    select.value = "";
    if (value === "") return;
    const [title, fetch] = files[Number(value)];
    const own = `Export: ${title} …`;
    // The text of an export that still runs is not the view's, and an error does not come back.
    if (status.textContent !== latest) said = status.className === "error" ? "" : status.textContent!;
    latest = own;
    tell(own, false);
    fetch().then(
      // What the view said is true again, unless something else was said meanwhile.
      () => status.textContent === own && tell(said, false),
      (error: Error) => tell(error.message, true),
    );
  });
  const select = menu.querySelector("select")!;
  select.className = "export";
  return menu;
}
