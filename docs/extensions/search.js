// The search page: the order of the results, pages that have most of the words of a question, and what they say about it.
var Scorer = {
  // for a page that has the words, or a heading that is called so; a page that is called so comes first
  folders: { "get-started": 1, "how-to": 1, reference: 0.9, concepts: 0.7, course: 0.55, results: 0.2 },
  lists: 0.9, // pages that only name others
  answers: 0.99, // the short answers come after a page about the same
  parts: 0.6, // pages that have the parts of a word, but not the word
  most: 0.5, // pages that have most of the words, if few have all
  heading: 2, // pages with a heading that has the word, but for results, whose headings are questions

  score: ([page, title, anchor, description, score, file, kind]) => {
    const heading = kind === "title" && title.includes(" > ");
    if (kind !== "text" && !heading) return kind === "title" ? score * Scorer.heading : score;
    const room = page.endsWith("/index") ? Scorer.lists : page.endsWith("/faq") ? Scorer.answers : 1;
    return score * (Scorer.folders[page.split("/")[0]] ?? 1) * room;
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

{
  const CHINESE = document.documentElement.lang?.startsWith("zh");
  const FEW = 3, MOST = 0.5, LENGTH = CHINESE ? 140 : 240;

  // what readers type, and the words of the pages for it
  const SYNONYMS = CHINESE
    ? { license: "许可证", licence: "许可证", huggingface: "Hugging Face", ram: "内存" }
    : { license: "licence", huggingface: "Hugging Face", ram: "memory" };
  const parseQuery = Search._parseQuery;
  Search._parseQuery = (query) => {
    const synonym = (word) => (Object.hasOwn(SYNONYMS, word.toLowerCase()) ? SYNONYMS[word.toLowerCase()] : word);
    return parseQuery(query.replace(/\w+/g, synonym));
  };

  // words that readers type where no page is called so, and the page that answers them first, with the title of its section
  const senses = ["how-to/look-inside", CHINESE ? "每个词义一个向量" : "A vector for each sense"];
  const similar = ["reference/python", CHINESE ? "similar 和 analogy" : "similar and analogy"];
  const adapt = ["how-to/train", CHINESE ? "改为领域适应" : "Adapt a model instead"];
  const texts = ["how-to/faq", CHINESE ? "怎样查找相似的文本（语义检索）？" : "How do I find similar texts (similarity search)?"];
  const seeds = ["how-to/faq", CHINESE ? "怎样得到可复现的结果？" : "How do I get reproducible results?"];
  const encode = ["how-to/embed", CHINESE ? "句向量" : "Lines"];
  const dedupe = ["how-to/scale", CHINESE ? "先清洗网页语料" : "Clean a crawl first"];
  const tune = ["how-to/faq", CHINESE ? "怎样微调编码器？" : "How do I fine-tune the encoder?"];
  const vectors = ["how-to/faq", CHINESE ? "能用自己的 fastText、word2vec、GloVe 词向量吗？" : "Can I use my fastText, word2vec or GloVe vectors?"];
  const bert = ["how-to/faq", CHINESE ? "能加载 bert-base-chinese、bert-base-uncased 吗？" : "Can I load bert-base-uncased or bert-base-chinese?"];
  const precision = ["results/speed", CHINESE ? "半精度快多少，损失多少" : "What does half precision gain, and lose?"];
  const ANSWERS = CHINESE
    ? {
        词表: ["how-to/train"], 词汇表: ["how-to/train"], 多义词: senses, 义项: senses, 聚类: senses, 半精度: precision,
        实体识别: ["how-to/tag"], 命名实体识别: ["how-to/tag"], 随机种子: seeds, 可视化: ["how-to/explorer"],
        近义词: similar, 同义词: similar, 相似词: similar, 增量训练: adapt, 继续预训练: adapt,
        词嵌入: ["how-to/embed"], 句向量: encode, 句嵌入: encode, 去重: dedupe, 文本去重: dedupe, 繁體: ["how-to/faq", "繁体字"],
        微调: tune, fasttext: vectors, "bert-base-chinese": bert, "bert-base-uncased": bert, 句子相似: texts, 句子相似度: texts, 文本相似度: texts, 语义检索: texts,
      }
    : {
        vocabulary: ["how-to/train"], polysemy: senses, clustering: senses, "half precision": precision,
        "named entity recognition": ["how-to/tag"], ner: ["how-to/tag"], "random seed": seeds, seed: seeds,
        visualization: ["how-to/explorer"], visualisation: ["how-to/explorer"], synonyms: similar, synonym: similar,
        "sentence embeddings": encode, "sentence vectors": encode, deduplication: dedupe, dedupe, fasttext: vectors,
        "fine-tune": tune, "fine-tuning": tune, finetune: tune, "bert-base-uncased": bert, "bert-base-chinese": bert,
        "incremental training": adapt, "continue pretraining": adapt, "sentence similarity": texts,
      };
  const performSearch = Search._performSearch;
  Search._performSearch = (query, ...others) => {
    const asked = query.trim().toLowerCase(), found = nearTerm(asked, performSearch(query, ...others));
    if (!Object.hasOwn(ANSWERS, asked)) return found;
    const [page, title] = ANSWERS[asked], { docnames, filenames, titles, alltitles } = Search._index, place = docnames.indexOf(page);
    if (place < 0) return found;
    const id = title && alltitles[title]?.find(([file]) => file === place)?.[1];
    const best = [page, id ? `${titles[place]} > ${title}` : titles[place], id ? `#${id}` : "", null, Infinity, filenames[place], "title"];
    return [...found.filter((each) => each[0] !== page || (each[2] || "") !== best[2]), best]; // the last one is shown first
  };

  // Sphinx finds a word inside longer ones (ram in n-grams): not one of three letters or fewer
  const isShort = (word) => /^\w{1,3}$/.test(word);
  const objectsWith = Search.performObjectSearch;
  Search.performObjectSearch = (word, words) =>
    objectsWith(word, words).filter(([, name]) => !isShort(word) || name.toLowerCase().split(/[._]/).includes(word));
  const pagesWithAll = Search.performTermsSearch; // of words with two letters, it asks for one
  const withScore = (result, score) => result.map((value, place) => (place === 4 ? score : value));

  // page -> result: the pages with a word, or with all parts of a long Chinese one
  const hasWhole = (word, page) => {
    const { docnames, terms, titleterms } = Search._index;
    return [terms, titleterms].some((table) => Object.hasOwn(table, word) && [table[word]].flat().includes(docnames.indexOf(page)));
  };
  const pagesWithWord = (word, excluded) => {
    const found = pagesWithAll(new Set([word]), excluded).filter(([page]) => !isShort(word) || hasWhole(word, page));
    return new Map(found.map((each) => [each[0], each]));
  };
  const pagesWith = (word, excluded) => {
    const [first, ...others] = (typeof partsOf === "undefined" ? [] : partsOf(word)).map((part) => pagesWithWord(part, excluded));
    const inParts = [...(first ?? [])].filter(([page]) => others.every((pages) => pages.has(page)));
    return new Map([...inParts.map(([page, result]) => [page, withScore(result, result[4] * Scorer.parts)]), ...pagesWithWord(word, excluded)]);
  };

  // page -> whether one of its headings has a word
  const pagesCalled = (word) => {
    const { docnames, alltitles } = Search._index;
    const headings = Object.entries(alltitles).filter(([title]) => word.length > 1 && title.toLowerCase().includes(word));
    return new Set(headings.flatMap(([, places]) => places.map(([file]) => docnames[file])).filter((page) => !page.startsWith("results/")));
  };

  // of a short Chinese term that no page has, only the pages that have its parts close together
  const textOf = (page) => (searchTexts[page] ?? []).map(([, title, own]) => `${title} ${own}`).join(" ").toLowerCase();
  const nearTerm = (term, found) => {
    if (!CHINESE || !/^[\u3400-\u9fff]{2,4}$/u.test(term)) return found;
    const parts = splitQuery(term).filter((part) => !stopwords.has(part));
    if (parts.length < 2 || Object.keys(searchTexts).some((page) => textOf(page).includes(term))) return found;
    return found.filter(([page]) => isClose(page, term, parts));
  };
  const isClose = (page, term, parts) => {
    const text = textOf(page), span = term.length;
    for (let at = text.indexOf(parts[0]); at >= 0; at = text.indexOf(parts[0], at + 1)) {
      const around = text.slice(Math.max(0, at - span), at + parts[0].length + span);
      if (parts.every((part) => around.includes(part))) return true;
    }
    return false;
  };

  const rarity = (pages) => Math.log(1 + Search._index.docnames.length / (pages || 1));

  // Sphinx finds the pages with all words: a long question has none. Rare words count more, words on no page not at all.
  Search.performTermsSearch = (words, excluded) => {
    const pages = new Map();
    let all = 0;
    for (const word of words) {
      const found = pagesWith(word, excluded), called = pagesCalled(word);
      const weight = found.size || words.size < 3 ? rarity(found.size) : 0; // of two words, one alone is another question
      all += weight;
      for (const [page, result] of found) {
        const before = pages.get(page) ?? { result, score: 0, share: 0, words: 0 };
        const score = before.score + weight * result[4] * (called.has(page) ? Scorer.heading : 1);
        pages.set(page, { result, score, share: before.share + weight, words: before.words + 1 });
      }
    }
    const scored = ({ result, score }, weight) => withScore(result, (weight * score) / all);
    const whole = [...pages.values()].filter((each) => each.words === words.size);
    const most = [...pages.values()].filter((each) => each.words < words.size && each.share >= MOST * all);
    return [...whole.map((each) => scored(each, 1)), ...(whole.length < FEW ? most.map((each) => scored(each, Scorer.most)) : [])];
  };

  // the section of a page that has most of the words, and its sentence with the rarest of them
  const sectionAbout = (sections, words) => {
    const sum = (where) => words.reduce((total, [word, weight]) => total + (where.toLowerCase().includes(word) ? weight : 0), 0);
    const scores = sections.map(([, title, text]) => sum(text) + 2 * sum(title));
    const best = Math.max(...scores);
    return best ? sections[scores.indexOf(best)] : undefined;
  };
  const excerpt = (text, words) => {
    const place = Math.max(0, words.map(([word]) => text.toLowerCase().indexOf(word)).find((each) => each >= 0) ?? 0);
    const sentence = Math.max(...["。", "；", "？", ". "].map((stop) => text.lastIndexOf(stop, place))) + 1;
    const begin = place - sentence < LENGTH / 2 ? sentence : place - LENGTH / 3;
    return (begin ? "…" : "") + text.slice(begin, begin + LENGTH).trim() + (begin + LENGTH < text.length ? "…" : "");
  };
  const results = document.getElementById("search-results");
  if (results) {
    const show = (item) => {
      const link = item.querySelector("a"), [page, anchor] = link.getAttribute("href").split("#");
      const sections = searchTexts[page.replace(/\.html$/, "")];
      if (!sections?.length || item.classList.contains("kind-object")) return;
      const query = new URLSearchParams(location.search).get("q");
      const words = [...Search._parseQuery(query)[1]].map((word) => [word, rarity(pagesWith(word, new Set()).size)]);
      words.sort(([, one], [, other]) => other - one);
      const section = (anchor ? sections.find(([each]) => each === anchor) : sectionAbout(sections, words)) ?? sections[0];
      if (!anchor && section !== sections[0]) {
        link.setAttribute("href", `${page}#${section[0]}`);
        link.textContent += ` > ${section[1]}`;
      }
      if ([...results.querySelectorAll("li a")].some((other) => other !== link && other.href === link.href)) return item.remove();
      const context = item.appendChild(document.createElement("p"));
      context.classList.add("context");
      context.textContent = excerpt(section[2], words);
      for (const [word] of words) _highlightText(context, word, "highlighted");
    };
    new MutationObserver((changes) => {
      for (const change of changes) for (const node of change.addedNodes) if (node.tagName === "LI") show(node);
    }).observe(results, { childList: true, subtree: true });
  }
}
