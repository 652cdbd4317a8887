// Compare models: one question to every loaded model, in columns.

import {ask} from "../api.js";
import {context, cropped, h, replace} from "../dom.js";
import {empty, failure, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {snapshot} from "../snapshot.js";
import {currentLanguage, named, number, percent, t} from "../strings.js";

const HISTORY = ["ngram", "nnlm", "word2vec", "fasttext", "glove", "taglm", "elmo", "ulmfit", "gpt", "bert"];
const QUESTIONS = ["similar", "neighbours", "gap", "next", "score"];
const FIRST = {
  en: {similar: "bank", neighbours: "They sat on the [bank] of the river.", gap: "They sat on the [ ] of the river.", next: "They sat on the", score: "They sat on the bank of the river."},
  zh: {similar: "医生", neighbours: "[小米]发布了一款新产品。", gap: "他给朋友[ ]了一个电话。", next: "他给朋友打了一个", score: "他给朋友打了一个电话。"},
};
const MARKED = ["neighbours", "gap"]; // questions about a word in brackets
// which endpoint answers a question; a model needs one of them
const NEEDS = {similar: ["similar"], neighbours: ["neighbours"], gap: ["substitutes", "fill"], next: ["next"], score: ["score"]};

const byHistory = (one, two) => (HISTORY.indexOf(one.kind) + 1 || 99) - (HISTORY.indexOf(two.kind) + 1 || 99);
const isChinese = (text) => /[\u3400-\u9fff]/.test(text);
// Whether a model is of another language than the text.
const isForeign = (model, text) => model.language !== null && (model.language === "zh") !== isChinese(text);

export function show(root, {models: loaded, values, signal, note}) {
  const models = [...loaded].sort(byHistory);
  const examples = FIRST[currentLanguage()];
  const state = {question: QUESTIONS.includes(values.question) ? values.question : "gap", text: values.text};
  state.text ??= examples[state.question];
  const input = h("input", {id: "text", type: "text", class: "wide", autocomplete: "off", value: state.text});
  const help = h("p", {class: "help"}), columns = h("div", {class: "line-columns", "aria-live": "polite"}), bar = h("div");
  const tabs = QUESTIONS.map((name) => h("button", {type: "button", class: "chip", onclick: () => {
    Object.assign(state, {question: name, text: examples[name]});
    input.value = state.text;
    look();
  }}, t(`line.${name}`)));
  let latest = 0;

  function look() {
    note({question: state.question, text: state.text});
    tabs.forEach((tab, at) => tab.setAttribute("aria-pressed", String(QUESTIONS[at] === state.question)));
    help.textContent = t(`line.help.${state.question}`);
    latest += 1;
    const mine = latest, rows = [];
    replace(bar);
    if (!state.text.trim()) return replace(columns, empty(t("line.empty")));
    if (MARKED.includes(state.question) && !cut(state.text)) return replace(columns, empty(t("line.no.mark")));
    replace(columns, models.map((model) => {
      const panel = h("section", {class: "panel"}), place = h("div");
      replace(panel, h("h2", null, model.id), h("p", {class: "help"}, named("kind", model.kind)), place);
      const put = async () => {
        panel.setAttribute("aria-busy", "true");
        replace(place, h("p", {class: "waiting"}, t("working")));
        const content = await answered(model, rows);
        if (content === null || mine !== latest) return;
        replace(place, content);
        panel.removeAttribute("aria-busy");
      };
      if (NEEDS[state.question].every((name) => !model.endpoints.includes(name))) replace(place, h("p", {class: "help"}, t(`line.no.${state.question}`)));
      else if (!isForeign(model, state.text)) put();
      else replace(place, h("p", {class: "help"}, t(`line.foreign.${model.language}`)), h("button", {type: "button", onclick: put}, t("line.anyway")));
      return panel;
    }));
    return replace(bar, exportBar(`line-${state.question}`, {picture: () => snapshot(columns), rows: () => [["model", "kind", "answer", "value"], ...rows]}));
  }

  async function answered(model, rows) {
    try {
      const found = await answers(model, state, signal);
      found.rows.forEach((row) => rows.push([model.id, model.kind, ...row]));
      return found.content;
    } catch (error) {
      if (error.name === "AbortError") return null;
      return state.question === "similar" && error.status === 422 ? empty(t("sentence.unknown")) : failure(error);
    }
  }

  root.append(h("p", {class: "lead"}, t("line.lead")), h("div", {class: "chips", role: "group", "aria-label": t("line.question")}, tabs),
    h("form", {class: "ask", onsubmit: (event) => {
      event.preventDefault();
      state.text = input.value;
      look();
    }}, h("label", {class: "hidden", for: "text"}, t("line.text")), input, h("button", {class: "main"}, t("line.ask"))), help, columns, bar);
  look();
}

const listed = (answer, pairs, shape) => ({
  content: [warnings(answer), pairs.length ? h("ol", {class: "found"}, pairs.map(([word, value]) => h("li", null, h("span", {class: "number"}, shape(value)), h("span", {class: "said"}, cropped(word))))) : empty(t("sentence.none"))],
  rows: pairs,
});

async function answers(model, {question, text}, signal) {
  const cos = (value) => number(value, 2);
  if (question === "similar") {
    const found = await ask("similar", {model: model.id, word: text.trim(), count: 10}, signal);
    return listed(found, found.similar.map((each) => [each.word, each.cosine]), cos);
  }
  if (question === "next") {
    const found = await ask("next", {model: model.id, text, count: 10}, signal);
    return listed(found, found.next.map((each) => [each.word, each.probability]), percent);
  }
  if (question === "score") {
    const answer = await ask("score", {model: model.id, input: [text]}, signal), [found] = answer.data;
    return {content: [warnings(answer), h("p", {class: "big"}, number(found.perplexity, 1), h("small", null, ` ${t("line.perplexity")}`))], rows: [["perplexity", found.perplexity]]};
  }
  if (question === "neighbours") return neighbours(model, text, signal);
  return filled(model, text, signal);
}

async function neighbours(model, text, signal) {
  const {plain, position} = await marked(model, text, signal);
  const found = await ask("neighbours", {model: model.id, text: plain, position, count: 6}, signal);
  if (!found.in_context.length) return listed(found, found.by_itself.map((each) => [each.word, each.cosine]), (value) => number(value, 2));
  return {content: [warnings(found), h("ol", {class: "found"}, found.in_context.map((each) => h("li", null, h("span", {class: "number"}, number(each.cosine, 2)), context(each.words, each.position, 5))))],
    rows: found.in_context.map((each) => [each.words.join(" "), each.cosine])};
}

async function filled(model, text, signal) {
  const [before, after] = cut(text);
  if (model.endpoints.includes("fill")) {
    const found = await ask("fill", {model: model.id, text: `${before}[MASK]${after}`, count: 10}, signal);
    return listed(found, found.fillings[0].map((each) => [each.piece, each.probability]), percent);
  }
  const {data: [left, right]} = await ask("tokenize", {model: model.id, input: [before, after]}, signal);
  const found = await ask("substitutes", {model: model.id, text: [...left.words, "…", ...right.words], position: left.words.length, count: 10}, signal);
  return listed(found, found.substitutes.map((each) => [each.word, each.probability]), percent);
}

// What is before and after the brackets, and in them; null: there are none.
function cut(text) {
  const found = /\[[^\]]*\]/.exec(text);
  return found && [text.slice(0, found.index), text.slice(found.index + found[0].length), found[0].slice(1, -1)];
}

// The word in brackets: where it is among the words of the model.
async function marked(model, text, signal) {
  const [before, after, word] = cut(text), plain = before + word + after;
  const {data: [{words, offsets}]} = await ask("tokenize", {model: model.id, input: [plain]}, signal);
  const begin = [...before].length;
  const position = offsets ? offsets.findIndex(([, end]) => end > begin) : words.indexOf(word);
  return {plain, position: Math.max(position, 0)};
}
