/* the drill-down: what each sampler picked for the user that is chosen, drawn and listed */
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const WORDS = ["", "false: held out", "false: liked, never observed"];
document.querySelectorAll("[data-explorer]").forEach(place => {
  const { users, samplers, items, picks, known } = JSON.parse(place.dataset.explorer);
  const name = place.getAttribute("aria-label");
  const wrongs = users.map((_, at) => picks.filter(row => row[0] === at && row[4]).length);
  const select = make("select", {}, ...users.map(({ id }, at) => make("option", { value: at }, `${id} (${wrongs[at]} false)`)));
  select.value = wrongs.indexOf(Math.max(...wrongs));  /* the user with the most to see */
  const which = make("select", {}, make("option", { value: "" }, "all"),
    ...samplers.map(({ name }, at) => make("option", { value: at }, name)));
  const only = make("input", { type: "checkbox" });
  const about = make("p", { class: "soft", role: "status" });
  const strip = make("div", { class: "strip" }), list = make("div");
  place.append(
    make("div", { class: "tools" }, make("label", {}, "User ", select), make("label", {}, "Sampler ", which),
      make("label", {}, only, " only false negatives")),
    about, strip, list);
  const number = (value, digits) => value === null ? "–" : value.toFixed(digits).replace("-", "−");
  const lines = row => [
    `negative ${row.negative}${row.false ? ` (${WORDS[row.false]})` : ""}`, `for the positive ${row.positive}`,
    `score ${number(row.score, 3)}, positive ${number(row.positiveScore, 3)}`, `normalized rank ${number(row.rank, 3)}`,
    ...(row.prior === null ? [] : [`prior ${number(row.prior, 4)}`]),
    ...(row.posterior === null ? [] : [`posterior ${number(row.posterior, 4)}`]),
  ];

  function draw(rows, shown) {
    const width = Math.max(240, strip.clientWidth - 34), side = 8, x = rank => side + rank * (width - 2 * side);
    const panel = (height, label) => {
      const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
      TICKS.forEach(at => svg.append(make("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height })));
      return svg;
    };
    const axis = panel(4, "Normalized rank, from 0 to 1");
    axis.setAttribute("viewBox", `0 0 ${width} 36`);
    const ends = { 0: "start", 1: "end" };
    TICKS.forEach(at => axis.append(make("text", { x: x(at), y: 17, "text-anchor": ends[at] ?? "middle" }, String(at))));
    axis.append(make("text", { x: width / 2, y: 33, "text-anchor": "middle" }, "normalized rank (1: the highest score)"));
    strip.replaceChildren(...shown.flatMap(sampler => {
      const own = rows.filter(row => row.sampler === sampler), wrong = own.filter(row => row.false).length;
      const said = `${samplers[sampler].name}: ${wrong} of ${own.length} picks false`, svg = panel(22, said);
      own.forEach(row => {
        const dot = row.false ? make("path", { d: `M${x(row.rank)} 4l7 7l-7 7l-7 -7z`, class: "pick wrong" })
          : make("circle", { cx: x(row.rank), cy: 11, r: 5, class: "pick" });
        dot.addEventListener("pointerenter", event =>
          tell(samplers[sampler].name, lines(row), { x: event.clientX, y: event.clientY }));
        dot.addEventListener("pointerleave", hush);
        svg.append(dot);
      });
      return [make("div", { class: "name" }, said), svg];
    }), axis);
  }

  function tabulate(rows) {
    const heads = ["Sampler", "Positive", "Negative", "False negative", "Score", "Score of the positive", "Rank", "Prior", "Posterior"];
    const words = column => column < 4 ? { class: "text" } : {};
    const cell = (text, value, column) => make(column ? "td" : "th",
      { ...(column ? {} : { scope: "row" }), ...(column && column < 4 ? { class: "word" } : {}), "data-value": value ?? "" }, text);
    const table = make("table", {},
      make("caption", {}, make("span", {}, "Rank: the share of the user's other unobserved items that score lower. Prior and "
        + "posterior: the sampler's probabilities that the item is a false negative, before and after its score is seen.")),
      make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", { scope: "col", ...words(at) }, head)))),
      make("tbody", {}, ...rows.map(row => make("tr", row.false ? { class: "wrong" } : {}, ...[
        [samplers[row.sampler].name, samplers[row.sampler].name], [row.positive, row.positive], [row.negative, row.negative],
        [WORDS[row.false] || "no", WORDS[row.false] || "no"], [number(row.score, 4), row.score],
        [number(row.positiveScore, 4), row.positiveScore], [number(row.rank, 3), row.rank],
        [number(row.prior, 4), row.prior], [number(row.posterior, 4), row.posterior],
      ].map(([text, value], at) => cell(text, value, at))))));
    list.replaceChildren(make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": name }, table));
    enhance(table);
  }

  function update() {
    const user = Number(select.value), wanted = which.value === "" ? null : Number(which.value);
    const all = picks.filter(row => row[0] === user && (wanted === null || row[1] === wanted))
      .map(([, sampler, positive, negative, label, score, positiveScore, rank, prior, posterior]) =>
        ({ sampler, positive: items[positive], negative: items[negative], false: label, score, positiveScore, rank, prior, posterior }));
    const { id, train, hidden } = users[user];
    about.textContent = `User ${id}: ${train} training items, ${hidden} held-out positives. `
      + (known ? "" : "Only held-out positives are known to be false. ");
    redraw = () => draw(all, samplers.map((_, at) => at).filter(at => wanted === null || at === wanted));
    redraw();
    tabulate(only.checked ? all.filter(row => row.false) : all);
  }
  let redraw = null;
  [select, which, only].forEach(control => control.addEventListener("change", update));
  addEventListener("resize", () => redraw());
  update();
});
