// A page of the front end, and the status texts for the server's jobs.

import type { ServerState } from "./api";

export interface Page {
  close(): void;
  /** Called when the server's list of snapshots, reports or stacks changes. */
  renew?(state: ServerState): void;
}

/** Shows a text in the status line. */
export type ShowStatus = (text: string, isError: boolean) => void;

/** The text of the status line for each kind of job, in Firefox's words. */
export const JOB_TEXTS: Record<string, string> = {
  read: "Reading snapshot…",
  report: "Generating aggregate report…",
  census: "Generating aggregate report…",
  "tree-map": "Generating tree map…",
  diff: "Computing difference…",
  generations: "Computing differences…",
  dominators: "Generating dominators report…",
  classes: "Computing dominator's retained sizes…",
  individuals: "Fetching individuals in group…",
  search: "Searching…",
  suspects: "Looking for suspects…",
  paths: "Finding paths…",
  walk: "Preparing paths…",
};
