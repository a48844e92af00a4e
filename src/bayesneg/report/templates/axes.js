/* the vertical axis follows what is shown: a series far from the others, once hidden, leaves its room to them */
const LEAST_ZOOM = 1.2;
function verticalAxis(svg, axis) {
  const { top, bottom, low, high, percent } = axis;
  const ticks = svg.querySelector("[data-yaxis]"), first = ticks.querySelector(":scope > g:has(> g > path)");
  if (!first) return null;
  const original = [...ticks.children].filter(each => each.querySelector(":scope > g > path"));
  const inside = [...svg.querySelectorAll("[clip-path]")].filter(each => !each.closest("[data-xaxis], [data-yaxis]"));
  const paths = [...inside.filter(each => each.tagName === "path"), ...svg.querySelectorAll("[data-arrow] path, path[data-arrow]")]
    .map(path => ({ path, arrow: path.closest("[data-arrow]") !== null, d: path.getAttribute("d") }));
  const uses = inside.flatMap(each => [...each.querySelectorAll("use")]).map(use => ({ use, y: Number(use.getAttribute("y")) }));
  /* the height of a series: its lines, intervals and bands, as far as they are within the frame */
  const heights = (d, from = 0) => [...d.matchAll(/-?[\d.]+ +(-?[\d.]+)/g)].map(found => from + Number(found[1]));
  const extent = series => [...svg.querySelectorAll(`[data-series="${series}"]`)].flatMap(group => [
    ...paths.filter(({ path, arrow }) => !arrow && group.contains(path)).flatMap(({ d }) => heights(d)),
    ...uses.filter(({ use }) => group.contains(use)).flatMap(({ use, y }) => use.getAttribute("x") === "0"
      ? heights(svg.querySelector(use.getAttribute("xlink:href")).getAttribute("d"), y) : [y]),
  ]).filter(y => y > top - 1 && y < bottom + 1);
  let made = [], scale = 1, shift = 0;
  const place = y => scale * y + shift;

  function drawTicks() {
    const value = y => high - (y - top) / (bottom - top) * (high - low), at = v => top + (high - v) / (high - low) * (bottom - top);
    const from = value((bottom - shift) / scale), to = value((top - shift) / scale), rough = (to - from) / 4;
    const size = 10 ** Math.floor(Math.log10(rough)), step = size * ([1, 2, 5].find(each => each * size >= rough) ?? 10);
    const digits = Math.max(0, -Math.floor(Math.log10(step * (percent ? 100 : 1)) + 1e-9));
    made.forEach(each => each.remove());
    made = [];
    for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k += 1) {
      const tick = first.cloneNode(true), y = place(at(k * step)), text = tick.querySelector("text");
      tick.classList.remove("off");
      const line = tick.querySelector("path"), xs = line.getAttribute("d").match(/-?[\d.]+/g);
      line.setAttribute("d", `M ${xs[0]} ${y} L ${xs[2]} ${y}`);
      text.setAttribute("y", y + 3.6);
      text.removeAttribute("transform");
      text.textContent = (percent ? `${(100 * k * step).toFixed(digits)}%` : (k * step).toFixed(digits)).replace("-", "−");
      made.push(tick);
    }
    ticks.append(...made);
  }

  /* shown: the places of the series in sight; null for the axis as it was drawn */
  function follow(shown) {
    const ys = shown ? shown.flatMap(extent) : [], least = Math.min(...ys), most = Math.max(...ys);
    const edge = 0.06 * (bottom - top), zoom = (bottom - top - 2 * edge) / (most - least);
    const isUsed = most > least && zoom > LEAST_ZOOM;
    [scale, shift] = isUsed ? [zoom, top + edge - zoom * least] : [1, 0];
    paths.forEach(({ path, arrow, d }) => {
      let points = 0;  /* of the line to a name only the end at the point moves: the name stays */
      const xs = [...d.matchAll(/(-?[\d.]+) +(-?[\d.]+)/g)].map(found => Number(found[1])), left = Math.min(...xs);
      path.setAttribute("d", d.replace(/(-?[\d.]+) +(-?[\d.]+)/g, (whole, x, y) =>
        arrow && xs[points++] !== left ? whole : `${x} ${place(Number(y))}`));
    });
    uses.forEach(({ use, y }) => {
      if (use.getAttribute("x") === "0") use.setAttribute("transform", `translate(0 ${shift}) scale(1 ${scale})`);  /* a band */
      else use.setAttribute("y", place(y));
    });
    original.forEach(each => each.classList.toggle("off", isUsed));
    made.forEach(each => each.remove());
    if (isUsed) drawTicks();
  }
  return { place, follow };
}
