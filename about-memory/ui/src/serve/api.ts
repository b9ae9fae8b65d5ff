// Requests to the server. The token is in a header, never in an address.

export interface Snapshot {
  id: number;
  title: string;
  /** The process of which a page took the snapshot; `null` for other snapshots. */
  pid: number | null;
  state: string;
  imported: boolean;
  error: string | null;
  /** The time of the snapshot, in microseconds since 1970. */
  time: number | null;
  nodes: number;
  edges: number;
  bytes: number;
}

export interface ListedReport {
  id: number;
  title: string;
  /** The measured processes; empty for a file or a difference. */
  pids: number[];
  /** The time of the measurement, in milliseconds since 1970; `null` for a file or a difference. */
  time: number | null;
  /** Whether a page shows the changes since this report. */
  mark: boolean;
  /** Whether the server was started with this report. The report then never changes. */
  given: boolean;
  /** Whether the report was measured without private names. */
  anonymized: boolean;
}

/** A way to group or to label nodes, in the format of Firefox's settings. */
export interface Display {
  displayName: string;
  tooltip: string;
  inverted: boolean;
  breakdown: unknown;
}

export interface ServerState {
  seq: number;
  /** The user's own displays, by name. */
  displays: { census: Record<string, Display>; label: Record<string, Display>; "tree-map": Record<string, Display> };
  /** The bytes of results that the server keeps. */
  cache: number;
  version: string;
  system: string;
  readOnly: boolean;
  /** Whether all measurements omit private names. */
  anonymize: boolean;
  /** The server's process id. */
  server: number;
  snapshots: Snapshot[];
  reports: ListedReport[];
  /**
   * `files`: whether the server writes the stacks for other tools. `blocks`: whether the server compares the stacks and
   * suggests reporters.
   */
  stacks: { id: number; title: string; files: boolean; blocks: boolean }[];
  /** The snapshots that have tables of types. */
  types: number[];
  /** Whether the server can read the types of processes. */
  typesOfProcesses: boolean;
}

export interface Job {
  id: number;
  kind: string;
  done: number;
  of: number;
}

/** The server does not accept the token. */
class RefusedToken extends Error {}

export function isRefused(error: unknown): boolean {
  return error instanceof RefusedToken;
}

export class Api {
  token = "";

  private async fetch(path: string, options: RequestInit = {}): Promise<Response> {
    const headers = { ...options.headers, Authorization: `Bearer ${this.token}` };
    const response = await fetch(`/api/${path}`, { ...options, headers });
    if (response.ok) return response;
    const { error } = (await response.json().catch(() => ({ error: response.statusText }))) as { error: string };
    throw response.status === 401 ? new RefusedToken(error) : new Error(error);
  }

  async get<T>(path: string): Promise<T> {
    return (await this.fetch(path)).json() as Promise<T>;
  }

  async bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await this.fetch(path)).arrayBuffer());
  }

  private json(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const headers = { "Content-Type": "application/json" };
    const options: RequestInit = { method: "POST", headers, body: JSON.stringify(body) };
    if (signal) options.signal = signal;
    return this.fetch(path, options);
  }

  async post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return (await this.json(path, body, signal)).json() as Promise<T>;
  }

  async postForBytes(path: string, body: unknown): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await this.json(path, body)).arrayBuffer());
  }

  async remove(path: string): Promise<void> {
    await this.fetch(path, { method: "DELETE" });
  }

  /** Sends a file. Returns the number of the snapshot, the report or the stacks that the server made from the file. */
  async upload(kind: "snapshots" | "reports" | "stacks", file: File): Promise<{ snapshot?: number; report?: number; stacks?: number }> {
    const headers = { "Content-Type": "application/octet-stream" };
    const title = encodeURIComponent(file.name.replace(/\.fxsnapshot$/, ""));
    return (await this.fetch(`${kind}?title=${title}`, { method: "PUT", headers, body: file })).json() as Promise<object>;
  }

  /** Fetches a file and saves it for the user. The token is in a header, so no address contains it. */
  async download(path: string, body?: unknown): Promise<void> {
    const response = body === undefined ? await this.fetch(path) : await this.json(path, body);
    const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "download";
    this.save(name, await response.blob());
  }

  /** Lets the browser save a file. */
  save(name: string, content: Blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  /** Reads events until the server ends. */
  async events(since: number, take: (name: string, data: unknown, id: number) => void): Promise<void> {
    const response = await this.fetch(`events?since=${since}`);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (text + value).split("\n\n");
      text = parts.pop()!;
      for (const part of parts) {
        const fields = new Map(part.split("\n").map((line) => line.split(/: ?(.*)/, 2) as [string, string]));
        const data = fields.get("data");
        if (data !== undefined) take(fields.get("event") ?? "message", JSON.parse(data), Number(fields.get("id")));
      }
    }
  }
}
