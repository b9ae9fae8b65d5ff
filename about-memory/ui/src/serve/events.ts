// The server's events, for all pages of one browser.
//
// A browser has at most six connections to a server, and each stream of events occupies a connection. So one page reads
// the events and passes them to the other pages. When that page is closed, the next page reads.

import type { Api } from "./api";

type TakeEvent = (name: string, data: unknown, id: number) => void;

/**
 * Receives the events of a server until the server ends. `since` returns the number of the latest event that the page
 * knows. `behind` updates the page, because another page may have received events before this page started to listen.
 */
export async function follow(api: Api, server: number, since: () => number, take: TakeEvent, behind: () => Promise<void>): Promise<void> {
  // Browsers offer locks only for encrypted pages and for pages of this machine. On other pages, each page reads events
  // itself.
  if (!("locks" in navigator)) return api.events(since(), take);
  const name = `about-memory events of ${server}`;
  const channel = new BroadcastChannel(name);
  channel.addEventListener("message", ({ data }: MessageEvent<Parameters<TakeEvent>>) => take(...data));
  const read = async () => {
    document.documentElement.dataset.reads = "events";
    await api.events(since(), (...event) => {
      channel.postMessage(event);
      take(...event);
    });
    return true;
  };
  try {
    const hasRead = await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock !== null && read());
    if (hasRead) return;
    await behind();
    await navigator.locks.request(name, read);
  } finally {
    delete document.documentElement.dataset.reads;
    channel.close();
  }
}
