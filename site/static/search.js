// @ts-check
/** The search: pagefind looks into its index, and this shows what it finds. */

(() => {
  // Every page has these words, so they would not rank the pages, and would be marked all over the excerpts.
  const COMMON = new Set(
    "a an and are as at be but by can do does for from how i if in is it its my not of on or so that the then there this to was what when where which why with you"
      .split(" "),
  );
  const query = new URLSearchParams(location.search).get("q")?.trim() ?? "";
  const status = /** @type {HTMLElement} */ (document.getElementById("status"));
  const list = /** @type {HTMLElement} */ (document.getElementById("results"));
  const field = document.querySelector("main input");
  if (field instanceof HTMLInputElement) field.value = query;
  if (!query) return;
  if (location.protocol === "file:") {
    status.textContent = "Browsers let no page search files on a disk. Serve the folder: python -m http.server";
    return;
  }

  const words = query.split(/\s+/).filter((word) => !COMMON.has(word.toLowerCase().replace(/\W+$/, "")));
  const terms = query.includes('"') || !words.length ? query : words.join(" "); // quotes ask for exactly these words

  /** @typedef {{url: string, title: string, weighted_locations: {balanced_score: number}[]}} Part of a page */
  /** Return how well a part fits. @param {Part} part */
  const fit = (part) => part.weighted_locations.reduce((sum, { balanced_score }) => sum + balanced_score, 0);

  /** @param {string} excerpt in which pagefind marks what was found, with all else escaped */
  const marked = (excerpt) => {
    const text = document.createElement("p");
    text.innerHTML = excerpt;
    return text;
  };

  (async () => {
    const pagefind = await import(new URL("pagefind/pagefind.js", location.href).href);
    await pagefind.options({ ranking: { termFrequency: 0.5 } }); // otherwise long pages win, because they repeat a word more often
    const { results } = await pagefind.search(terms);
    const count = results.length === 1 ? "1 page" : `${results.length} pages`;
    status.textContent = results.length ? `${count} with “${terms}”, the best first` : `No page has “${terms}”.`;
    for (const result of results.slice(0, 20)) {
      const { url, meta, excerpt, sub_results } = await result.data();
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = url;
      link.textContent = meta.title;
      item.append(link, marked(excerpt));
      const parts = /** @type {Part[]} */ (sub_results).filter((part) => part.url !== url);
      parts.sort((first, second) => fit(second) - fit(first));
      for (const part of parts.slice(0, 3)) {
        const inner = document.createElement("a");
        inner.href = part.url;
        inner.textContent = part.title;
        item.append(part === parts[0] ? "" : " · ", inner);
      }
      list.append(item);
    }
  })().catch((error) => {
    status.textContent = `The search could not be loaded: ${error}`;
  });
})();
