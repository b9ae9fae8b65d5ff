// Controls that several views have.

import { create } from "../elements";

/** A question begins this many milliseconds after the last key. */
const TYPING = 300;

export function button(text: string, act: () => void, title = ""): HTMLButtonElement {
  const element = create("button", "", text);
  element.type = "button";
  if (title) element.title = title;
  element.addEventListener("click", act);
  return element;
}

export function check(title: string, value: boolean, set: (value: boolean) => void): HTMLLabelElement {
  const label = create("label");
  const box = create("input");
  box.type = "checkbox";
  box.checked = value;
  box.addEventListener("change", () => set(box.checked));
  label.append(box, ` ${title}`);
  return label;
}

export function field(title: string, value: string, set: (value: string) => void): HTMLLabelElement {
  const label = create("label", "", `${title} `);
  const input = create("input");
  input.type = "search";
  input.id = "filter";
  input.value = value;
  input.spellcheck = false;
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      sessionStorage.setItem("typing", "1");
      set(input.value);
    }, TYPING);
  });
  label.append(input);
  // The view was made anew by what the reader types.
  if (sessionStorage.getItem("typing")) {
    sessionStorage.removeItem("typing");
    queueMicrotask(() => {
      input.focus();
      input.setSelectionRange(value.length, value.length);
    });
  }
  return label;
}

/** Asks the reader for a file. */
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
