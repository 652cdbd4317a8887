// Sentence: how surprising each word is, and for a chosen word its neighbours with and without context, and what else fits.

import {ask} from "../api.js";
import {context, cropped, h, later, replace} from "../dom.js";
import {firstSentence, positionOf, sentences} from "../examples.js";
import {empty, filler, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {address} from "../state.js";
import {number, percent, t} from "../strings.js";
import {shade, strip} from "./strip.js";
import {chips, words as wordRow} from "./words.js";

const SIDES = ["left", "right", "both"];

export function show(root, {model, values, signal, note}) {
  const state = values.text === undefined ? {text: "", word: null} : {text: values.text, word: values.word === undefined ? null : Number(values.word)};
  const input = h("textarea", {id: "text", rows: 2, spellcheck: "false", lang: model.language ?? "", value: state.text});
  const place = h("section", {class: "reading"});
  const details = h("section", {class: "details", "aria-live": "polite"});
  const fillReading = filler(place), fillDetails = filler(details);
  const can = (what) => model.endpoints.includes(what);
  let reads = 0;

  const changed = later(350, () => {
    state.text = input.value;
    state.word = null;
    read();
  });
  input.addEventListener("input", changed);
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    changed.cancel();
    state.text = input.value;
    read();
  });

  const remember = () => note({text: state.text, word: Number.isInteger(state.word) ? state.word : undefined});

  function choose(position) {
    state.word = position;
    remember();
    look();
  }

  async function reading() {
    const {text} = state;
    if (!text.trim()) return empty(t("sentence.empty"));
    const answer = await (can("score") ? ask("surprise", {model: model.id, text}, signal) : ask("tokenize", {model: model.id, input: [text]}, signal));
    const found = answer.data?.[0] ?? answer;
    if (!found.words.length) return empty(t("sentence.empty"));
    if (text !== state.text) return null; // another text was typed meanwhile
    state.word = positionOf(state.word, found.words);
    remember();
    const sides = SIDES.filter((side) => found[side]);
    const key = sides.length > 0 && h("div", {class: "word sides", "aria-hidden": "true"}, h("span", {class: "said"}, "\u00a0"),
      sides.map((side) => h("span", {class: "bits"}, t(`sentence.${side}`))));
    const row = wordRow(found.words, {chosen: state.word, choose, key, below: (at) => sides.map((side) =>
      h("span", {class: "bits", vars: {shade: shade(found[side][at])}, title: t(`sentence.${side}`)},
        found[side][at] === null ? "–" : number(found[side][at], 1)))});
    const bar = exportBar("sentence", {
      picture: sides.length ? () => strip(found, sides) : null,
      rows: () => [["position", "word", ...sides.map((side) => `${side}_bits`)],
        ...found.words.map((word, at) => [at, word, ...sides.map((side) => found[side][at])])],
    });
    if (!sides.length) return [warnings(answer), row, h("p", {class: "help"}, t("sentence.no.score")), bar];
    const unknown = sides.some((side) => found[side].includes(null));
    return [warnings(answer), row, legend(unknown), bar];
  }

  function read() {
    remember();
    replace(details);
    reads += 1;
    const mine = reads;
    const filled = fillReading(reading); // asked first: what it computes answers the question of substitutes, too
    const early = Number.isInteger(state.word) && state.text.trim() ? aboutWord() : null; // the answers come one after another anyway
    early?.catch(() => {});
    filled.then(() => mine === reads && look(early));
  }

  function aboutWord() {
    const asked = {model: model.id, text: state.text, position: state.word};
    return Promise.all([
      can("neighbours") ? ask("neighbours", {...asked, count: 8}, signal) : null,
      can("substitutes") ? ask("substitutes", {...asked, count: 10}, signal) : null,
    ]);
  }

  async function detail(answers) {
    const [near, fits] = await answers;
    const word = (near ?? fits)?.words[state.word] ?? "";
    return [
      h("div", {class: "columns"},
        panel(t("sentence.context"), t("sentence.context.help", {word}), inContext(near, model)),
        panel(t("sentence.alone"), t("sentence.alone.help", {word}), alone(near, model)),
        panel(t("sentence.fits"), t("sentence.fits.help", {word}), fitting(fits, word))),
      h("p", {class: "onward"},
        near && h("a", {href: address("map", {model: model.id, word})}, t("sentence.map", {word})),
        exportBar(`sentence-${word}`, {rows: () => detailRows(near, fits)})),
    ];
  }

  function look(early = null) {
    if (place.querySelector(".words") === null) return replace(details);
    if (state.word === null) return replace(details, empty(t("sentence.choose")));
    return fillDetails(() => {
      const answers = early ?? aboutWord();
      early = null; // a second try asks again
      return detail(answers);
    });
  }

  root.append(
    h("p", {class: "lead"}, t("sentence.lead")),
    h("label", {class: "hidden", for: "text"}, t("sentence.input")), input,
    chips(sentences(model).map(({text}) => text), (text, at) => {
      Object.assign(state, sentences(model)[at]);
      input.value = text;
      read();
    }),
    place, details);
  if (values.text !== undefined) return void read();
  return void firstSentence(model, signal).catch(() => sentences(model)[0]).then((first) => {
    if (signal.aborted || input.value) return; // another view is open, or somebody types already
    Object.assign(state, first);
    input.value = first.text;
    read();
  });
}

