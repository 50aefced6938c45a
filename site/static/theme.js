// @ts-check
/** The theme that the reader chose, before anything is painted. */

(() => {
  try {
    const kept = localStorage.getItem("gradlab-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // a browser that keeps nothing: the system's theme it is
  }
})();
