// Snapshots that the reader has asked for. The server accepts such a request at once; the snapshot is there once it is read.

import type { Snapshot } from "./api";

interface Waiting {
  done: () => void;
  failed: (error: Error) => void;
}

const waiting = new Map<number, Waiting>();

/** What has become of a snapshot; `null` while the server still takes or reads it. */
function outcome(id: number, snapshots: Snapshot[]): { error?: string } | null {
  const own = snapshots.find((snapshot) => snapshot.id === id);
  // Numbers only grow: one that the server does not know yet is still to come.
  if (!own) return snapshots.some((snapshot) => snapshot.id > id) ? { error: "The snapshot was removed." } : null;
  if (own.error !== null) return { error: own.error };
  return own.state === "read" ? {} : null;
}

/** Waits until a snapshot is read. */
export function arrival(id: number, snapshots: Snapshot[]): Promise<void> {
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    settle(snapshots);
  });
}

/** Looks which of them have come; the page calls it whenever it learns of a change. */
export function settle(snapshots: Snapshot[]) {
  for (const [id, { done, failed }] of waiting) {
    const now = outcome(id, snapshots);
    if (!now) continue;
    waiting.delete(id);
    if (now.error === undefined) done();
    else failed(new Error(now.error));
  }
}
