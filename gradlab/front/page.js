// @ts-check
/**
 * A page without a kernel that holds questions and recordings: each recording is loaded when it comes near, and takes the
 * place of its still picture. As a classic script, with recordings in scripts of their own, because pages from disk may load
 * nothing else: `gradlabRecording("03-1", "...")`.
 */

import { Address } from "./address.js";
import { Bet } from "./bet.js";
import { addElement } from "./events.js";
import { InstrumentPage } from "./instrument_page.js";
import { followSight } from "./place.js";
import { Replay, unpacked } from "./replay.js";

const AHEAD = "80% 0px"; // of the window, that a place is away when its recording is loaded

/** @type {Map<string, (packed: string) => void>} by the name of a recording, who waits for it */
const waiting = new Map();
Object.assign(globalThis, {
  /** @param {string} name @param {string} packed gzip, as base64 */
  gradlabRecording: (name, packed) => waiting.get(name)?.(packed),
});

/** The place of a recording: `<div class="gl-recording" id="lab-03-1" data-kind data-src>` with its still in it. */
class Place {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this._asked = false;
  }

  /** Whether it can be seen now or soon: what a question covers cannot. */
  get open() {
    return !this.element.closest(".gl-bet-hides");
  }

  /** Load the recording, once, and show it. */
  async load() {
    if (this._asked) return;
    this._asked = true;
    try {
      this._show(await unpacked(await this._fetch()));
    } catch {
      addElement(
        "p",
        this.element,
        "gl-recording-missing",
        "The recording could not be loaded, so this is a still picture. Reload the page to try again.",
      );
    }
  }

  /** @returns {Promise<string>} */
  _fetch() {
    const src = this.element.dataset.src ?? "";
    return new Promise((resolve, reject) => {
      waiting.set(src.replace(/^.*\/|\.js$/g, ""), resolve);
      const script = document.createElement("script");
      script.addEventListener("error", reject);
      script.src = src;
      document.head.append(script);
    });
  }

  /** @param {any} recording */
  _show(recording) {
    const stage = addElement("div", this.element, "gl-stage");
    this.element.dataset.live = "";
    const address = new Address(this.element.id);
    if (this.element.dataset.kind === "instrument") new InstrumentPage(stage, recording, address);
    else {
      const replay = new Replay(stage, recording, address);
      followSight(stage, { gone: () => replay.pause(), back: () => {} });
    }
    if (address.state) this.element.scrollIntoView();
    this.element.dispatchEvent(new CustomEvent("gradlab-ready", { bubbles: true }));
  }
}

for (const root of document.querySelectorAll(".gl-bet:not([data-live])")) {
  if (root instanceof HTMLElement) new Bet(root);
}

/** @type {Map<Element, Place>} */
const places = new Map();
for (const element of document.querySelectorAll(".gl-recording")) {
  if (element instanceof HTMLElement) places.set(element, new Place(element));
}

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const place = places.get(target);
    if (isIntersecting && place?.open) place.load();
  }
}, { rootMargin: AHEAD });

/** Load and show the recording that the address names, whatever covers it. */
const follow = () => {
  const place = [...places.values()].find(({ element }) => location.hash.slice(1).split("&")[0] === element.id);
  place?.load();
  place?.element.scrollIntoView();
};

for (const [element, place] of places) {
  if ("eager" in (/** @type {HTMLElement} */ (element)).dataset) place.load();
  else near.observe(element);
}
addEventListener("hashchange", follow);
follow();
