// Predictions as drawings: spans on the words, bars for labels, chains of mentions, an answer in its paragraph.

import {gap, h} from "../dom.js";
import {number, percent, t} from "../strings.js";

// Spans of tags (BIO and the like, or one tag a word): [{begin, end, label}]
export function spans(tags) {
  const schemed = tags.some((tag) => /^[BIMESLUW]-/.test(tag));
  const found = [];
  tags.forEach((tag, at) => {
    if (!schemed) {
      if (tag && tag !== "O" && tag !== "_") found.push({begin: at, end: at + 1, label: tag});
      return;
    }
    const [, sign, label] = /^([BIMESLUW])-(.*)$/.exec(tag) ?? [];
    if (!label) return;
    const last = found.at(-1);
    if ("IMEL".includes(sign) && last?.end === at && last.label === label) last.end = at + 1;
    else found.push({begin: at, end: at + 1, label});
  });
  return found;
}

function colors() {
  const known = new Map();
  return (label) => {
    if (!known.has(label)) known.set(label, known.size % 8);
    return `var(--c${known.get(label)})`;
  };
}

const span = (content, label, shade) => h("mark", {vars: {hue: shade}}, content, h("small", null, label));

function tagged(words, tags, shade = colors()) {
  const marks = spans(tags), parts = [];
  let at = 0;
  const plain = (end) => {
    for (; at < end; at += 1) parts.push(gap(words[at - 1], words[at]) + words[at]);
  };
  marks.forEach(({begin, end, label}) => {
    plain(begin);
    parts.push(gap(words[begin - 1], words[begin]));
    const inside = words.slice(begin, end).map((word, place) => (place ? gap(words[begin + place - 1], word) : "") + word).join("");
    parts.push(span(inside, label, shade(label)));
    at = end;
  });
  plain(words.length);
  return h("p", {class: "marked"}, parts);
}

function bars(values) {
  const rows = Object.entries(values).sort(([, one], [, two]) => two - one);
  return h("ol", {class: "found bars"}, rows.map(([label, share]) => h("li", {vars: {part: `${100 * share}%`}},
    h("span", {class: "number"}, percent(share)), h("span", {class: "said"}, label))));
}

function coreference({text, mentions}) {
  const letters = [...text];
  const marks = mentions.flatMap((chain, number) => chain.map(({place}) => ({begin: place[0], end: place[1], chain: number})))
    .sort((one, two) => one.begin - two.begin || two.end - one.end);
  const build = (begin, end, inside) => {
    const parts = [];
    let at = begin;
    while (inside.length) {
      const mark = inside.shift(), within = [];
      if (mark.begin < at) continue;
      while (inside.length && inside[0].begin < mark.end) within.push(inside.shift());
      parts.push(letters.slice(at, mark.begin).join(""));
      parts.push(span(build(mark.begin, mark.end, within.filter((each) => each.end <= mark.end)), String(mark.chain + 1), `var(--c${mark.chain % 8})`));
      at = mark.end;
    }
    parts.push(letters.slice(at, end).join(""));
    return parts;
  };
  return h("p", {class: "marked"}, build(0, letters.length, marks));
}

function answer({text, answer: said, place, score}) {
  const [question, ...rest] = text.split("\t"), letters = [...rest.join("\t")];
  const paragraph = place === null ? letters.join("")
    : [letters.slice(0, place[0]).join(""), span(letters.slice(...place).join(""), number(score, 2), "var(--c0)"), letters.slice(place[1]).join("")];
  return [h("h3", null, question), h("p", {class: "marked"}, paragraph), place === null && h("p", {class: "help"}, t("tasks.no.answer", {said}))];
}

export function drawn(found, line) {
  return h("article", {class: "panel"}, content(found, line));
}

function content(found, line) {
  if (found.mentions) return coreference(found);
  if (found.predicates) {
    const shade = colors();
    return found.predicates.length ? found.predicates.map(({index, tags}) => [h("h3", null, found.words[index]), tagged(found.words, tags, shade)]) : h("p", null, line);
  }
  if (found.tags) return tagged(found.words, found.tags);
  if (Array.isArray(found.probabilities)) {
    const choices = line.split("\t").slice(-found.probabilities.length);
    return [h("p", {class: "marked"}, line.split("\t")[0]), bars(Object.fromEntries(found.probabilities.map((share, at) => [`${at + 1}. ${choices[at] ?? ""}`, share])))];
  }
  if (found.probabilities) return [h("p", {class: "marked"}, line.replaceAll("\t", " / ")), bars(found.probabilities)];
  if ("place" in found) return answer(found);
  if ("score" in found) return [h("p", {class: "marked"}, line.replaceAll("\t", " / ")), h("p", null, number(found.score, 3))];
  const rest = Object.entries(found).filter(([name]) => name !== "index");
  return h("dl", null, rest.map(([name, value]) => [h("dt", null, name), h("dd", null, typeof value === "string" ? value : JSON.stringify(value))]));
}
