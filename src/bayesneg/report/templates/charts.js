/* a chart tells the values of the point nearest to the pointer; a click on a name hides its series */
const tip = document.body.appendChild(make("div", { id: "tip", role: "status", hidden: "" }));
function tell(name, lines, at) {
  tip.replaceChildren(make("strong", {}, name), ...lines.map(line => make("span", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = at.x + 14 + width > innerWidth ? at.x - 14 - width : at.x + 14;
  tip.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(at.y - height - 10, innerHeight - height - 4))}px`;
}
const hush = () => { tip.hidden = true; };
addEventListener("scroll", hush, true);
addEventListener("keydown", event => { if (event.key === "Escape") hush(); });

document.querySelector(".figures")?.before(make("p", { class: "soft hint" },
  "Hover over a chart for values and seeds; click a name to hide its series: a curve's axis then follows what is left."));
const narrow = matchMedia("screen and (max-width: 40rem)");
document.querySelectorAll("svg[data-chart]").forEach(svg => {
  const { series, crop, axis: drawn } = JSON.parse(svg.dataset.chart), off = new Set();
  const axis = drawn ? verticalAxis(svg, drawn) : null, placed = ([x, y]) => [x, axis ? axis.place(y) : y];
  const part = (kind, place) => [...svg.querySelectorAll(`[data-${kind}="${place}"]`)];
  const ring = svg.appendChild(make("circle", { class: "ring", r: 5 }));
  const points = () => series.flatMap((each, place) => off.has(place) ? [] : each.points.map(point => ({ place, point })));
  const onScreen = point => new DOMPoint(...placed(point)).matrixTransform(svg.getScreenCTM());
  let told = null;
  const leave = () => { hush(); told = null; ring.classList.remove("on"); };
  const show = found => {
    if (!found) return leave();
    told = found;
    const [x, y] = placed(found.point), lines = found.point.slice(2);
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("stroke", series[found.place].colour);
    ring.classList.add("on");
    tell(series[found.place].name, lines, onScreen(found.point));
  };
  const nearest = (all, distance) => all.reduce((best, each) => best && distance(best) <= distance(each) ? best : each, null);
  const follow = event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const away = ({ point }) => (([x, y]) => Math.hypot(x - at.x, y - at.y))(placed(point));
    const found = nearest(points(), away);
    if (found && away(found) < 60) show(found); else leave();
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", leave);

  /* the same by keys: left and right along a series, up and down to the next one */
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], turn = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const all = points();
    if (!step && !turn || !all.length || event.target !== svg) return;
    event.preventDefault();
    if (!told) return show(all[0]);
    const own = all.filter(({ place }) => place === told.place);
    if (step) return show(own[own.findIndex(({ point }) => point === told.point) + step] ?? told);
    const places = [...new Set(all.map(({ place }) => place))];
    const next = places[(places.indexOf(told.place) + turn + places.length) % places.length];
    show(nearest(all.filter(({ place }) => place === next), ({ point }) => Math.abs(point[0] - told.point[0])));
  });

  /* names at the lines are buttons; on a narrow screen there is a row of buttons instead, and room for the lines */
  const legend = make("div", { class: "legend" });
  const toggles = series.map(({ name, colour }, place) => {
    const swatch = make("i", {}), chip = make("button", { type: "button" }, swatch, name);
    swatch.style.background = colour;
    legend.append(chip);
    const labels = part("label", place);
    labels.forEach(label => { label.setAttribute("role", "button"); label.setAttribute("tabindex", "0"); });
    const names = [chip, ...labels];
    const toggle = () => {
      off[off.has(place) ? "delete" : "add"](place);
      [...part("series", place), ...part("arrow", place)].forEach(shape => shape.classList.toggle("off", off.has(place)));
      names.forEach(each => each.setAttribute("aria-pressed", String(!off.has(place))));
      axis?.follow(off.size ? series.map((_, at) => at).filter(at => !off.has(at)) : null);
      leave();
    };
    names.forEach(each => {
      each.setAttribute("aria-pressed", "true");
      each.setAttribute("aria-label", name);
      each.addEventListener("click", event => {
        toggle();
        if (event.detail) each.blur();  /* clicked, not pressed by a key: no frame around the name */
      });
    });
    labels.forEach(label => label.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
    }));
    return toggle;
  });
  if (!toggles.length) return;
  svg.before(legend);
  if (!crop) return;
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const fit = () => {
    svg.setAttribute("viewBox", `0 0 ${narrow.matches ? crop : width} ${height}`);
    svg.classList.toggle("cropped", narrow.matches);
  };
  narrow.addEventListener("change", fit);
  addEventListener("beforeprint", fit);
  fit();
});
