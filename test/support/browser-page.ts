import { setImmediate as turn } from "node:timers/promises";
import { jest } from "@jest/globals";

/*
 * The parts of a browser that the console's page uses, in the process of the test and with a clock that stands still: an
 * element tree without layout, styles and bubbling of events. What needs those is tested in Chromium.
 */

class PageNode extends EventTarget {
  readonly localName: string;
  readonly namespaceURI: string;
  readonly nodeType: number;
  readonly attributes: { name: string; value: string }[] = [];
  childNodes: PageNode[] = [];
  parentNode: PageNode | null = null;
  // Preact sets these as properties, and all others as attributes.
  data = "";
  id = "";
  value = "";
  checked = false;
  disabled = false;
  open = false;

  constructor(localName: string, nodeType: number, namespaceURI = "http://www.w3.org/1999/xhtml") {
    super();
    this.localName = localName;
    this.nodeType = nodeType;
    this.namespaceURI = namespaceURI;
  }

  get firstChild(): PageNode | null {
    return this.childNodes[0] ?? null;
  }

  get nextSibling(): PageNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }

  get textContent(): string {
    return this.data + this.childNodes.map((child) => child.textContent).join("");
  }

  get isConnected(): boolean {
    return this === body || (this.parentNode?.isConnected ?? false);
  }

  insertBefore(child: PageNode, before: PageNode | null): void {
    child.remove();
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, child);
    child.parentNode = this;
  }

  remove(): void {
    const { parentNode } = this;
    if (parentNode) parentNode.childNodes = parentNode.childNodes.filter((each) => each !== this);
    this.parentNode = null;
  }

  getAttribute(name: string): string | undefined {
    return this.attributes.find((each) => each.name === name)?.value;
  }

  setAttribute(name: string, value: unknown): void {
    this.removeAttribute(name);
    this.attributes.push({ name, value: String(value) });
  }

  removeAttribute(name: string): void {
    const at = this.attributes.findIndex((each) => each.name === name);
    if (at !== -1) this.attributes.splice(at, 1);
  }

  closest(localName: string): PageNode | null {
    return this.localName === localName ? this : (this.parentNode?.closest(localName) ?? null);
  }

  focus(): void {
    page.activeElement = this;
  }

  showModal(): void {
    this.open = true;
  }

  /** This node and all below it. */
  all(): PageNode[] {
    return [this, ...this.childNodes.flatMap((child) => child.all())];
  }
}

const body = new PageNode("body", 1);

/** The `document`. */
class Page extends EventTarget {
  readonly body = body;
  activeElement: PageNode = body;
  title = "";
  hidden = false;

  createElementNS = (namespace: string, name: string) => new PageNode(name, 1, namespace);
  createTextNode = (data: string) => Object.assign(new PageNode("#text", 3), { data });
  getElementById = (id: string) => body.all().find((node) => node.id === id) ?? null;
  /** Only the selectors of the page. */
  querySelector = (selector: "dialog[open]") => (selector === "dialog[open]" && openDialog()) || null;
  querySelectorAll = (_: "main [data-title]") =>
    body.all().filter((node) => node.getAttribute("data-title") !== undefined);
}
const page = new Page();
const openDialog = () => body.all().find(({ localName, open }) => localName === "dialog" && open);

const stored = new Map<string, string>();
const onWindow = new EventTarget();

/** The state of the browser that tests set. */
export const browser = {
  page,
  window: onWindow,
  location: { hash: "", origin: "https://api.test" },
  isOnline: true,
  stored,
  /** The text that was copied last. */
  copied: "",
  /** Whether the page may not copy. */
  blocksCopy: false,
};

const clipboard = {
  async writeText(text: string) {
    if (browser.blocksCopy) throw new DOMException("Write permission denied.", "NotAllowedError");
    browser.copied = text;
  },
};

Object.assign(globalThis, {
  document: page,
  HTMLElement: PageNode,
  Element: PageNode,
  location: browser.location,
  sessionStorage: {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
    clear: () => stored.clear(),
  },
  addEventListener: onWindow.addEventListener.bind(onWindow),
  dispatchEvent: onWindow.dispatchEvent.bind(onWindow),
  removeEventListener: onWindow.removeEventListener.bind(onWindow),
});
Object.defineProperty(globalThis, "navigator", {
  value: Object.defineProperty({ clipboard }, "onLine", { get: () => browser.isOnline }),
});

/** Lets timers run for this long, and what they start. */
export async function elapse(ms: number): Promise<void> {
  for (let elapsed = 0; elapsed < ms; elapsed += STEP_MS) {
    await jest.advanceTimersByTimeAsync(Math.min(STEP_MS, ms - elapsed));
    // Responses and modules arrive outside of the clock.
    for (let turns = 0; turns < 5; turns++) await turn();
  }
}
const STEP_MS = 50;

