// Training: the curves of the runs in a folder (`--runs`), while they go on.

import {get} from "../api.js";
import {chart, mark} from "../chart.js";
import {color, h, replace, svg} from "../dom.js";
import {empty, failure} from "../notices.js";
import {exportBar} from "../saving.js";
import {named, number, t} from "../strings.js";

const CURVES = ["loss", "dev", "speed"], EVERY = 3000, MOST = 8;

export function show(root, {values, signal, note}) {
  const hidden = new Set((values.hide ?? "").split("|").filter(Boolean));
  const place = h("div");
  let timer = 0, last = null;
  root.append(h("p", {class: "lead"}, t("training.lead")), place);

  async function look() {
    try {
      const found = await get("v1/runs", signal);
      const now = JSON.stringify(found);
      if (now !== last) draw(found);
      last = now;
      if (found.folder) timer = setTimeout(look, EVERY);
    } catch (error) {
      if (error.name !== "AbortError") replace(place, failure(error, look));
    }
  }

  function draw(found) {
    if (!found.folder) return replace(place, empty(t("training.none")));
    if (!found.runs.length) return replace(place, empty(t("training.empty")));
    const runs = found.runs.map((run, at) => ({...run, shade: `c${at % MOST}`, hollow: Math.floor(at / MOST) % 2 === 1}));
    const shown = runs.filter((run) => !hidden.has(run.name));
    const charts = CURVES.flatMap((curve) => {
      const drawn = shown.filter((run) => run[curve].points.length);
      const names = [...new Set(drawn.map((run) => run[curve].name))]; // one picture for each kind of score
      return names.map((name) => chart(curve === "dev" ? t("training.score", {name: named("score", name)}) : t(`training.${curve}`), t("training.steps"),
        drawn.filter((run) => run[curve].name === name).map((run) => ({name: run.name, shade: run.shade, hollow: run.hollow, points: run[curve].points}))));
    });
    const at = [...place.querySelectorAll("input")].indexOf(document.activeElement);
    replace(place, table(runs, hidden, () => {
      note({hide: [...hidden].join("|")});
      draw(found);
    }), h("div", {class: "charts"}, charts), !shown.length && empty(t("training.choose")),
    exportBar("training", {picture: charts.length ? () => joinedPicture(charts, shown) : null, rows: () => csvRows(runs)}));
    return place.querySelectorAll("input")[at]?.focus(); // the table is made anew
  }

  look();
  return () => clearTimeout(timer);
}

function table(runs, hidden, changed) {
  const head = ["run", "dev", "loss", "speed", "step", "state"].map((name) => h("th", {scope: "col"}, t(`training.${name}`)));
  const best = ({best: kept, points}) => kept && kept[0] !== points.at(-1)[0] && h("small", null, ` ${t("training.best", {value: number(kept[1], 3), step: number(kept[0])})}`);
  const end = (curve, digits) => (curve.points.length ? number(curve.points.at(-1)[1], digits) : "–");
  const rows = runs.map((run) => {
    const box = h("input", {type: "checkbox", checked: !hidden.has(run.name), onchange: () => {
      if (box.checked) hidden.delete(run.name);
      else hidden.add(run.name);
      changed();
    }});
    const sign = svg("svg", {viewBox: "0 0 18 18", width: 18, height: 18, class: "sign", "aria-hidden": "true"}, mark(9, 9, 6, `var(--${run.shade})`, run.hollow));
    return h("tr", null, h("th", {scope: "row"}, h("label", {class: "run"}, box, sign, run.name)),
      h("td", null, end(run.dev, 3), run.dev.name && h("small", null, ` ${named("score", run.dev.name)}`), best(run.dev)), h("td", null, end(run.loss, 3)),
      h("td", null, end(run.speed, 0)), h("td", null, number(run.step)), h("td", null, run.state === "training" ? h("b", {class: "live"}, t("training.training")) : t(`training.${run.state}`)));
  });
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": t("training.runs")}, h("table", {class: "runs"}, h("thead", null, h("tr", null, head)), h("tbody", null, rows)));
}

// All charts below each other, under the names of the runs.
function joinedPicture(charts, runs) {
  const width = Number(charts[0].getAttribute("viewBox").split(" ")[2]), top = 24 * runs.length + 16;
  const names = runs.flatMap((run, at) => [mark(22, 24 * at + 22, 6, color(run.shade), run.hollow),
    svg("text", {x: 38, y: 24 * at + 27, "font-size": 14, "font-family": "sans-serif", fill: color("ink")}, run.name)]);
  const copies = charts.map((each, at) => {
    const copy = each.cloneNode(true);
    for (const [name, value] of Object.entries({x: 0, y: top + 310 * at, width, height: 300})) copy.setAttribute(name, value);
    return copy;
  });
  const height = top + 310 * charts.length;
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height}, svg("rect", {width, height, fill: color("paper")}), names, copies);
}

function csvRows(runs) {
  return [["run", "curve", "name", "step", "value"], ...runs.flatMap((run) => CURVES.flatMap((curve) =>
    run[curve].points.map(([step, value]) => [run.name, curve, run[curve].name, step, value])))];
}
