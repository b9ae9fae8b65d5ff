// Strings that become children of an element would not pass through `elements.ts`: only what the page itself says may be one.

type OwnWords = " " | " live" | " inverted" | " reporters as roots" | "  " | " › ";

interface Element {
  append(...nodes: (Node | OwnWords)[]): void;
  prepend(...nodes: (Node | OwnWords)[]): void;
  before(...nodes: (Node | OwnWords)[]): void;
  after(...nodes: (Node | OwnWords)[]): void;
  replaceWith(...nodes: (Node | OwnWords)[]): void;
  replaceChildren(...nodes: (Node | OwnWords)[]): void;
}