function legend(unknown) {
  const scale = [0, 4, 8, 12, 16].map((bits) => h("span", {class: "bits", vars: {shade: shade(bits)}}, bits));
  return h("div", {class: "legend"},
    h("h2", null, t("sentence.surprise")),
    h("p", {class: "help"}, t("sentence.surprise.help")),
    h("p", {class: "scale"}, t("sentence.expected"), h("span", {class: "ramp"}, scale), t("sentence.surprising")),
    unknown && h("p", {class: "help"}, t("sentence.outside")));
}

function panel(title, help, content) {
  return h("section", {class: "panel"}, h("h2", null, title), h("p", {class: "help"}, help), content);
}

function inContext(near, model) {
  if (model.static) return empty(t("static"));
  if (!near) return empty(t("sentence.no.neighbours"));
  if (!near.in_context.length) return empty(t("sentence.none"));
  return h("ol", {class: "found"}, near.in_context.map((each) => h("li", null,
    h("span", {class: "number"}, number(each.cosine, 2)), context(each.words, each.position))));
}

function alone(near, model) {
  if (!model.endpoints.includes("similar")) return empty(t("line.no.similar"));
  if (!near) return empty(t("sentence.no.neighbours"));
  if (!near.by_itself.length) return empty(t("sentence.unknown"));
  return h("ol", {class: "found"}, near.by_itself.map((each) => h("li", null,
    h("span", {class: "number"}, number(each.cosine, 2)), h("span", {class: "said"}, cropped(each.word)))));
}

function fitting(fits, word) {
  if (!fits) return empty(t("sentence.no.fits"));
  const most = fits.substitutes[0]?.probability ?? 1;
  return h("ol", {class: "found bars"}, fits.substitutes.map((each) => h("li", {vars: {part: `${100 * each.probability / most}%`}},
    h("span", {class: "number"}, percent(each.probability)),
    h("span", {class: "said"}, each.word.toLowerCase() === word.toLowerCase() ? h("b", null, each.word) : each.word))));
}

function detailRows(near, fits) {
  return [["kind", "word", "value", "sentence"],
    ...(near?.in_context ?? []).map((each) => ["in_context", each.word, each.cosine, each.words.join(" ")]),
    ...(near?.by_itself ?? []).map((each) => ["by_itself", each.word, each.cosine, ""]),
    ...(fits?.substitutes ?? []).map((each) => ["substitute", each.word, each.probability, ""])];
}
