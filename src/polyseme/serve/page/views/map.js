// Sense map: all uses of a word as points; a slider walks through the layers.

import {ask} from "../api.js";
import {Cloud, sign} from "../cloud.js";
import {context, h, joined, replace} from "../dom.js";
import {mappedWord} from "../examples.js";
import {empty, filler} from "../notices.js";
import {exportBar} from "../saving.js";
import {numberIn} from "../state.js";
import {layerName, number, t} from "../strings.js";
import {ownText} from "./owntext.js";

const LISTED = 200, LINKED = 1500; // sentences in the list; letters of a text that still go into a link
const kept = {text: null}; // the reader's own text, also when another view was open in between

export function show(root, {model, values, signal, note}) {
  if (values.text !== undefined) kept.text = values.text;
  const state = {word: values.word ?? null, layer: numberIn(values.layer), groups: /^[1-8]$/.test(values.groups) ? values.groups : ""};
  const suggestions = h("div", {class: "chips", role: "group", "aria-label": t("map.words")});
  const field = h("input", {id: "word", type: "text", size: 14, autocomplete: "off", lang: model.language ?? "", value: state.word ?? ""});
  const place = h("div", {class: "map-place"});
  const fillPlace = filler(place), fillWords = filler(suggestions);
  let leave = null;

  function remember() {
    const text = kept.text !== null && kept.text.length <= LINKED ? kept.text : undefined;
    note({word: state.word, layer: state.layer ?? undefined, groups: state.groups, text});
  }

  const asked = () => ({model: model.id, ...(kept.text === null ? {} : {text: kept.text})});

  async function wordChips() {
    const found = await ask("text-words", asked(), signal);
    if (state.word === null && found.frequent.length) {
      state.word = mappedWord(model, found.frequent);
      field.value = state.word;
      look();
    }
    if (state.word === null) replace(place, empty(t("map.empty")));
    const size = t(`map.source.${found.source}`, {sentences: number(found.sentences), words: number(found.words)});
    return [h("p", {class: "help"}, size), ...found.frequent.slice(0, 24).map(({word, uses}) =>
      h("button", {type: "button", class: "chip", onclick: () => {
        field.value = state.word = word;
        state.groups = "";
        look();
      }}, word, h("small", null, ` ${number(uses)}`)))];
  }

  function look() {
    remember();
    if (!state.word) return replace(place, empty(t("map.empty")));
    return fillPlace(async () => {
      const body = {...asked(), word: state.word, count: 10000, ...(state.groups ? {groups: Number(state.groups)} : {})};
      let found;
      try {
        found = await ask("map", body, signal);
      } catch (error) {
        if (error.status !== 422 || error.param !== "word") throw error;
        leave?.();
        return empty(t("mix.nouse", {word: state.word}));
      }
      leave?.();
      const board = mapBoard(found, state, {remember, regroup: look, model});
      ({leave} = board);
      return board.parts;
    });
  }

  const form = h("form", {class: "ask", onsubmit: (event) => {
    event.preventDefault();
    state.word = field.value.trim();
    state.groups = "";
    look();
  }}, h("label", {for: "word"}, t("map.word")), field, h("button", {class: "main"}, t("show")));
  root.append(h("p", {class: "lead"}, t("map.lead")), form, suggestions, ownText(root, kept.text, (text) => {
    kept.text = text;
    state.word = null;
    field.value = "";
    replace(place);
    start();
  }), place);

  function start() {
    fillWords(wordChips);
    if (state.word !== null) look();
  }
  start();
  return () => leave?.();
}

function mapBoard(found, state, {remember, regroup, model}) {
  const last = found.points.length - 1;
  const said = h("p", {class: "said-sentence", "aria-live": "polite"}, t("map.hover"));
  const list = h("section", {class: "uses"});
  const cloud = new Cloud({
    label: t("map.canvas", {word: found.word, uses: number(found.uses.length)}),
    point: (at) => replace(said, at === null ? t("map.hover") : [sign(found.clusters[at]), context(found.uses[at].words, found.uses[at].position, 14)]),
    circle: (numbers) => {
      cloud.set({marked: numbers?.length ? new Set(numbers) : null});
      listed(numbers?.length ? numbers : null);
    },
  });
  const {slider, stop} = layerSlider(cloud, state, last, remember, model);
  const legend = groupLegend(found, (group) => {
    cloud.set({only: group, marked: null});
    listed(group === null ? null : found.clusters.flatMap((each, at) => (each === group ? [at] : [])));
  });

  function listed(numbers) {
    if (!numbers) return replace(list, h("p", {class: "help"}, t("map.choose")));
    return replace(list, h("h2", null, t("map.chosen", {count: number(numbers.length)})),
      h("ol", {class: "found"}, numbers.slice(0, LISTED).map((at) => h("li", null, sign(found.clusters[at]),
        context(found.uses[at].words, found.uses[at].position, 16)))),
      numbers.length > LISTED && h("p", {class: "help"}, t("map.more", {count: number(numbers.length - LISTED)})));
  }

  cloud.set({depth: cloudDepth(state, last)});
  cloud.show(found.points, found.clusters, new Map(found.groups.map((group) => [group.number, group.label.slice(0, 2).join(" · ")])));
  listed(null);
  const shown = found.total > found.uses.length ? "map.some" : "map.all";
  return {leave: () => {
    stop();
    cloud.leave();
  }, parts: [
    h("div", {class: "board"},
      h("div", {class: "stage"}, h("div", {class: "frame"}, tools(cloud), cloud.canvas), said, slider),
      h("aside", {class: "panel"},
        h("h2", null, found.word), h("p", {class: "help"}, t(shown, {count: number(found.uses.length), total: number(found.total)})),
        legend, groupCount(state, regroup))),
    list,
    exportBar(`map-${found.word}`, {picture: () => cloud.picture(), rows: () => csvRows(found)}),
  ]};
}

