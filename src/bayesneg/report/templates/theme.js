"use strict";
/* light or dark, whatever the reader's system says */
const theme = document.getElementById("theme");
const isDark = () => (document.documentElement.dataset.theme ??
  (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();

/* an element with attributes and content, which is text and never markup */
function make(name, attributes = {}, ...content) {
  const made = document.createElementNS(
    ["svg", "g", "circle", "line", "path", "text"].includes(name) ? "http://www.w3.org/2000/svg"
      : "http://www.w3.org/1999/xhtml", name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...content);
  return made;
}

/* what is on paper: every folded part */
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));
