// @ts-check
/** Slides: the cells of one slide at a time, as large as fits; arrows, space, Page Up and Down, a swipe, or the buttons. C shows code, N notes. */

(() => {
  const SMALLEST = 0.4;
  const cells = [...document.querySelectorAll("[data-slide]")].filter((each) => each instanceof HTMLElement);
  const last = Math.max(...cells.map((cell) => Number(cell.dataset.slide)));
  const bar = /** @type {HTMLElement} */ (document.querySelector(".slide-bar"));
  const counter = /** @type {HTMLElement} */ (bar.querySelector("output"));
  const [list] = document.querySelectorAll("main .cells");
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const LARGEST = 2.5; // largest zoom of a lab, which is made for a desk
  let now = 0;

  /** Make the slide as large as fits on the screen. */
  const fit = () => {
    if (!(list instanceof HTMLElement)) return;
    const hasLab = cells.some((cell) => !cell.hidden && cell.matches(".wide-cell"));
    main.classList.toggle("has-lab", hasLab);
    let zoom = hasLab ? LARGEST : 1;
    do {
      list.style.zoom = zoom.toFixed(2);
      zoom -= 0.05;
    } while (main.scrollHeight > main.clientHeight && zoom > SMALLEST);
  };

  /** Whether a question covers all of a slide. @param {number} at */
  const isCovered = (at) =>
    cells.every((cell) =>
      Number(cell.dataset.slide) !== at || cell.matches(".gl-bet-hides") && !cell.querySelector("h1, h2, h3")
    );

  /** Show a slide or, if it is covered, the next slide that is not, in the direction `by`. @param {number} to @param {1 | -1} by */
  const show = (to, by) => {
    let at = Math.min(Math.max(to, 0), last);
    while (isCovered(at) && at > 0 && at < last) at += by;
    if (!isCovered(at)) now = at;
    for (const cell of cells) cell.hidden = Number(cell.dataset.slide) !== now;
    counter.textContent = `${now + 1} / ${last + 1}`;
    main.scrollTop = 0;
    fit();
  };

  /** @param {number} to @param {1 | -1} by */
  const go = (to, by) => {
    show(to, by);
    if (location.hash !== `#${now + 1}`) location.replace(`#${now + 1}`);
  };

  /** Go to the slide that the address names, or to the slide with the lab that it names. */
  const read = () => {
    const [name] = location.hash.slice(1).split("&");
    const place = document.getElementById(name)?.closest("[data-slide]");
    if (place instanceof HTMLElement) show(Number(place.dataset.slide), -1);
    else go(/^\d+$/.test(name) ? Number(name) - 1 : now, -1);
  };

  /** Show or hide the code, or the notes, of all slides. @param {HTMLButtonElement} button */
  const toggle = (button) => {
    const on = document.body.classList.toggle(`with-${button.dataset.shows}`);
    button.setAttribute("aria-pressed", String(on));
    for (const note of document.querySelectorAll("aside[data-note]")) {
      if (!(note instanceof HTMLElement) || note.firstChild || button.dataset.shows !== "notes") continue;
      const bytes = Uint8Array.from(atob(note.dataset.note ?? ""), (letter) => letter.charCodeAt(0));
      note.innerHTML = new TextDecoder().decode(bytes);
    }
    fit();
  };
  const switches = [...bar.querySelectorAll("button[data-shows]")].filter((each) => each instanceof HTMLButtonElement);
  for (const button of switches) button.addEventListener("click", () => toggle(button));
  for (const button of bar.querySelectorAll("button[data-go]")) {
    if (!(button instanceof HTMLButtonElement)) continue;
    button.addEventListener("click", () => button.dataset.go === "1" ? go(now + 1, 1) : go(now - 1, -1));
  }
  // Listen before a lab or a question does, because a presenter's remote sends keys to the element with the focus.
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
    if (event.target.closest("canvas, input, select, textarea")) return; // these elements use the keys themselves
    const pressed = event.target.closest("button, summary, a, [role=button]"); // these elements use the space bar
    const by = { PageDown: 1, PageUp: -1, ArrowRight: 1, ArrowLeft: -1, ...(pressed ? {} : { " ": 1 }) }[event.key];
    const shown = switches.find((each) => each.title === `Key ${event.key.toUpperCase()}`);
    if (shown) toggle(shown);
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    go(now + by, by > 0 ? 1 : -1);
  }, true);
  if (list) new ResizeObserver(fit).observe(main);
  new MutationObserver(fit).observe(main, { subtree: true, attributeFilter: ["data-live", "data-settled", "class"] });
  main.addEventListener("gradlab-ready", () => requestAnimationFrame(() => requestAnimationFrame(fit))); // then it has its height
  main.addEventListener("load", fit, true); // a picture has loaded
  addEventListener("hashchange", read);
  read();
})();