function layerSlider(cloud, state, last, remember, model) {
  if (last < 1) return {slider: h("p", {class: "help"}, t(model.static ? "static" : "one.layer")), stop: () => {}};
  const range = h("input", {type: "range", id: "layer", min: 0, max: last, step: 0.05, value: cloudDepth(state, last)});
  const name = h("output", {for: "layer"});
  let frame = 0;
  const walk = (depth) => {
    state.layer = Math.round(100 * depth) / 100;
    cloud.set({depth});
    name.textContent = layerName(Math.round(depth), last);
    range.setAttribute("aria-valuetext", name.textContent);
  };
  const stop = () => cancelAnimationFrame(frame);
  range.addEventListener("input", () => {
    stop();
    walk(Number(range.value));
    remember();
  });
  const play = h("button", {type: "button", onclick: () => {
    stop();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      range.value = state.layer >= last ? 0 : Math.floor(state.layer) + 1;
      walk(Number(range.value));
      return;
    }
    let begin = null;
    const step = (now) => {
      begin ??= now;
      const share = Math.min((now - begin) / (1500 * last), 1);
      range.value = share * last;
      walk(share * last);
      if (share < 1) frame = requestAnimationFrame(step);
      else remember();
    };
    frame = requestAnimationFrame(step);
  }}, t("map.play"));
  walk(Number(range.value));
  return {slider: h("div", {class: "slider"}, play, h("label", {class: "hidden", for: "layer"}, t("map.layer")), range, name), stop};
}

const cloudDepth = (state, last) => Math.min(Math.max(state.layer ?? last, 0), last);

function tools(cloud) {
  const lasso = h("button", {type: "button", "aria-pressed": "false", onclick: () => {
    cloud.circling = !cloud.circling;
    lasso.setAttribute("aria-pressed", String(cloud.circling));
  }}, t("map.lasso"));
  const zoom = (label, text, factor) => h("button", {type: "button", "aria-label": t(label), onclick: () => cloud.zoomBy(factor)}, text);
  return h("div", {class: "tools"}, lasso, zoom("map.nearer", "+", 1.4), zoom("map.farther", "−", 1 / 1.4),
    h("button", {type: "button", onclick: () => cloud.set({view: {x: 0, y: 0, zoom: 1}})}, t("map.reset")));
}

function groupLegend(found, choose) {
  const buttons = found.groups.map((group) => h("button", {type: "button", class: "group", "aria-pressed": "false", onclick: () => {
    const on = buttons[group.number].getAttribute("aria-pressed") === "true";
    buttons.forEach((each, number) => each.setAttribute("aria-pressed", String(!on && number === group.number)));
    choose(on ? null : group.number);
  }}, sign(group.number), h("span", {class: "said"}, group.label.join(" · ") || t("map.unlabelled")), h("small", null, number(group.uses))));
  return h("div", {class: "groups", role: "group", "aria-label": t("map.groups")}, buttons);
}

function groupCount(state, regroup) {
  const choice = h("select", {id: "groups", onchange: () => {
    state.groups = choice.value;
    regroup();
  }}, h("option", {value: "", selected: state.groups === ""}, t("map.auto")),
  [1, 2, 3, 4, 5, 6, 7, 8].map((count) => h("option", {value: count, selected: state.groups === String(count)}, count)));
  return h("label", {class: "field"}, t("map.count"), choice);
}

function csvRows(found) {
  const layers = found.points.map((_, layer) => [`x${layer}`, `y${layer}`]).flat();
  return [["group", "position", "sentence", ...layers], ...found.uses.map((use, at) =>
    [found.clusters[at], use.position, joined(use.words), ...found.points.map((layer) => layer[at]).flat()])];
}
