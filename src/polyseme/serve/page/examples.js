// Sentences to begin with, by the language of the model; `word` is a word with several senses.

import {ask} from "./api.js";
import {joined} from "./dom.js";

const SENTENCES = {
  en: [
    {text: "They sat on the bank of the river and watched the boats.", word: "bank"},
    {text: "The bank raised its interest rate again.", word: "bank"},
    {text: "A crane lifted the steel beams onto the roof.", word: "crane"},
    {text: "The cranes stood on one leg in the marsh.", word: "cranes"},
  ],
  zh: [
    {text: "他给朋友打了一个电话。", word: "打"},
    {text: "他一拳打在墙上。", word: "打"},
    {text: "这次旅行花了很多钱。", word: "花"},
    {text: "这位演员的包袱引得观众大笑。", word: "包袱"},
  ],
};
const MAPPED = {en: "bank", zh: "花"}; // a word whose senses are far apart

export function sentences(model) {
  return SENTENCES[model.language] ?? SENTENCES.en;
}

// The sentence to begin with: an example whose word the searched text has; or else a use of a frequent word of that text.
export async function firstSentence(model, signal) {
  const known = sentences(model);
  if (model.searches !== "corpus") return known[0];
  const {frequent} = await ask("text-words", {model: model.id}, signal);
  const found = known.find(({word}) => frequent.some((each) => each.word === word));
  if (found || !frequent.length) return found ?? known[0];
  const {uses: [use]} = await ask("map", {model: model.id, word: frequent[0].word, count: 1}, signal);
  return {text: joined(use.words), word: use.words[use.position]};
}

// The word of the first map, among those that the text has.
export function mappedWord(model, frequent) {
  return (frequent.find(({word}) => word === MAPPED[model.language]) ?? frequent[0]).word;
}

// Where a word is among the words of a text, as this model splits it: a position from a link, or a word of an example. null: nowhere.
export function positionOf(wanted, words) {
  if (typeof wanted === "number") return Number.isInteger(wanted) && wanted >= 0 && wanted < words.length ? wanted : null;
  const found = wanted === null ? -1 : words.findIndex((word) => word.includes(wanted));
  return found < 0 ? null : found;
}
