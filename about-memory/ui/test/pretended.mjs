// Imitated processes: sockets that send the answers of a test.
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after } from "node:test";

const all = [];
after(() => all.forEach((one) => one.close()));

/**
 * Imitates a process in the folder `runtime` that answers `hello`. `answer` gets all other requests with their
 * connections.
 */
export function pretend(runtime, pid, hello, answer) {
  const folder = join(runtime, "about-memory");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const server = createServer((stream) => {
    stream.on("error", () => {});
    stream.once("data", (line) => {
      const { request } = JSON.parse(line);
      if (request === "hello") stream.end(`${JSON.stringify({ version: 1, pid, started: 1, ...hello })}\n`);
      else answer(request, stream);
    });
  });
  server.listen(join(folder, `${pid}-1.sock`));
  all.push(server);
}
