// @ts-check
/** Sets the theme that the reader chose, before anything is painted. */

(() => {
  try {
    const kept = localStorage.getItem("gradlab-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // The browser stores nothing, so the page has the system's theme.
  }
})();
