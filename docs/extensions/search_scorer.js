// The order of search results: pages that say how to do something come before those that say what was measured.
var Scorer = {
  // for a page that has the words somewhere; a page or heading that is called so keeps its score, which is the highest
  folders: { "get-started": 1, "how-to": 1, reference: 0.9, concepts: 0.7, course: 0.55, results: 0.2 },
  lists: 0.9, // pages that only name others

  score: ([page, title, anchor, description, score, file, kind]) => {
    if (kind !== "text") return score;
    return score * (Scorer.folders[page.split("/")[0]] ?? 1) * (page.endsWith("/index") ? Scorer.lists : 1);
  },

  // these are Sphinx's own
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
