// @ts-check
/**
 * Where a recording keeps its moment in the page's address, so that it can be linked to: `#frame=40`, and on a page of several
 * behind the id of its place, `#lab-03-1&frame=40`.
 */

export class Address {
  /** @param {string} [id] of the recording's place; "" where the page holds no other */
  constructor(id = "") {
    this.id = id;
    this._written = "";
  }

  /**
   * What the address says of this recording; null where it speaks of something else.
   * @returns {URLSearchParams | null}
   */
  get state() {
    const hash = location.hash.slice(1);
    if (!this.id) return new URLSearchParams(hash);
    const [id, ...state] = hash.split("&");
    return id === this.id ? new URLSearchParams(state.join("&")) : null;
  }

  /** Call `read` whenever somebody else has changed the address, such as a link or the reader. @param {() => void} read */
  follow(read) {
    addEventListener("hashchange", () => location.hash !== this._written && this.state && read());
  }

  /** Keep a moment in the address. @param {Record<string, string>} state */
  write(state) {
    this._written = this._hash(state);
    if (location.hash !== this._written) location.replace(this._written);
  }

  /** The whole address of a moment. @param {Record<string, string>} state */
  link(state) {
    return location.href.split("#")[0] + this._hash(state);
  }

  /** @param {Record<string, string>} state */
  _hash(state) {
    return `#${this.id && `${this.id}&`}${new URLSearchParams(state)}`;
  }
}
