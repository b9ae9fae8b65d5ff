// Snapshots that the reader has asked for. The server accepts such a request at once, and lists the snapshot while it still
// takes and reads it.

import type { Snapshot } from "./api";

interface AwaitedSnapshot {
  /** The number of the latest request for the state when the server had accepted the snapshot. */
  acceptedAt: number;
  done: () => void;
  failed: (error: Error) => void;
}

const awaited = new Map<number, AwaitedSnapshot>();

/** The number of requests for the state so far. */
let requests = 0;

/** Counts a request for the server's state, and returns its number, which `settle` gets with the answer. */
export function countRequest(): number {
  return ++requests;
}

/** Whether a snapshot is read; `null` while the server takes or reads it, and an error if it never will be. */
function outcome(own: Snapshot | undefined): { error?: string } | null {
  if (!own) return { error: "The snapshot was removed." };
  if (own.error !== null) return { error: own.error };
  return own.state === "read" ? {} : null;
}

/** Waits until a snapshot, which the server has accepted, is read. `refresh` asks for the state. */
export function arrival(id: number, refresh: () => Promise<void>): Promise<void> {
  return new Promise((done, failed) => {
    awaited.set(id, { acceptedAt: requests, done, failed });
    // The snapshot may be read or removed already, and no other event may follow.
    refresh().catch(failed);
  });
}

/** Settles the snapshots that are read, have failed or are gone in the answer to a request for the state. */
export function settle(snapshots: Snapshot[], request: number) {
  for (const [id, { acceptedAt, done, failed }] of awaited) {
    // An older state may lack the snapshot because the server had not accepted it yet.
    if (request <= acceptedAt) continue;
    const result = outcome(snapshots.find((snapshot) => snapshot.id === id));
    if (!result) continue;
    awaited.delete(id);
    if (result.error === undefined) done();
    else failed(new Error(result.error));
  }
}
