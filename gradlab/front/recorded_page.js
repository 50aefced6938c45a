// @ts-check
/** The common base of pages without a kernel: unpacks a recording and keeps its moment in the page's address. */

import { mergeFrame, nothingShown, remembered } from "./wire.js";

/** @typedef {Record<string, any>} Frame */
/**
 * On a page with many recordings: the id of the recording's place, its title, and whether it plays on its own.
 * @typedef {{id?: string, title?: string, autoplay?: boolean}} RecordingPlace
 */

/**
 * A page with a recording. The recording's moment is in the address, so that it can be linked to: `#frame=120` or, on a
 * page with several recordings, after the id of the place: `#lab-03-1&frame=120`. Other addresses are left unchanged.
 */
export class RecordedPage {
  /** @param {string} id of the recording's place, "" if it is the only one on the page */
  constructor(id) {
    this.id = id;
    /** @type {Map<Frame[], Frame[]>} the states at the frames, as far as they are computed */
    this.states = new Map();
    // A link or the Back button has changed the address.
    globalThis.addEventListener("hashchange", () => {
      if (this.named || !this.id) this.read();
    });
  }

  /** Go to the moment that the address names or, if it names none, to the opening moment. */
  read() {}

  /** The current moment, as in the address. @returns {Record<string, unknown>} */
  get moment() {
    return {};
  }

  /** The moment that the address names, null if it names no moment of this recording. */
  get named() {
    const [id, ...state] = location.hash.slice(1).split("&");
    if (!this.id) return location.hash ? new URLSearchParams(location.hash.slice(1)) : null;
    return id === encodeURIComponent(this.id) && state.length ? new URLSearchParams(state.join("&")) : null;
  }

  /** The whole address of the moment. */
  get link() {
    const pairs = Object.entries(this.moment).map(([name, value]) => [name, String(value)]);
    const parts = [encodeURIComponent(this.id), String(new URLSearchParams(pairs))];
    return `${location.href.split("#")[0]}#${parts.filter(Boolean).join("&")}`;
  }

  /** Write the moment to which the reader has gone into the address. */
  write() {
    try {
      history.replaceState(history.state, "", this.link); // unlike `location.replace`, this does not scroll
    } catch {
      // Safari allows a hundred in half a minute; a later one succeeds again.
    }
  }

  /** Return the state at a frame. @param {Frame[]} frames @param {number} index */
  shownAt(frames, index) {
    const states = remembered(this.states, frames, () => []);
    while (states.length <= index) {
      states.push(mergeFrame(states.at(-1) ?? nothingShown(), frames[states.length]));
    }
    return states[index];
  }
}

/** Return an unpacked recording. @param {string} packed gzip, as base64 */
export async function unpacked(packed) {
  const letters = atob(packed.trim());
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = letters.charCodeAt(index); // callbacks are slow
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).json();
}
