// The menu of a view's files, and choices in general.

import { create } from "../elements";
import type { Tell } from "./memory";

/** A file as the menu calls it, and what fetches it. */
export type File = [title: string, fetch: () => Promise<void>];

/** A menu that fetches the file that the reader chooses. */
export function exportMenu(files: File[], tell: Tell): HTMLElement {
  const options = files.map(([title], at): [string, string] => [String(at), title]);
  const menu = choice("Export", [["", "…"], ...options], "", (value) => {
    select.value = "";
    if (value === "") return;
    const [title, fetch] = files[Number(value)];
    tell(`Export: ${title} …`, false);
    fetch().then(
      () => tell("", false),
      (error: Error) => tell(error.message, true),
    );
  });
  const select = menu.querySelector("select")!;
  select.className = "export";
  return menu;
}

export function choice(title: string, options: [string, string][], value: string, set: (value: string) => void) {
  const label = create("label", "", `${title} `);
  const select = create("select");
  for (const [name, text] of options) {
    const option = create("option", "", text);
    option.value = name;
    select.append(option);
  }
  select.value = value;
  select.addEventListener("change", () => set(select.value));
  label.append(select);
  return label;
}
