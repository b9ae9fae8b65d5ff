// A view of the model. The page shows one view at a time. The list of views is in main.ts.

export interface View {
  /** A fixed word, used for ids. */
  readonly id: string;
  /** The label of the tab. */
  readonly title: string;
  readonly element: HTMLElement;
  /** Whether the view shows a dump, so that settings for reports do not apply. */
  readonly isOfDump?: boolean | undefined;
  /** The element that gets the keyboard focus, if it is not the whole view. */
  readonly focused?: HTMLElement | undefined;
  /** Shows the current model. The page calls this when the view appears and when the model changes. */
  update(): void;
}
