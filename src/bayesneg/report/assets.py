"""The stylesheet and the script that every report carries inside itself."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1d2329; --soft: #59636e; --line: #d9dee3; --page: #fbfbfa; --card: #ffffff; --accent: #0b5c8f;
  --note: #fff6dc; --note-line: #d8a400; --warn: #a3240b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8eaed; --soft: #a7b0b9; --line: #3a4149; --page: #16191d; --card: #1e2227; --accent: #7cc0ee;
    --note: #322a10; --note-line: #c79a1b; --warn: #ff9d85;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: break-word;
}
main { max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.15rem; font-weight: 600; margin: 0; color: var(--soft); }
h2 { font-size: 1.2rem; margin: 3rem 0 .25rem; line-height: 1.3; }
h2.study { font-size: 1.5rem; margin-top: 4rem; padding-top: 1rem; border-top: 3px solid var(--line); }
a { color: var(--accent); }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
p { margin: .4rem 0; max-width: 46rem; }
.finding { font-size: clamp(1.2rem, 1rem + 1vw, 1.6rem); line-height: 1.4; margin: .6rem 0 1rem;
  max-width: 52rem; }
.finding strong { font-weight: 650; }
.facts, .soft, caption { color: var(--soft); }
.facts { margin: 0; font-size: .95rem; max-width: 60rem; }
.notes { padding: .7rem 1rem .7rem 2rem; margin: 1rem 0 0; background: var(--note); max-width: 52rem;
  border-left: 4px solid var(--note-line); border-radius: 4px; font-size: .95rem; }
.scroll { overflow-x: auto; margin: .75rem 0; border: 1px solid var(--line); border-radius: 8px;
  background: var(--card); container-type: inline-size; }
caption span { display: block; position: sticky; left: .7rem; width: max-content;
  max-width: min(46rem, 100cqw - 2rem); }
.scroll:focus-visible, a:focus-visible, button:focus-visible, summary:focus-visible { outline: 3px solid var(--accent);
  outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; padding: .75rem .7rem; font-size: .875rem; line-height: 1.45; }
th, td { padding: .55rem .7rem; text-align: right; vertical-align: top; white-space: nowrap;
  border-top: 1px solid var(--line); }
th:first-child, td.text { text-align: left; }
thead th { font-weight: 600; vertical-align: bottom; white-space: normal; }
tbody th { font-weight: 600; min-width: 9rem; }
tbody th:first-child { position: sticky; left: 0; background: var(--card); }
td.text { width: 100%; }
td.text, th.text { white-space: normal; text-align: left; }
thead button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-align: inherit; }
thead button::after { content: "↕"; opacity: .35; padding-left: .3em; font-size: .85em; }
thead button:hover::after { opacity: 1; }
[aria-sort="ascending"] button::after { content: "↑"; opacity: 1; }
[aria-sort="descending"] button::after { content: "↓"; opacity: 1; }
.minor { display: block; color: var(--soft); font-size: .8rem; font-weight: 400; line-height: 1.4; }
.pm { color: var(--soft); font-weight: 400; }
.best { font-weight: 700; }
.off { color: var(--warn); font-weight: 700; }
.badge { display: block; width: fit-content; margin-top: .15rem; padding: 0 .5em;
  border: 1px solid var(--note-line); background: var(--note); border-radius: 1em;
  font-size: .75rem; font-weight: 600; white-space: nowrap; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr));
  gap: 1.25rem; margin: 1rem 0; }
figure { margin: 0; padding: 1rem 1rem .5rem; background: #fff; color: #1d2329; border: 1px solid var(--line);
  border-radius: 8px; break-inside: avoid; }
figcaption { font-size: .875rem; line-height: 1.45; color: #4d565f; margin-bottom: .5rem; }
figcaption strong { display: block; color: #1d2329; font-size: .975rem; }
figure svg { display: block; width: 100%; height: auto; stroke-linejoin: round; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .5rem 1.5rem;
  max-width: 56rem; }
dt { font-weight: 600; }
dd { margin: 0; }
details { border-top: 1px solid var(--line); padding: .6rem 0; }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; padding: .75rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; font: .8rem/1.5 ui-monospace, Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 40rem) {
  main { padding: 1.5rem 1rem 3rem; }
  th, td { padding: .5rem .7rem; }
  tbody th { min-width: 6.5rem; white-space: normal; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin: 0 0 .75rem; }
}
@page { size: landscape; margin: 12mm; }
@media print {
  :root { --ink: #000; --soft: #444; --line: #bbb; --page: #fff; --card: #fff; --accent: #000; --note: #fff;
    --warn: #000; }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .scroll { overflow: visible; border: 0; container-type: normal; }
  caption span { width: auto; max-width: none; }
  table { font-size: 7.5pt; }
  .minor { font-size: 6.5pt; }
  th, td { padding: .25rem .35rem; }
  tbody th:first-child { position: static; }
  thead button::after { content: ""; }
  .figures { grid-template-columns: 1fr 1fr; }
  h2, caption, summary { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""

SCRIPT = """
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
"""
