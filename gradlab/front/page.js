// @ts-check
/**
 * A page with many recordings and questions. Each recording has a place with a still picture and a description, and is
 * loaded when the place comes near the window; then its screen replaces them, except in print (page.css).
 *
 * A recording is a script that calls `gradlabRecording` with the stem of its file's name and the packed data, because a
 * page on disk can load scripts, but neither modules nor data.
 */

import { startBets } from "./bet.js";
import { addElement } from "./events.js";
import { InstrumentPage } from "./instrument_page.js";
import { isCovered } from "./outcome.js";
import { unpacked } from "./recorded_page.js";
import { Replay } from "./replay.js";

const AHEAD = "100% 0px"; // the margin of the window in which recordings are loaded: a screen above and below
const FAILED = "The live version of this picture could not be loaded. Reload the page to try again.";

/** @type {Map<string, (packed: string) => void>} callbacks of awaited recordings, by the stem of the file's name */
const awaited = new Map();
/** @type {Set<Element>} the places whose recording is loaded or loading */
const begun = new Set();
/** @type {{place: Element | null}} the place that the page's address names, which is scrolled to */
const wanted = { place: null };

Object.assign(globalThis, {
  /** @param {string} key @param {string} packed */
  gradlabRecording: (key, packed) => awaited.get(key)?.(packed),
});

/** Load a packed recording. @param {string} source the address of its script @returns {Promise<string>} */
function packedFrom(source) {
  return new Promise((arrived, failed) => {
    awaited.set(/** @type {string} */ (source.split("/").pop()).replace(/\.js.*$/, ""), arrived);
    const script = addElement("script", null);
    script.onload = script.onerror = () => {
      script.remove();
      failed(new Error(`${source} holds no recording`)); // no effect if a recording has arrived
    };
    script.src = source;
    document.head.append(script);
  });
}

/** Load the recording of a place once, unless a question covers the place. @param {HTMLElement} place */
async function load(place) {
  if (begun.has(place) || isCovered(place)) return;
  begun.add(place);
  const { kind, src = "", title, autoplay } = place.dataset;
  const root = addElement("div", null);
  try {
    const recording = await unpacked(await packedFrom(src));
    place.append(root);
    const player = new (kind === "instrument" ? InstrumentPage : Replay)(root, recording, {
      ...{ id: place.id, title, autoplay: autoplay !== undefined },
    });
    place.dataset.live = ""; // hides the still, because the screen is painted
    if (wanted.place === place) place.scrollIntoView(); // elements above may have changed their height
    place.dispatchEvent(new CustomEvent("gradlab-ready", { bubbles: true, detail: player }));
  } catch (error) {
    root.remove();
    console.warn(error);
    addElement("p", place, "gl-recording-failed", FAILED).role = "status";
  }
}

/** Start the questions, and load recordings as they come near the window. */
function startPage() {
  startBets();
  const places = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".gl-recording")]);
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) load(/** @type {HTMLElement} */ (target));
  }, { rootMargin: AHEAD });
  for (const place of places) {
    observer.observe(place);
    if (place.dataset.eager !== undefined) load(place);
  }
  document.addEventListener("gradlab-uncovered", ({ target }) => {
    for (const place of places.filter((each) => target instanceof Element && target.contains(each))) {
      observer.unobserve(place); // observing it again reports it again
      observer.observe(place);
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
