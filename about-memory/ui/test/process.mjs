// An imitated process. It answers a server with the reports of a test.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/**
 * Listens as this process. `reports` returns the report file of each measurement. The servers that `serve` starts find
 * only this process. `asked` counts its requests.
 */
export async function pretend(name, reports, serve) {
  const folder = mkdtempSync(join(tmpdir(), "process-"));
  mkdirSync(join(folder, "about-memory"), { mode: 0o700 });
  const asked = new Map();
  const answer = (request) => {
    asked.set(request, (asked.get(request) ?? 0) + 1);
    const head = { version: 1, pid: process.pid };
    if (request === "hello") return `${JSON.stringify({ ...head, name, exe: `/${name}`, started: 1_700_000_000, requests: [] })}\n`;
    if (request === "amounts") return `${JSON.stringify({ ...head, heap_allocated: 1 << 20, resident: 1 << 21 })}\n`;
    return gzipSync(JSON.stringify(reports()), { level: 1 });
  };
  const ticks = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[19];
  const listener = createServer((socket) => {
    let text = "";
    socket.on("data", (part) => {
      text += part;
      if (text.includes("\n")) socket.end(answer(JSON.parse(text).request));
    });
    socket.on("error", () => {});
  });
  await new Promise((ready) => listener.listen(join(folder, "about-memory", `${process.pid}-${ticks}.sock`), ready));
  // A failing test does not close the listener, but must still end.
  listener.unref();
  const runtime = process.env.XDG_RUNTIME_DIR;
  process.env.XDG_RUNTIME_DIR = folder;
  const served = await serve().finally(() => {
    if (runtime === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = runtime;
  });
  const close = async () => {
    await served.close();
    listener.close();
    rmSync(folder, { recursive: true });
  };
  return { ...served, asked, close };
}
