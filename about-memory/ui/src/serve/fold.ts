// Folds the list beside the view, by a button and by a key. On a narrow screen the list is over the view, and is folded
// at first.

import { byId } from "../widgets/elements";

const KEY = "about-memory-folded";
const narrow = matchMedia("(max-width: 50em)");

export function foldSide() {
  const side = byId("side");
  const fold = byId<HTMLButtonElement>("fold");
  const set = (isFolded: boolean) => {
    side.hidden = isFolded;
    fold.setAttribute("aria-expanded", String(!isFolded));
  };
  const byDefault = () => set(narrow.matches || sessionStorage.getItem(KEY) === "1");
  const toggle = () => {
    set(!side.hidden);
    if (!narrow.matches) sessionStorage.setItem(KEY, side.hidden ? "1" : "");
  };
  byDefault();
  narrow.addEventListener("change", byDefault);
  fold.addEventListener("click", toggle);
  addEventListener("keydown", (event) => {
    const isText = event.target instanceof HTMLInputElement && event.target.type !== "checkbox" && event.target.type !== "radio";
    if (isText || event.target instanceof HTMLSelectElement || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "[") toggle();
    else if (event.key === "Escape" && narrow.matches && !side.hidden && side.contains(document.activeElement)) {
      set(true);
      fold.focus();
    }
  });
  // On a narrow screen, the reader chose something to look at.
  side.addEventListener("click", (event) => narrow.matches && (event.target as Element).closest("a") && set(true));
  byId("skip").addEventListener("click", (event) => {
    // The address names the view, so it must not change.
    event.preventDefault();
    byId("main").focus();
  });
}
