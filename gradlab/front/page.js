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
import { unpacked } from "./recorded_page.js";
import { Replay } from "./replay.js";

const AHEAD = "100% 0px"; // how far from the window a recording is loaded: a screen above and below
const FAILED = "The live version of this picture could not be loaded. Reload the page to try again.";

/** @type {Map<string, (packed: string) => void>} who waits for the recordings, by the stem of the file's name */
const awaited = new Map();
/** @type {Set<Element>} the places whose recording is there, or being loaded */
const begun = new Set();
/** @type {{place: Element | null}} the place that the page's address names: it is scrolled to */
const wanted = { place: null };

Object.assign(globalThis, {
  /** @param {string} key @param {string} packed */
  gradlabRecording: (key, packed) => awaited.get(key)?.(packed),
});

/** Load what is packed in a script. @param {string} source its address @returns {Promise<string>} */
function packedFrom(source) {
  return new Promise((arrived, failed) => {
    awaited.set(/** @type {string} */ (source.split("/").pop()).replace(/\.js.*$/, ""), arrived);
    const script = addElement("script", null);
    script.onload = script.onerror = () => {
      script.remove();
      failed(new Error(`${source} holds no recording`)); // this counts only where none has arrived
    };
    script.src = source;
    document.head.append(script);
  });
}

/** Load the recording of a place, once; what a question covers waits until it is uncovered. @param {HTMLElement} place */
async function load(place) {
  if (begun.has(place) || isCovered(place)) return;
  begun.add(place);
  const { kind, src = "", title, autoplay } = place.dataset;
  const root = addElement("div", null);
  try {
    const recording = await unpacked(await packedFrom(src));
    place.append(root);
    const shown = new (kind === "instrument" ? InstrumentPage : Replay)(root, recording, {
      ...{ id: place.id, title, autoplay: autoplay !== undefined },
    });
    place.dataset.live = ""; // hides the still: the screen has been painted
    if (wanted.place === place) place.scrollIntoView(); // what is above may have changed its height meanwhile
    place.dispatchEvent(new CustomEvent("gradlab-ready", { bubbles: true, detail: shown }));
  } catch (error) {
    root.remove();
    console.warn(error);
    addElement("p", place, "gl-recording-failed", FAILED).role = "status";
  }
}

/** Start the questions, and the recordings as they come near. */
function startPage() {
  startBets();
  const places = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".gl-recording")]);
  const look = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) load(/** @type {HTMLElement} */ (target));
  }, { rootMargin: AHEAD });
  for (const place of places) {
    look.observe(place);
    if (place.dataset.eager !== undefined) load(place);
  }
  document.addEventListener("gradlab-uncovered", ({ target }) => {
    for (const place of places.filter((each) => target instanceof Element && target.contains(each))) {
      look.unobserve(place); // observed anew, it is looked at anew
      look.observe(place);
    }
  });
  const goToNamed = () => {
    const place = places.find(({ id }) => location.hash.slice(1).split("&")[0] === encodeURIComponent(id));
    if (!place) return;
    place.scrollIntoView();
    wanted.place = isCovered(place) ? null : place;
    load(place);
  };
  globalThis.addEventListener("hashchange", goToNamed);
  goToNamed();
}

startPage();
