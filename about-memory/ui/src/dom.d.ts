// A string that becomes a child of an element does not pass through `elements.ts`, so only these texts of the page itself may.

type OwnWords = " " | " live" | " inverted" | " reporters as roots" | "  " | " › ";

interface Element {
  append(...nodes: (Node | OwnWords)[]): void;
  prepend(...nodes: (Node | OwnWords)[]): void;
  before(...nodes: (Node | OwnWords)[]): void;
  after(...nodes: (Node | OwnWords)[]): void;
  replaceWith(...nodes: (Node | OwnWords)[]): void;
  replaceChildren(...nodes: (Node | OwnWords)[]): void;
}
