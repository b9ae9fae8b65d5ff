// Tests that run in Chromium and in Firefox. Each browser gets its own server.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { InChromium, InFirefox, Firefox, hasFirefox } from "./both.mjs";
import { end, serve, servers } from "./server.mjs";

let firefox;
before(async () => {
  if (hasFirefox) firefox = await Firefox.start();
});
after(async () => {
  await firefox?.close();
  end();
});

/** Starts a program and waits for its first output. */
export async function start(program, args, env = {}) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  servers.push(child);
  await new Promise((ready) => child.stdout.on("data", (part) => /process/i.test(String(part)) && ready()));
  return child;
}

/** Runs steps in each browser, with a separate server for each. */
export function inBoth(title, args, steps, options = {}) {
  for (const name of ["Chromium", "Firefox"]) {
    const skip = options.skip || (name === "Firefox" && !hasFirefox ? "no Firefox" : false);
    test(`${title} (${name})`, { skip }, async () => {
      const served = await (options.serve ?? serve)(...args);
      const { page, faults, close, origin, token } = served;
      const browser = name === "Chromium" ? new InChromium(page) : new InFirefox(firefox);
      if (name === "Firefox") {
        await firefox.go(`${origin}/#token=${token}`);
        await browser.until("document.documentElement.dataset.state === 'ready'");
      }
      await browser.keepFiles();
      await steps(browser, served);
      if (name === "Firefox") assert.deepEqual(await firefox.errors(origin), []);
      else assert.deepEqual(faults.filter((fault) => !options.mayFail?.test(fault)), []);
      await close();
    });
  }
}
