// @ts-check
/** What the pages without a kernel have in common: a recording is unpacked, and its moment is in the page's address. */

import { mergeFrame, nothingShown, remembered } from "./wire.js";

/** @typedef {Record<string, any>} Frame */
/**
 * On a page with many: the id of its place, its title, and whether it plays on its own.
 * @typedef {{id?: string, title?: string, autoplay?: boolean}} RecordingPlace
 */

/**
 * Its moment is in the address, so that it can be linked to: `#frame=120`, or on a page with several the id of its place
 * first, `#lab-03-1&frame=120`. Any other address is left alone.
 */
export class RecordedPage {
  /** @param {string} id of the recording's place, "" where it has the page to itself */
  constructor(id) {
    this.id = id;
    /** @type {Map<Frame[], Frame[]>} what is shown at each frame, as far as it was worked out */
    this.known = new Map();
    // By a link, or by Back.
    globalThis.addEventListener("hashchange", () => {
      if (this.named || !this.id) this.read();
    });
  }

  /** Go to the moment that the address names, or to the one that a page opens with. */
  read() {}

  /** Where it is, as the address has it. @returns {Record<string, unknown>} */
  get moment() {
    return {};
  }

  /** The moment that the address names, null where it names none of this recording. */
  get named() {
    const [own, ...state] = location.hash.slice(1).split("&");
    if (!this.id) return location.hash ? new URLSearchParams(location.hash.slice(1)) : null;
    return own === encodeURIComponent(this.id) && state.length ? new URLSearchParams(state.join("&")) : null;
  }

  /** The address of the moment, whole. */
  get link() {
    const pairs = Object.entries(this.moment).map(([name, value]) => [name, String(value)]);
    const parts = [encodeURIComponent(this.id), String(new URLSearchParams(pairs))];
    return `${location.href.split("#")[0]}#${parts.filter(Boolean).join("&")}`;
  }

  /** Keep the moment in the address, as the reader has gone to it. */
  write() {
    try {
      history.replaceState(history.state, "", this.link); // unlike `location.replace` it scrolls nothing
    } catch {
      // Safari takes a hundred in half a minute; the next one is kept again.
    }
  }

  /** Return what is shown at a frame. @param {Frame[]} frames @param {number} index */
  shownAt(frames, index) {
    const known = remembered(this.known, frames, () => []);
    while (known.length <= index) {
      known.push(mergeFrame(known.at(-1) ?? nothingShown(), frames[known.length]));
    }
    return known[index];
  }
}

/** Return a recording. @param {string} packed gzip, as base64 */
export async function unpacked(packed) {
  const letters = atob(packed.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at); // a call a letter takes a phone long
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).json();
}
