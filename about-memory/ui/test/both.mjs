// Runs the same steps in Chromium and in Firefox. One adapter for each browser lets one test drive both browsers.
import { Firefox, hasFirefox } from "./firefox.mjs";

/** The names of keys, as WebDriver writes them (section 17.4.2 of its standard). */
const KEYS = { ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015", Enter: "\uE007", Tab: "\uE004", Home: "\uE011", End: "\uE010", PageDown: "\uE00F", PageUp: "\uE00E", Escape: "\uE00C", Backspace: "\uE003", Control: "\uE009", Shift: "\uE008", Alt: "\uE00A", Space: " " };

class Steps {
  /** Waits until an expression is true. `arguments` in it are the other arguments. */
  async until(expression, ...args) {
    const end = Date.now() + 30_000;
    // While a page loads, the expression fails.
    while (!(await this.run(`return Boolean(${expression})`, ...args).catch(() => false))) {
      if (Date.now() > end) {
        const seen = await this.run("return location.hash + ' ' + document.activeElement?.outerHTML.slice(0, 200) + ' ' + document.getElementById('status')?.textContent + ' ' + document.getElementById('main')?.textContent.slice(0, 300)");
        throw new Error(`${this.name}: never true: ${expression} ${JSON.stringify(args)} at ${seen}`);
      }
      await new Promise((next) => setTimeout(next, 20));
    }
  }

  /** Goes to an address, without waiting for its rows. */
  async go(hash) {
    await this.run("delete document.documentElement.dataset.rows; location.hash = arguments[0]", hash);
  }

  /** Goes to an address, and waits for its rows. */
  async rows(hash) {
    await this.go(hash);
    await this.until("Number(document.documentElement.dataset.rows) > 0");
    await this.until("![...document.querySelectorAll('.table .row .branch')].some((one) => one.textContent === '…')");
  }

  click(selector, place = 0) {
    return this.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, place);
  }

  /** Clicks the first button or link with this text. */
  async press(text, within = "body") {
    await this.until("[...document.querySelectorAll(`${arguments[0]} button, ${arguments[0]} a`)].some((one) => one.textContent.trim() === arguments[1])", within, text);
    await this.run("[...document.querySelectorAll(`${arguments[0]} button, ${arguments[0]} a`)].find((one) => one.textContent.trim() === arguments[1]).click()", within, text);
  }

  choose(selector, value) {
    return this.run("const select = document.querySelector(arguments[0]); select.value = arguments[1]; select.dispatchEvent(new Event('change', { bubbles: true }))", selector, value);
  }

  type(selector, text) {
    return this.run("const input = document.querySelector(arguments[0]); input.value = arguments[1]; input.dispatchEvent(new Event('input', { bubbles: true })); input.dispatchEvent(new Event('change', { bubbles: true }))", selector, text);
  }

  focus(selector) {
    return this.run("document.querySelector(arguments[0]).focus()", selector);
  }

  status() {
    return this.run("return document.getElementById('status').textContent");
  }

  /** Stores the files that the page saves, instead of saving them. */
  async keepFiles() {
    await this.run(`
      window.kept = [];
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => { window.kept.push({ size: blob.size }); return make.call(URL, blob); };
      const click = HTMLAnchorElement.prototype.click;
      HTMLAnchorElement.prototype.click = function () { if (this.download) window.kept[window.kept.length - 1].name = this.download; else click.call(this); };`);
  }

  /** Returns the next file that the page saves. */
  async kept() {
    await this.until("window.kept.length > 0 && window.kept[0].name");
    return this.run("return window.kept.shift()");
  }
}

export class InChromium extends Steps {
  name = "Chromium";

  constructor(page) {
    super();
    this.page = page;
  }

  run(script, ...args) {
    return this.page.evaluate(`(async function () { ${script} }).apply(null, ${JSON.stringify(args)})`);
  }

  key(key, ...held) {
    return this.page.keyboard.press([...held, key].join("+"));
  }

  upload(selector, path) {
    return this.page.setInputFiles(selector, path);
  }
}

export class InFirefox extends Steps {
  name = "Firefox";

  constructor(firefox) {
    super();
    this.firefox = firefox;
  }

  run(script, ...args) {
    return this.firefox.run(script, ...args);
  }

  async key(key, ...held) {
    const keys = [...held, key].map((one) => KEYS[one] ?? one);
    const down = keys.map((value) => ({ type: "keyDown", value }));
    const up = [...keys].reverse().map((value) => ({ type: "keyUp", value }));
    await this.firefox.ask("WebDriver:PerformActions", { actions: [{ type: "key", id: "keyboard", actions: [...down, ...up] }] });
  }

  async upload(selector, path) {
    const element = await this.firefox.ask("WebDriver:FindElement", { using: "css selector", value: selector });
    await this.firefox.ask("WebDriver:ElementSendKeys", { id: Object.values(element)[0], text: path });
  }
}

export { Firefox, hasFirefox };
