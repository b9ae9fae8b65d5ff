// Drives a headless Firefox with its remote protocol Marionette: messages `LENGTH:[0,ID,COMMAND,PARAMETERS]` over TCP.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const path = process.env.FIREFOX ?? "/usr/bin/firefox-esr";

/** Whether Firefox is installed. */
export const hasFirefox = existsSync(path);

export class Firefox {
  #answers = new Map();
  #received = Buffer.alloc(0);
  #next = 1;

  /** Starts a browser with its own profile. */
  static async start() {
    const firefox = new Firefox();
    firefox.profile = mkdtempSync(join(tmpdir(), "firefox-"));
    const settings = { "marionette.port": 0, "browser.shell.checkDefaultBrowser": false, "datareporting.policy.dataSubmissionEnabled": false, "app.normandy.enabled": false, "network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false };
    const lines = Object.entries(settings).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});`);
    writeFileSync(join(firefox.profile, "user.js"), lines.join("\n"));
    firefox.process = spawn(path, ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", firefox.profile], { stdio: "ignore" });
    // The browser writes the port that it has chosen to this file.
    const port = join(firefox.profile, "MarionetteActivePort");
    const end = Date.now() + 60_000;
    while (!existsSync(port) || readFileSync(port, "utf8") === "") {
      if (Date.now() > end) throw new Error("Firefox does not start");
      await new Promise((next) => setTimeout(next, 50));
    }
    await firefox.#connect(Number(readFileSync(port, "utf8")));
    await firefox.ask("WebDriver:NewSession", {});
    await firefox.ask("WebDriver:SetWindowRect", { width: 1200, height: 900 });
    return firefox;
  }

  async #connect(port) {
    this.socket = connect(port, "127.0.0.1");
    await new Promise((done, failed) => this.socket.once("connect", done).once("error", failed));
    const greeted = new Promise((done) => this.#answers.set("greeting", done));
    this.socket.on("data", (part) => {
      this.#received = Buffer.concat([this.#received, part]);
      for (;;) {
        const colon = this.#received.indexOf(":");
        if (colon < 0) return;
        const end = colon + 1 + Number(this.#received.subarray(0, colon));
        if (this.#received.length < end) return;
        const message = JSON.parse(this.#received.subarray(colon + 1, end));
        this.#received = this.#received.subarray(end);
        if (Array.isArray(message)) this.#answers.get(message[1])?.(message);
        else this.#answers.get("greeting")();
      }
    });
    await greeted;
  }

  async ask(command, parameters) {
    return (await this.askAll(command, parameters))?.value;
  }

  /** Returns the whole answer: some answers have no `value`. */
  async askAll(command, parameters) {
    const id = this.#next++;
    const text = JSON.stringify([0, id, command, parameters]);
    const answer = new Promise((done) => this.#answers.set(id, done));
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    const [, , error, result] = await answer;
    if (error) throw new Error(`${command}: ${error.message}`);
    return result;
  }

  go(url) {
    return this.ask("WebDriver:Navigate", { url });
  }

  /** Runs the body of a function in the page. */
  run(script, ...args) {
    return this.ask("WebDriver:ExecuteScript", { script, args });
  }

  /** Waits until an expression is true. */
  async until(expression, ...args) {
    const end = Date.now() + 30_000;
    while (!(await this.run(`return Boolean(${expression})`, ...args))) {
      if (Date.now() > end) throw new Error(`never true: ${expression} ${JSON.stringify(args)}`);
      await new Promise((next) => setTimeout(next, 20));
    }
  }

  /** Returns the errors of the pages of an origin from the browser's console. */
  async errors(origin) {
    await this.ask("Marionette:SetContext", { value: "chrome" });
    const script = `
      const errors = Services.console.getMessageArray().filter((message) => message instanceof Ci.nsIScriptError);
      return errors.filter((error) => error.sourceName?.startsWith(arguments[0])).map((error) => error.errorMessage);`;
    const errors = await this.run(script, origin);
    await this.ask("Marionette:SetContext", { value: "content" });
    return errors;
  }

  async close() {
    await this.ask("Marionette:Quit", {}).catch(() => {});
    this.socket.destroy();
    if (this.process.exitCode === null) await new Promise((ended) => this.process.once("exit", ended));
    rmSync(this.profile, { recursive: true, force: true });
  }
}
