(() => {
  const table = document.currentScript.previousElementSibling;
  const body = table.tBodies[0];
  for (const mark of table.querySelectorAll("th [data-sorts]")) {
    const head = mark.closest("th");
    const button = document.createElement("button");
    button.textContent = head.textContent + " ⇅";
    button.style = "font:inherit;cursor:pointer;background:none;border:0;padding:0;color:inherit";
    head.replaceChildren(button);
    button.onclick = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      const key = (row) => Number(row.cells[head.cellIndex].firstElementChild.dataset.key);
      const rows = [...body.rows].sort((a, b) => (up ? 1 : -1) * (key(a) - key(b)));
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    };
  }
})();
