"""Search in Chinese: the index is split with rjieba, and a query by the words of the index.

A page is indexed under every word that the dictionary finds in it, overlapping ones and single characters too (but not 分词
in 区分词义, which begins and ends within words). A query is split into the fewest words of the index; of several ways, into
those whose rarest word is on the most pages. So a page that contains the query contains its words, whatever stands around
them; two splitters that disagree cannot lose it. A page with only the parts of a long word comes after those with the word.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import rjieba
import snowballstemmer
from sphinx.search import SearchLanguage, languages

LATIN = re.compile(r"[A-Za-z0-9_]+")
CHINESE = re.compile(r"[\u3400-\u9fff]+")
STOPWORDS = frozenset(
    [
        *"的了和与或是在也有把被对为以及吗呢",
        "还是",
        "或者",
        "怎么",
        "怎么办",
        "怎样",
        "如何",
        "什么",
        "哪些",
        "哪个",
        "为什么",
        "一个",
        "这个",
    ]
)
TERMS = (
    *("词向量", "上下文词向量", "静态词向量", "句向量", "语言模型", "双向语言模型", "预训练", "微调", "困惑度", "编码器"),
    *("序列标注", "标注器", "文本分类", "分类器", "命名实体", "命名实体识别", "语义角色", "共指消解", "阅读理解"),
    *(
        "词义消歧",
        "消歧",
        "评测指标",
        "断点续训",
        "领域适应",
        "加权混合",
        "多义词",
        "词义",
        "近邻",
        "分词",
        "子词",
        "词表",
        "掩码",
        "归一化",
        "链式法则",
        "平滑",
    ),
)
"""Terms of the field that the dictionary lacks or cuts in two."""
DICTIONARY = rjieba.Jieba()
for term in TERMS:
    DICTIONARY.add_word(term, 10_000, "n")
SPLITTER = r"""
var splitRun = (run, longest) => {
  const { terms, titleterms } = Search._index;
  const own = (table, word) => (Object.hasOwn(table, word) ? [table[word]].flat().length : 0);
  const pages = (word) => (stopwords.has(word) ? Infinity : own(terms, word) + own(titleterms, word));
  const better = (one, other) =>
    !other || one.words.length < other.words.length || (one.words.length === other.words.length && one.rarest > other.rarest);
  const best = [{ words: [], rarest: Infinity }];  // of the first characters of the run
  for (let end = 1; end <= run.length; end++) {
    for (let start = Math.max(0, end - longest); start < end; start++) {
      const word = run.slice(start, end), count = pages(word);
      if (count === 0 && word.length > 1) continue;
      const way = { words: [...best[start].words, word], rarest: Math.min(best[start].rarest, count) };
      if (better(way, best[end])) best[end] = way;
    }
  }
  return best[run.length].words;
};
var splitQuery = (query) => {
  const runs = [...query.matchAll(/[\u3400-\u9fff]+|[A-Za-z0-9_]+/gu)].map(([run]) => run);
  return runs.flatMap((run) => (/[\u3400-\u9fff]/u.test(run) ? splitRun(run, 8) : [run]));
};
var partsOf = (word) => {
  if (word.length < 4 || !/^[\u3400-\u9fff]+$/u.test(word)) return [];
  const parts = splitRun(word, word.length - 1);
  return parts.every((part) => part.length > 1) ? parts : [];
};
"""


def words_of(run: str) -> list[str]:
    """The words of the dictionary in Chinese text, but none that begins and ends within other words, as 分词 in 区分词义."""
    ends = {0, *itertools.accumulate(map(len, DICTIONARY.cut(run)))}
    found, begin = list[str](), 0
    for word in DICTIONARY.cut_all(run):  # in the order of their beginnings
        begin = run.index(word, begin)
        if {begin, begin + len(word)} & ends or len(word) == 1:
            found.append(word)
    return found


class ChineseSearch(SearchLanguage):
    lang = "zh"
    language_name = "English"  # of the stemmer for Latin words: Sphinx names the script after it
    js_stemmer_rawcode = "english-stemmer.js"
    js_splitter_code = SPLITTER
    stopwords = STOPWORDS

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.stemmer = snowballstemmer.stemmer("english")

    def split(self, input: str) -> list[str]:
        return [*LATIN.findall(input), *(word for run in CHINESE.findall(input) for word in words_of(run))]

    def stem(self, word: str) -> str:
        return str(self.stemmer.stemWord(word.lower()))

    def word_filter(self, word: str) -> bool:
        return word not in self.stopwords


def setup(app: Any) -> dict[str, Any]:
    languages["zh"] = ChineseSearch
    return {"parallel_read_safe": True, "parallel_write_safe": True}
