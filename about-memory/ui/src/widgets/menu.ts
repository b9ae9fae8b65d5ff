// A button that opens a list of further actions.

import { create, setName } from "./elements";

/** Returns a menu with these controls. It closes after a choice, with Escape, and when the focus or a click is elsewhere. */
export function menu(title: string, name: string, controls: HTMLElement[]): HTMLDetailsElement {
  const details = create("details", "menu");
  const summary = create("summary", "", title);
  setName(summary, name);
  const list = create("div", "choices");
  list.append(...controls);
  details.append(summary, list);
  const close = () => (details.open = false);
  list.addEventListener("click", (event) => (event.target as Element).closest("button") && close());
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    close();
    summary.focus();
  });
  details.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !details.contains(relatedTarget)) close();
  });
  const outside = (event: Event) => {
    if (!details.isConnected) removeEventListener("pointerdown", outside);
    else if (!details.contains(event.target as Node)) close();
  };
  details.addEventListener("toggle", () => (details.open ? addEventListener("pointerdown", outside) : removeEventListener("pointerdown", outside)));
  return details;
}
