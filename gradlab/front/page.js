// @ts-check
/**
 * A page with many recordings, and questions. Each recording has a place that holds a still picture and its words; it is
 * loaded when it comes near the window, and then its screen takes their place. In print they come back (page.css).
 *
 * A recording is a script that calls `gradlabRecording` with the stem of its file's name and what is packed: from disk a
 * page can load scripts, but neither modules nor data.
 */

import { startBets } from "./bet.js";
import { addElement } from "./events.js";
import { InstrumentPage } from "./instrument_page.js";
import { isCovered } from "./outcome.js";
import { Replay } from "./replay.js";
import { unpacked } from "./unpack.js";

const AHEAD = "100% 0px"; // how far from the window a recording is loaded: a screen above and below
const FAILED = "The live version of this picture could not be loaded. Reload the page to try again.";

/** @type {Map<string, Promise<string>>} the recordings that are being loaded, by address */
const coming = new Map();
/** @type {Map<string, (packed: string) => void>} who waits for them, by the stem of the file's name */
const awaited = new Map();

Object.assign(globalThis, {
  /** @param {string} key @param {string} packed */
  gradlabRecording: (key, packed) => awaited.get(key)?.(packed),
});

/** Load what is packed in a script. @param {string} source its address */
function packedFrom(source) {
  let promise = coming.get(source);
  if (promise) return promise;
  promise = new Promise((/** @type {(packed: string) => void} */ arrived, failed) => {
    const script = document.createElement("script");
    const end = () => {
      script.remove();
      coming.delete(source);
      failed(new Error(`${source} holds no recording`)); // this counts only where none has arrived
    };
    awaited.set(/** @type {string} */ (source.split("/").pop()).replace(/\.js.*$/, ""), arrived);
    script.addEventListener("load", end);
    script.addEventListener("error", end);
    script.src = source;
    document.head.append(script);
  });
  coming.set(source, promise);
  return promise;
}

/** The place of a recording. */
class RecordingPlace {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.begun = false;
    this.wanted = false; // by the page's address: it is scrolled to
  }

  /** Whether the page's address names it, and perhaps a moment. */
  get isNamed() {
    return location.hash.slice(1).split("&")[0] === encodeURIComponent(this.place.id);
  }

  /** Load it, once; what a question covers waits until it is uncovered. */
  load() {
    if (this.begun || isCovered(this.place)) return;
    this.begun = true;
    this.start().catch((error) => {
      console.warn(error);
      addElement("p", this.place, "gl-recording-failed", FAILED).setAttribute("role", "status");
    });
  }

  /** Go to it, as the page's address says. */
  goTo() {
    this.place.scrollIntoView();
    this.wanted = !isCovered(this.place);
    this.load();
  }

  async start() {
    const { place } = this;
    const { kind, src = "", title } = place.dataset;
    const recording = await unpacked(await packedFrom(src));
    const root = addElement("div", place);
    try {
      const shown = new (kind === "instrument" ? InstrumentPage : Replay)(root, recording, { id: place.id, title });
      place.dataset.live = ""; // hides the still: the screen has been painted
      if (this.wanted) place.scrollIntoView(); // what is above may have changed its height meanwhile
      place.dispatchEvent(new CustomEvent("gradlab-ready", { bubbles: true, detail: shown }));
    } catch (error) {
      root.remove();
      throw error;
    }
  }
}

/** Start the questions, and the recordings as they come near. */
function startPage() {
  startBets();
  const places = new Map(
    [...document.querySelectorAll(".gl-recording")].map((each) => [
      each,
      new RecordingPlace(/** @type {HTMLElement} */ (each)),
    ]),
  );
  const look = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) places.get(target)?.load();
  }, { rootMargin: AHEAD });
  const goToNamed = () => [...places.values()].find((each) => each.isNamed)?.goTo();
  for (const [element, each] of places) {
    look.observe(element);
    if (each.place.dataset.eager !== undefined) each.load();
  }
  document.addEventListener("gradlab-uncovered", ({ target }) => {
    for (const [element] of places) {
      if (!(target instanceof Element && target.contains(element))) continue;
      look.unobserve(element); // observed anew, it is looked at anew
      look.observe(element);
    }
  });
  globalThis.addEventListener("hashchange", goToNamed);
  goToNamed();
}

startPage();
