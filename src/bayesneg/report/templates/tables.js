/* tables sort by a click on a head, and show the rows that hold every word of the filter */
const FEWEST_ROWS = 4;
function enhance(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], original = [...body.rows];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const was = head.getAttribute("aria-sort"), text = head.classList.contains("text");
      const first = text ? "ascending" : "descending", second = text ? "descending" : "ascending";
      const order = was === null ? first : was === first ? second : null;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      const value = row => row.cells[column].dataset.value;
      const sign = order === "ascending" ? 1 : -1;
      const rows = !order ? original : [...original].sort((a, b) => {
        const x = value(a), y = value(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        return sign * (text ? x.localeCompare(y, "en", { numeric: true }) : x - y);
      });
      body.append(...rows);
    });
  });
  if (original.length < FEWEST_ROWS) return;
  const scroll = table.closest(".scroll");
  const input = make("input", {
    type: "search", placeholder: "Filter rows", "aria-label": `Filter the rows of: ${scroll.getAttribute("aria-label")}`,
  });
  const count = make("span", { class: "soft", role: "status" });
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    const hits = original.filter(row => {
      const text = [...row.cells].map(cell => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      return !row.hidden;
    });
    count.textContent = input.value.trim() ? `${hits.length} of ${original.length} rows` : "";
  });
  scroll.before(make("div", { class: "tools" }, input, count));
}
document.querySelectorAll("table[data-sortable]").forEach(enhance);
