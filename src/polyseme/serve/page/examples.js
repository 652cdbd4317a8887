// Sentences to begin with, by the language of the model; `word` is the position of a word with several senses.

const SENTENCES = {
  en: [
    {text: "They sat on the bank of the river and watched the boats.", word: 4},
    {text: "The bank raised its interest rate again.", word: 1},
    {text: "A crane lifted the steel beams onto the roof.", word: 1},
    {text: "The cranes stood on one leg in the marsh.", word: 1},
  ],
  zh: [
    {text: "小米发布了一款新手机。", word: 0},
    {text: "这块地种了小米和玉米。", word: 4},
    {text: "春天来了，山上的杜鹃开花了。", word: 6},
    {text: "他在银行门口等朋友。", word: 2},
  ],
};

export function sentences(model) {
  return SENTENCES[model.language] ?? SENTENCES.en;
}
