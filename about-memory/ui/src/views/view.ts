// A view of the model. The page shows one view at a time. The page of `html` has its list of views in main.ts.

export interface View {
  /** A fixed word, used for ids. */
  readonly id: string;
  /** The label of the tab. */
  readonly title: string;
  readonly element: HTMLElement;
  /** Whether the view shows a dump, a recording or a change, so that settings for reports do not apply. */
  readonly isOfDump?: boolean | undefined;
  /** The element that gets the keyboard focus, if it is not the whole view. */
  readonly focused?: HTMLElement | undefined;
  /** Shows the current model. The page calls this when the view appears and when the model changes. */
  update(): void;
}
