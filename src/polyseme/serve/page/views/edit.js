// Edit and watch: change one word of a sentence, and see whose vectors move, and how far, layer by layer.

import {ask, cosine, vectors} from "../api.js";
import {color, h, later, replace, svg} from "../dom.js";
import {positionOf, sentences} from "../examples.js";
import {empty, filler, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {number, t} from "../strings.js";
import {chips, words as wordRow} from "./words.js";

const FIRST = {en: {text: "They walked along the bank until it was dark.", word: "bank", to: "street"},
  zh: {text: "他给朋友打了一个电话。", word: "打", to: "买"}};

export function show(root, {model, values, signal, note}) {
  const first = FIRST[model.language] ?? FIRST.en;
  const state = values.text === undefined ? {...first}
    : {text: values.text, word: values.word === undefined ? null : Number(values.word), to: values.to ?? ""};
  const input = h("textarea", {id: "text", rows: 2, spellcheck: "false", lang: model.language ?? "", value: state.text});
  const place = h("section", {class: "reading"}), result = h("section", {"aria-live": "polite"});
  const fillPlace = filler(place), fillResult = filler(result);

  const remember = () => note({text: state.text, word: Number.isInteger(state.word) ? state.word : undefined, to: state.to});
  input.addEventListener("input", later(400, () => {
    Object.assign(state, {text: input.value, word: null, to: ""});
    start();
  }));

  async function start() {
    remember();
    replace(result);
    await fillPlace(async () => {
      if (!state.text.trim()) return empty(t("sentence.empty"));
      const answer = await ask("tokenize", {model: model.id, input: [state.text]}, signal), [{words}] = answer.data;
      state.word = positionOf(state.word, words);
      const editor = h("div", {class: "editor"});
      const choose = (at) => {
        if (at !== state.word) state.to = "";
        state.word = at;
        edit(editor, words);
      };
      const row = wordRow(words, {chosen: state.word, choose});
      if (state.word !== null) edit(editor, words);
      else replace(editor, empty(t("edit.choose")));
      return [warnings(answer), row, editor];
    });
  }

  function edit(editor, words) {
    remember();
    const field = h("input", {id: "to", type: "text", value: state.to, autocomplete: "off", lang: model.language ?? ""});
    const offered = h("span");
    const changed = () => {
      state.to = field.value.trim();
      remember();
      compare(words);
    };
    field.addEventListener("input", later(350, changed));
    replace(editor, h("div", {class: "ask"}, h("label", {for: "to"}, t("edit.instead", {word: words[state.word]})), field), offered);
    compare(words);
    if (model.endpoints.includes("substitutes")) {
      ask("substitutes", {model: model.id, text: words, position: state.word, count: 9}, signal).then((found) => {
        const others = found.substitutes.map((each) => each.word).filter((word) => word !== words[state.word]).slice(0, 7);
        replace(offered, chips(others, (word) => {
          field.value = word;
          changed();
        }));
      }, () => {});
    }
  }

  async function compare(words) {
    if (!state.to) return replace(result, empty(t("edit.type")));
    await fillResult(async () => {
      const other = words.map((word, at) => (at === state.word ? state.to : word));
      const {texts: [before, after]} = await vectors(model.id, [words, other], signal);
      const moved = before.layers.map((layer, depth) => layer.map((vector, at) => Math.max(1 - cosine(vector, after.layers[depth][at]), 0)));
      return picture(words, state, moved);
    });
    const cell = result.querySelector(".changed"), region = cell?.closest(".scroll");
    if (region) region.scrollLeft = cell.offsetLeft - (region.clientWidth - cell.offsetWidth) / 2; // it may be wider than a phone
    return result;
  }

  root.append(h("p", {class: "lead"}, t("edit.lead")), h("label", {class: "hidden", for: "text"}, t("sentence.input")), input,
    chips([first.text, ...sentences(model).slice(1, 3).map(({text}) => text)], (text, at) => {
      input.value = text;
      Object.assign(state, at === 0 ? first : {text, word: sentences(model)[at].word, to: ""});
      start();
    }), place, result);
  start();
}

const shown = (words, state) => words.map((word, at) => (at === state.word ? `${word} → ${state.to}` : word));

function picture(words, state, moved) {
  const depths = moved.map((_, depth) => depth).reverse(); // the top layer first, as it lies on top
  const named = shown(words, state);
  const most = Math.max(...moved.flatMap((layer) => layer.filter((_, at) => at !== state.word)), 0.05);
  const shade = (value) => `${Math.round(100 * Math.min(value / most, 1))}%`;
  const head = h("tr", null, h("th", {scope: "col"}, t("map.layer")), named.map((word, at) => h("th", {scope: "col", class: at === state.word ? "said changed" : "said"}, word)));
  const rows = depths.map((depth) => h("tr", null, h("th", {scope: "row"}, t("layer", {number: depth})), named.map((_, at) =>
    h("td", {class: "cell", vars: {shade: shade(moved[depth][at])}}, number(moved[depth][at], 2)))));
  return [
    h("h2", null, t("edit.result")), h("p", {class: "help"}, t("edit.help"), moved.length > 1 && t("edit.layers")),
    h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": t("edit.result")}, h("table", {class: "matrix"}, h("thead", null, head), h("tbody", null, rows))),
    h("p", null, farthest(words, state, moved)),
    exportBar("edit", {picture: () => grid(named, depths.map((depth) => t("layer", {number: depth})), depths.map((depth) => moved[depth]), most),
      rows: () => [["position", "word", ...moved.map((_, depth) => `layer_${depth}`)],
        ...words.map((word, at) => [at, named[at], ...moved.map((layer) => layer[at])])]}),
  ];
}

function farthest(words, state, moved) {
  const top = moved.at(-1).map((value, at) => ({value, at})).filter(({at}) => at !== state.word).sort((one, two) => two.value - one.value);
  if (!top.length || top[0].value < 0.005) return t("edit.nothing");
  return t("edit.most", {words: top.slice(0, 3).filter(({value}) => value >= 0.005).map(({at}) => `“${words[at]}”`).join(t("and"))});
}

// A table of numbers as a picture.
export function grid(columns, names, values, most, low = 0) {
  const wide = (text) => [...text].reduce((sum, letter) => sum + (letter.charCodeAt(0) > 0x2e80 ? 16 : 8.5), 0);
  const label = Math.max(...names.map(wide)) + 20, widths = columns.map((word) => Math.max(wide(word) + 14, 48));
  const width = label + widths.reduce((sum, each) => sum + each, 0) + 12, height = 44 + 32 * names.length + 10;
  const text = (x, y, said, anchor = "middle", size = 15) => svg("text", {x, y, "font-size": size, "text-anchor": anchor,
    fill: color("ink"), "font-family": "Georgia, 'Noto Serif CJK SC', serif"}, said);
  const parts = [svg("rect", {width, height, fill: color("paper")})];
  names.forEach((name, row) => parts.push(text(10, 44 + 32 * row + 20, name, "start", 14)));
  let x = label;
  columns.forEach((word, column) => {
    parts.push(text(x + widths[column] / 2, 30, word));
    values.forEach((row, at) => {
      const share = Math.min(Math.max((row[column] - low) / (most - low), 0), 1);
      parts.push(svg("rect", {x: x + 2, y: 44 + 32 * at, width: widths[column] - 4, height: 28, rx: 4, fill: color("accent"), "fill-opacity": 0.05 + 0.55 * share}));
      parts.push(text(x + widths[column] / 2, 44 + 32 * at + 19, number(row[column], 2), "middle", 12));
    });
    x += widths[column];
  });
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height}, parts);
}

