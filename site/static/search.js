// @ts-check
/** The search: pagefind looks into its index, and this shows what it finds. */

(() => {
  const asked = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  const said = /** @type {HTMLElement} */ (document.getElementById("said"));
  const list = /** @type {HTMLElement} */ (document.getElementById("found"));
  const field = document.querySelector("main input");
  if (field instanceof HTMLInputElement) field.value = asked;
  if (!asked) return;
  if (location.protocol === "file:") {
    said.textContent = "Browsers let no page search files on a disk. Serve the folder: python -m http.server";
    return;
  }

  /** @param {string} excerpt in which pagefind marks what was found, with all else escaped */
  const marked = (excerpt) => {
    const text = document.createElement("p");
    text.innerHTML = excerpt;
    return text;
  };

  (async () => {
    const pagefind = await import(new URL("pagefind/pagefind.js", location.href).href);
    const { results } = await pagefind.search(asked);
    said.textContent = results.length ? `${results.length} pages with “${asked}”` : `No page has “${asked}”.`;
    for (const result of results.slice(0, 20)) {
      const { url, meta, excerpt, sub_results } = await result.data();
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = url;
      link.textContent = meta.title;
      item.append(link, marked(excerpt));
      for (const part of sub_results.slice(0, 3)) {
        if (part.url === url) continue;
        const inner = document.createElement("a");
        inner.href = part.url;
        inner.textContent = part.title;
        item.append(inner, " ");
      }
      list.append(item);
    }
  })().catch((error) => {
    said.textContent = `The search could not be loaded: ${error}`;
  });
})();
