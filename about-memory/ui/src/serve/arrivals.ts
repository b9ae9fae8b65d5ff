// Snapshots that the reader has requested. The server accepts a request at once, and lists the snapshot while the
// snapshot is still being taken and read.

import type { Snapshot } from "./api";

interface AwaitedSnapshot {
  /** The number of the latest request for the state at the time when the server accepted the snapshot. */
  acceptedAt: number;
  done: () => void;
  failed: (error: Error) => void;
}

const awaited = new Map<number, AwaitedSnapshot>();

/** The number of requests for the state so far. */
let requests = 0;

/**
 * Counts a request for the server's state. Returns the request's number, which `settle` gets together with the answer.
 */
export function countRequest(): number {
  return ++requests;
}

/**
 * Returns whether a snapshot is read: `null` while the server takes or reads it, and an error if the snapshot failed or
 * was removed.
 */
function outcome(own: Snapshot | undefined): { error?: string } | null {
  if (!own) return { error: "The snapshot was removed." };
  if (own.error !== null) return { error: own.error };
  return own.state === "read" ? {} : null;
}

/** Waits until an accepted snapshot is read. `refresh` requests the state. */
export function arrival(id: number, refresh: () => Promise<void>): Promise<void> {
  return new Promise((done, failed) => {
    awaited.set(id, { acceptedAt: requests, done, failed });
    // The snapshot may already be read or removed, and then no other event follows.
    refresh().catch(failed);
  });
}

/** Settles the snapshots that are read, failed or removed in the answer to a request for the state. */
export function settle(snapshots: Snapshot[], request: number) {
  for (const [id, { acceptedAt, done, failed }] of awaited) {
    // An older state may lack the snapshot, because the server had not accepted it yet.
    if (request <= acceptedAt) continue;
    const result = outcome(snapshots.find((snapshot) => snapshot.id === id));
    if (!result) continue;
    awaited.delete(id);
    if (result.error === undefined) done();
    else failed(new Error(result.error));
  }
}