/** Lets the clock run until a condition is met. @throws Error with the text of the page after two minutes of its clock */
export async function until(isMet: () => boolean): Promise<void> {
  for (let elapsed = 0; !isMet(); elapsed += STEP_MS) {
    if (elapsed > 120_000) throw new Error(`The page shows: ${textOf().slice(0, 2_000)}`);
    await elapse(STEP_MS);
  }
}

/** The text of an element, with a space before and after each element in it. Absent = the text of the page */
export function textOf(node = body): string {
  const parts = node.childNodes.map((child) => (child.localName === "#text" ? child.data : ` ${textOf(child)} `));
  return parts.join("").replaceAll(/\s+/g, " ").trim();
}

/**
 * The elements of the page as text: one per line with its attributes and its state, those within a line of text beside each
 * other. Generated ids are numbered in their order. Handlers of events are not shown.
 */
export function outlineOf(node = body): string {
  const numbers = new Map<string, number>();
  const numberOf = (id: string) => numbers.get(id) ?? numbers.set(id, numbers.size + 1).size;
  return linesOf(node)
    .join("\n")
    .replaceAll(/\bP\d+-\d+/g, (id) => `#${numberOf(id)}`);
}

const isInline = ({ localName }: PageNode) =>
  /^(#text|a|button|code|h\d|input|label|option|path|rect|select|span|strong|t[dh]|time|title)$/.test(localName);

function linesOf(node: PageNode): string[] {
  const children = node.childNodes.filter(({ localName, data }) => localName !== "#text" || data !== "");
  if (children.every((child) => child.all().every(isInline)))
    return [`${tagOf(node)} ${children.map(inlineOf).join("").replaceAll("\n", "⏎")}`.trimEnd()];
  return [tagOf(node), ...children.flatMap(linesOf).map((line) => `  ${line}`)];
}

function inlineOf(node: PageNode): string {
  if (node.localName === "#text") return node.data;
  return `<${tagOf(node)}>${node.childNodes.map(inlineOf).join("")}</>`;
}

function tagOf({ localName, id, value, checked, disabled, open, data, attributes }: PageNode): string {
  if (localName === "#text") return JSON.stringify(data);
  const state = { id, value, checked, disabled, open };
  const set = Object.entries(state).flatMap(([name, is]) => (is === true ? name : is ? `${name}=${is}` : []));
  const given = attributes.map(({ name, value }) =>
    name === "class" ? `.${value.replaceAll(" ", ".")}` : `${name}=${value}`,
  );
  return [localName, ...given, ...set].join(" ").replace(" .", ".");
}

/** Waits until the page shows a text. */
export const shows = (text: string) => until(() => textOf().includes(text));

/** The texts of the elements with this role. */
export const textsOf = (role: string) =>
  body.all().flatMap((node) => (node.getAttribute("role") === role ? textOf(node) : []));

/** How many elements have this name. */
export const count = (localName: string) => body.all().filter((node) => node.localName === localName).length;

/** Clicks the button with this name: in the open dialog, if there is one. Waits until it can be clicked. */
export async function click(name: string): Promise<void> {
  const find = () =>
    (openDialog() ?? body)
      .all()
      .find((node) => node.localName === "button" && (node.getAttribute("aria-label") ?? textOf(node)) === name);
  await until(() => find()?.disabled === false);
  const button = find();
  button?.focus();
  const isSubmit = button?.getAttribute("type") === "submit";
  const event = new Event(isSubmit ? "submit" : "click", { cancelable: true });
  (isSubmit ? button?.closest("form") : button)?.dispatchEvent(event);
  if (isSubmit && !event.defaultPrevented) throw new Error(`${name} makes the browser load the page again.`);
  await elapse(STEP_MS);
}

/** Enters a value into the field with this label. @param value true = a choice is chosen, or the opposite of what it was */
export async function enter(label: string, value: string | true): Promise<void> {
  const nameOf = ({ childNodes }: PageNode) =>
    childNodes
      .flatMap((child) => (child.localName === "select" ? [] : child.data || textOf(child)))
      .join("")
      .trim();
  const find = () => body.all().find((node) => node.localName === "label" && nameOf(node) === label);
  await until(() => find() !== undefined);
  const fieldId = find()?.getAttribute("for");
  const field = fieldId
    ? page.getElementById(fieldId)
    : find()
        ?.all()
        .find(({ localName }) => /input|select/.test(localName));
  if (!field) throw new Error(`The label ${label} has no field.`);
  if (value === true) field.checked = !field.checked;
  else field.value = value;
  for (const type of ["input", "change"]) field.dispatchEvent(new Event(type));
  await elapse(STEP_MS);
}

/** Opens an address behind `#`. */
export async function open(hash: string): Promise<void> {
  browser.location.hash = hash;
  onWindow.dispatchEvent(new Event("hashchange"));
  await elapse(STEP_MS);
}
