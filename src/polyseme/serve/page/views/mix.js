// Layer mix: a weighted sum of the layers; neighbours and the map of the word follow the sliders.

import {ask} from "../api.js";
import {Cloud} from "../cloud.js";
import {context, h, later, replace} from "../dom.js";
import {firstSentence, positionOf, sentences} from "../examples.js";
import {empty, filler, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {number, t} from "../strings.js";
import {chips, words as wordRow} from "./words.js";

export function show(root, {model, values, tasks, signal, note}) {
  if (!model.endpoints.includes("neighbours")) return void root.append(empty(t("sentence.no.neighbours")));
  if (model.layers < 2) return void root.append(empty(t(model.static ? "static" : "one.layer")));
  const given = (values.weights ?? "").split(",").map(Number);
  const equal = Array.from({length: model.layers}, () => Math.round(1000 / model.layers) / 1000);
  const state = {
    ...(values.text === undefined ? {text: "", word: 0} : {text: values.text, word: Number(values.word ?? 0)}),
    weights: given.length === model.layers && given.every((each) => each >= 0 && each <= 1) ? given : equal, scale: Number(values.scale ?? 1) || 1,
  };
  const input = h("textarea", {id: "text", rows: 1, class: "small", spellcheck: "false", lang: model.language ?? "", value: state.text});
  const row = h("section"), near = h("section", {class: "panel", "aria-live": "polite"}), plane = h("section", {class: "panel"});
  const fillRow = filler(row), fillNear = filler(near), fillPlane = filler(plane);
  let cloud = null, found = null, words = [];

  const remember = () => note({text: state.text, word: state.word, weights: state.weights.join(","), scale: state.scale});
  const look = () => {
    remember();
    neighbours();
    map();
  };
  const follow = later(120, look);

  const start = () => fillRow(async () => {
    if (!state.text.trim()) return empty(t("sentence.empty"));
    const answer = await ask("tokenize", {model: model.id, input: [state.text]}, signal);
    [{words}] = answer.data;
    state.word = positionOf(state.word, words) ?? 0;
    look();
    return [warnings(answer), wordRow(words, {chosen: state.word, choose: (at) => {
      state.word = at;
      look();
    }})];
  });
  input.addEventListener("input", later(400, () => {
    Object.assign(state, {text: input.value, word: 0});
    start();
  }));

  const neighbours = () => fillNear(async () => {
    const body = {model: model.id, text: state.text, position: state.word, weights: state.weights, count: 8};
    if (!state.weights.some(Boolean)) return empty(t("mix.zero"));
    found = await ask("mix", body, signal);
    return [h("h2", null, t("mix.near", {word: words[state.word]})), h("p", {class: "help"}, t("mix.searched", {count: number(found.searched)})),
      h("ol", {class: "found"}, found.in_context.map((each) => h("li", null,
        h("span", {class: "number"}, number(each.cosine, 2)), context(each.words, each.position, 7))))];
  });

  const map = () => fillPlane(async () => {
    if (!state.weights.some(Boolean)) return empty(t("mix.zero"));
    const title = h("h2", null, t("mix.map", {word: words[state.word]}));
    let drawn;
    try {
      drawn = await ask("map", {model: model.id, word: words[state.word], weights: state.weights, count: 2000}, signal);
    } catch (error) {
      if (error.status !== 422 || error.param !== "word") throw error;
      return [title, empty(t("mix.nouse", {word: words[state.word]}))];
    }
    const said = h("p", {class: "said-sentence"}, t("map.hover"));
    cloud?.leave();
    cloud = new Cloud({label: t("map.canvas", {word: drawn.word, uses: number(drawn.uses.length)}), circle: () => {},
      point: (at) => replace(said, at === null ? t("map.hover") : context(drawn.uses[at].words, drawn.uses[at].position, 10))});
    cloud.set({view: {x: 0, y: 0, zoom: Math.min(Math.max(state.scale, 0.5), 3)}});
    cloud.show(drawn.points, drawn.clusters);
    return [title, h("div", {class: "frame"}, cloud.canvas), said];
  });

  root.append(h("p", {class: "lead"}, t("mix.lead")), h("label", {class: "hidden", for: "text"}, t("sentence.input")), input, row,
    sliders(state, model, tasks, follow), h("div", {class: "two"}, near, plane),
    exportBar("mix", {picture: () => (cloud ? cloud.picture() : null), rows: () => [["word", "cosine", "sentence"],
      ...(found?.in_context ?? []).map((each) => [each.word, each.cosine, each.words.join(" ")])]}));
  if (values.text !== undefined) start();
  else {
    firstSentence(model, signal).catch(() => sentences(model)[0]).then((first) => {
      if (signal.aborted || input.value) return;
      Object.assign(state, first);
      input.value = first.text;
      start();
    });
  }
  return () => cloud?.leave();
}

function sliders(state, model, tasks, follow) {
  const learned = tasks.flatMap((task) => Object.entries(task.layer_weights ?? {}).filter(([, weights]) => weights.length === model.layers)
    .map(([place, weights], _, all) => ({name: all.length > 1 ? `${task.id} (${place})` : task.id, weights})));
  const rows = state.weights.map((weight, layer) => {
    const output = h("output", {for: `w${layer}`}, number(weight, 2));
    const range = h("input", {type: "range", id: `w${layer}`, min: 0, max: 1, step: 0.01, value: weight});
    range.addEventListener("input", () => {
      state.weights[layer] = Number(range.value);
      output.textContent = number(state.weights[layer], 2);
      follow();
    });
    const marks = h("span", {class: "marks"}, range, learned.map(({name, weights}, at) => h("span", {class: "learned", title: `${t("mix.learned", {name})}: ${number(weights[layer], 2)}`,
      vars: {at: weights[layer].toFixed(3), hue: `var(--c${at % 8})`}})));
    return {range, output, line: h("div", {class: "slider"}, h("label", {for: `w${layer}`}, layer === 0 ? t("layer.static") : t("layer", {number: layer})), marks, output)};
  });
  const scaled = h("output", {for: "scale"}, number(state.scale, 2));
  const scale = h("input", {type: "range", id: "scale", min: 0.1, max: 3, step: 0.05, value: state.scale});
  scale.addEventListener("input", () => {
    state.scale = Number(scale.value);
    scaled.textContent = number(state.scale, 2);
    follow();
  });
  const set = (weights) => {
    weights.forEach((weight, layer) => {
      state.weights[layer] = Math.round(1000 * weight) / 1000;
      rows[layer].range.value = weight;
      rows[layer].output.textContent = number(weight, 2);
    });
    follow();
  };
  const alone = rows.map((_, layer) => ({name: t("mix.only", {number: layer}), weights: rows.map((_, at) => (at === layer ? 1 : 0))}));
  const all = [...alone, {name: t("mix.mean"), weights: rows.map(() => 1 / rows.length)}, ...learned.map((each) => ({...each, name: t("mix.learned", each)}))];
  const choices = chips(all.map(({name}) => name), (_, at) => set(all[at].weights));
  learned.forEach((_, at) => choices.children[alone.length + 1 + at].prepend(h("span", {class: "learned", vars: {hue: `var(--c${at % 8})`}})));
  return h("section", {class: "panel sliders"}, rows.map(({line}) => line),
    h("div", {class: "slider"}, h("label", {for: "scale"}, t("mix.scale")), scale, scaled), h("p", {class: "help"}, t("mix.help")),
    choices);
}
