// A process in the server's list.

export interface ListedProcess {
  pid: number;
  name?: string;
  exe?: string;
  error?: string;
  /** Whether the process has ended. Only its recording then still exists. */
  ended?: boolean;
  /** The start time, in seconds since 1970. */
  started?: number;
  requests?: string[];
  /** Whether the process records its call stacks because a page requested it. */
  recording?: boolean;
  /** The reason why the recording could not be opened. */
  unopened?: string | null;
  resident: number | null;
  heap: number | null;
  /** The limit of the process's control group, in bytes. */
  limit?: number | null;
  /** `heap-unclassified` and `explicit` of the latest measurement. */
  unclassified?: [number, number] | null;
  /** The `explicit` of the latest measurement, and its largest parts: paths below `explicit`, with their bytes. */
  explicit?: number | null;
  largest?: [string, number][] | null;
  /** The number of the latest measurement. */
  report?: number | null;
}

/** Returns how long ago a process started, as a text. */
export function age(started: number): string {
  const seconds = Math.max(0, Math.round(Date.now() / 1000 - started));
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  return days > 0 ? `${days} d ${hours % 24} h` : hours > 0 ? `${hours} h ${minutes % 60} min` : minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}
