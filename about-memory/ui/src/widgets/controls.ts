// Controls that several views use.

import { create, setTip, words } from "./elements";

/** A request starts this many milliseconds after the last key. */
const TYPING = 300;

export function button(text: string, act: () => void, title = ""): HTMLButtonElement {
  const element = create("button", "", text);
  element.type = "button";
  if (title) setTip(element, title);
  element.addEventListener("click", act);
  return element;
}

/** Returns a button that a view shows after a failed request. */
export function retry(act: () => void): HTMLButtonElement {
  const again = button("Retry", () => {
    again.remove();
    act();
  });
  again.className = "retry";
  return again;
}

export function check(title: string, value: boolean, set: (value: boolean) => void): HTMLLabelElement {
  const label = create("label");
  const box = create("input");
  box.type = "checkbox";
  box.checked = value;
  box.addEventListener("change", () => set(box.checked));
  label.append(box, words(` ${title}`));
  return label;
}

/**
 * Returns the field of a filter. `isNew` means that a change makes a new view with a new field, which then gets the
 * focus.
 */
export function field(
  title: string,
  value: string,
  set: (value: string) => void,
  { isNew = false, hint = "" } = {},
): HTMLLabelElement {
  const label = create("label", "", `${title} `);
  const input = create("input");
  input.type = "search";
  input.id = "filter";
  input.value = value;
  input.placeholder = hint;
  input.spellcheck = false;
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      // The reader may have changed to another view in the meantime.
      if (!input.isConnected) return;
      if (isNew) sessionStorage.setItem("typing", "1");
      set(input.value);
    }, TYPING);
  });
  label.append(input);
  if (isNew && sessionStorage.getItem("typing")) {
    sessionStorage.removeItem("typing");
    queueMicrotask(() => {
      input.focus();
      input.setSelectionRange(value.length, value.length);
    });
  }
  return label;
}

/** A value of a menu, its text and its tooltip. */
export type MenuOption = [value: string, text: string, about?: string];

/** Returns a menu of values. */
export function choice(title: string, options: MenuOption[], value: string, set: (value: string) => void): HTMLLabelElement {
  const label = create("label", "", `${title} `);
  const select = create("select");
  fillOptions(select, options, value);
  select.addEventListener("change", () => set(select.value));
  label.append(select);
  return label;
}

/** Gives a menu other values. If the values are equal, the menu stays unchanged and keeps the focus. */
export function fillOptions(select: HTMLSelectElement, options: MenuOption[], value = select.value) {
  const has = [...select.options].map((option) => [option.value, option.text, option.title]);
  if (JSON.stringify(has) !== JSON.stringify(options.map(([value, text, about = ""]) => [value, text, about]))) {
    const all = options.map(([value, text, about = ""]) => {
      const option = create("option", "", text);
      option.value = value;
      setTip(option, about);
      return option;
    });
    select.replaceChildren(...all);
  }
  select.value = value;
}

/** Returns a hidden element. A click on it lets the reader choose a file for `take`. */
export function chooseFile(accept: string, take: (file: File) => void): HTMLInputElement {
  const input = create("input");
  input.type = "file";
  input.accept = accept;
  input.hidden = true;
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file) take(file);
    input.value = "";
  });
  return input;
}
