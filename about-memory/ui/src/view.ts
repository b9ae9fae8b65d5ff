// A way to look at the model. The page shows one at a time; a new one is added to the list in main.ts.

export interface View {
  /** For the page: unchanging, a word. */
  readonly id: string;
  /** For the reader. */
  readonly title: string;
  readonly element: HTMLElement;
  /** What is said of reports does not matter to it. */
  readonly isOfDump?: boolean;
  /** What the keyboard is for, if that is not all of it. */
  readonly focused?: HTMLElement;
  /** Shows the model as it is now. Called when the view appears, and when anything changed. */
  update(): void;
}
