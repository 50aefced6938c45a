// @ts-check
/** Parts of every page besides its labs: theme, menu, folded sections that an address names, wide parts by keyboard. */

(() => {
  const { documentElement: page } = document;

  const theme = document.querySelector("button.theme");
  if (theme instanceof HTMLButtonElement) {
    const dark = () =>
      (page.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const name = () => {
      theme.textContent = dark() ? "Light" : "Dark";
      theme.ariaLabel = `${theme.textContent} theme`;
    };
    theme.addEventListener("click", () => {
      page.dataset.theme = dark() ? "light" : "dark";
      try {
        localStorage.setItem("gradlab-theme", page.dataset.theme);
      } catch {
        // The choice is kept for this page only.
      }
      name();
    });
    name();
    theme.hidden = false;
  }

  // The menu is folded on a narrow page only.
  const menu = document.querySelector("details.menu");
  if (menu instanceof HTMLDetailsElement) {
    const wide = matchMedia("(min-width: 900px)");
    const fold = () => menu.open = wide.matches;
    wide.addEventListener("change", fold);
    fold();
  }
  const series = document.querySelector("details.series");
  if (series instanceof HTMLDetailsElement) {
    document.addEventListener("click", (event) => {
      if (event.target instanceof Node && !series.contains(event.target)) series.open = false;
    });
    series.addEventListener("keydown", (event) => {
      if (event.key === "Escape") series.open = false;
    });
  }

  /** Open the section that the address names, and those around it. */
  const open = () => {
    const id = decodeURIComponent(location.hash.slice(1).split("&")[0]);
    const found = id ? document.getElementById(id) : null;
    if (!found) return;
    let opened = false;
    for (let at = /** @type {Element | null} */ (found); at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement && !at.open && !at.matches(".menu, .series")) at.open = opened = true;
    }
    if (opened) found.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();

  // Parts wider than the screen can be scrolled with the keyboard; other parts do not take the focus.
  const wide = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (!(target instanceof HTMLElement)) continue;
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const part of document.querySelectorAll("main pre, main table, .jp-RenderedHTML, .formula, .wide, .gl-loop")) {
    wide.observe(part);
  }
})();
