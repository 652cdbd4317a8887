// Two sentences: the cosine of every word of one with every word of the other, layer by layer.

import {cosine, vectors} from "../api.js";
import {h, later} from "../dom.js";
import {empty, filler, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {numberIn} from "../state.js";
import {layerName, number, t} from "../strings.js";
import {grid} from "./edit.js";

const FIRST = {
  en: ["They sat on the bank of the river.", "She put her money into the bank."],
  zh: ["小米发布了一款新产品。", "超市里的小米和大米都便宜。"],
};

export function show(root, {model, values, signal, note}) {
  const [one, two] = FIRST[model.language] ?? FIRST.en;
  const state = {one: values.one ?? one, two: values.two ?? two, layer: numberIn(values.layer)};
  const place = h("section", {"aria-live": "polite"});
  const fill = filler(place);
  const field = (name) => {
    const area = h("textarea", {id: name, class: "small", rows: 2, spellcheck: "false", lang: model.language ?? "", value: state[name]});
    area.addEventListener("input", later(400, () => {
      state[name] = area.value;
      look();
    }));
    return h("div", null, h("label", {for: name}, t(`pair.${name}`)), area);
  };

  function look() {
    const remember = () => note({one: state.one, two: state.two, layer: state.layer ?? undefined});
    remember();
    return fill(async () => {
      if (!state.one.trim() || !state.two.trim()) return empty(t("pair.empty"));
      const answer = await vectors(model.id, [state.one, state.two], signal), [first, second] = answer.texts;
      if (!first.words.length || !second.words.length) return empty(t("pair.empty"));
      const layers = first.layers.map((rows, depth) => rows.map((row) => second.layers[depth].map((other) => cosine(row, other))));
      return [warnings(answer), board(first.words, second.words, layers, state, remember)];
    });
  }
  root.append(h("p", {class: "lead"}, t("pair.lead")), h("div", {class: "two"}, field("one"), field("two")), place);
  look();
}

function board(rows, columns, layers, state, remember) {
  const last = layers.length - 1, place = h("div");
  const depth = () => Math.min(Math.max(Math.round(state.layer ?? last), 0), last);
  const draw = () => place.replaceChildren(matrix(rows, columns, layers[depth()]));
  const name = h("output", {for: "depth"});
  const range = h("input", {type: "range", id: "depth", min: 0, max: last, step: 1, value: depth()});
  const told = () => {
    name.textContent = layerName(depth(), last);
    range.setAttribute("aria-valuetext", name.textContent);
  };
  range.addEventListener("input", () => {
    state.layer = Number(range.value);
    told();
    draw();
    remember();
  });
  told();
  draw();
  return [
    last > 0 && h("div", {class: "slider"}, h("label", {for: "depth"}, t("map.layer")), range, name),
    place, h("p", {class: "help"}, t("pair.help")),
    exportBar("pair", {picture: () => grid(columns, rows, layers[depth()], 1, 0),
      rows: () => [["layer", "word", "other", "cosine"], ...layers.flatMap((values, layer) =>
        rows.flatMap((word, at) => columns.map((other, to) => [layer, word, other, values[at][to]])))]}),
  ];
}

function matrix(rows, columns, values) {
  const best = values.map((row) => row.indexOf(Math.max(...row)));
  const head = h("tr", null, h("td"), columns.map((word) => h("th", {scope: "col", class: "said"}, word)));
  const lines = rows.map((word, at) => h("tr", null, h("th", {scope: "row", class: "said"}, word), columns.map((_, to) =>
    h("td", {class: `cell${best[at] === to ? " best" : ""}`, vars: {shade: `${Math.round(100 * Math.max(values[at][to], 0))}%`}}, number(values[at][to], 2)))));
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": t("view.pair")},
    h("table", {class: "matrix"}, h("thead", null, head), h("tbody", null, lines)));
}
