document.querySelectorAll("table[data-sortable]").forEach(table => {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], original = [...body.rows];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
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
        return sign * (text ? x.localeCompare(y) : x - y);
      });
      body.append(...rows);
    });
  });
});
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
