// Sentences to begin with, by the language of the model; `word` is a word with several senses.

const SENTENCES = {
  en: [
    {text: "They sat on the bank of the river and watched the boats.", word: "bank"},
    {text: "The bank raised its interest rate again.", word: "bank"},
    {text: "A crane lifted the steel beams onto the roof.", word: "crane"},
    {text: "The cranes stood on one leg in the marsh.", word: "cranes"},
  ],
  zh: [
    {text: "小米发布了一款新手机。", word: "小米"},
    {text: "这块地种了小米和玉米。", word: "小米"},
    {text: "春天来了，山上的杜鹃开花了。", word: "杜鹃"},
    {text: "他在银行门口等朋友。", word: "银行"},
  ],
};

export function sentences(model) {
  return SENTENCES[model.language] ?? SENTENCES.en;
}

// Where a word is among the words of a text, as this model splits it: a position from a link, or a word of an example. null: nowhere.
export function positionOf(wanted, words) {
  if (typeof wanted === "number") return Number.isInteger(wanted) && wanted >= 0 && wanted < words.length ? wanted : null;
  const found = wanted === null ? -1 : words.findIndex((word) => word.includes(wanted));
  return found < 0 ? null : found;
}
