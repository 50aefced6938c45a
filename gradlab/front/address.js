// @ts-check
/**
 * The part of the page's address in which a recording keeps its moment, so that it can be linked to: `#frame=120`, or
 * on a page with several the id of its place first, `#lab-03-1&frame=120`. Any other address is left alone.
 */

export class Address {
  /** @param {string} [id] of the recording's place, "" where it has the page to itself */
  constructor(id = "") {
    this.id = id;
  }

  /** The moment that the address names, null where it names none of this recording. */
  get named() {
    const [own, ...state] = location.hash.slice(1).split("&");
    if (!this.id) return location.hash ? new URLSearchParams(location.hash.slice(1)) : null;
    return own === encodeURIComponent(this.id) && state.length ? new URLSearchParams(state.join("&")) : null;
  }

  /** Return the address of a moment, whole. @param {Record<string, unknown>} state */
  link(state) {
    const pairs = Object.entries(state).map(([name, value]) => [name, String(value)]);
    const parts = [encodeURIComponent(this.id), String(new URLSearchParams(pairs))];
    return `${location.href.split("#")[0]}#${parts.filter(Boolean).join("&")}`;
  }

  /** Keep a moment that the reader has gone to. @param {Record<string, unknown>} state */
  write(state) {
    try {
      history.replaceState(history.state, "", this.link(state)); // unlike `location.replace` it scrolls nothing
    } catch {
      // Safari takes a hundred in half a minute; the next one is kept again.
    }
  }

  /** Call `read` when the reader goes to a moment by the address: by a link, or by Back. @param {() => void} read */
  follow(read) {
    globalThis.addEventListener("hashchange", () => {
      if (this.named || !this.id) read();
    });
  }
}
