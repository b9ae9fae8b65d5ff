// A string as a child of an element does not pass through `elements.ts`. So only these constant texts are allowed.

type OwnWords = " " | " live" | " inverted" | " reporters as roots" | "  " | " › ";

interface Element {
  append(...nodes: (Node | OwnWords)[]): void;
  prepend(...nodes: (Node | OwnWords)[]): void;
  before(...nodes: (Node | OwnWords)[]): void;
  after(...nodes: (Node | OwnWords)[]): void;
  replaceWith(...nodes: (Node | OwnWords)[]): void;
  replaceChildren(...nodes: (Node | OwnWords)[]): void;
}
