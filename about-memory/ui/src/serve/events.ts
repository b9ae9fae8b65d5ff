// The server's events, for all pages of one browser.
//
// A browser has at most six connections to a server, and each stream of events takes one. So one page reads them and passes
// them to the others; when it goes, the next one reads.

import type { Api } from "./api";

type TakeEvent = (name: string, data: unknown, id: number) => void;

/**
 * Takes the events of a server until it ends. `since` is the number of the latest event that the page knows; `behind` brings
 * the page up to date, since another page may have taken events before this one began to listen.
 */
export async function follow(api: Api, server: number, since: () => number, take: TakeEvent, behind: () => Promise<void>): Promise<void> {
  // Browsers have these for encrypted pages and for those of this machine. On any other, each page reads for itself.
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
