"""The documentation site: it builds without a warning, works from the file system, is found by search and read by everyone.

`make docs` installs what it is built with; the slow tests are skipped without that, or without Playwright and Chromium.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from polyseme.cli.app import verbs_by_group
from scripts import translations

ROOT = Path(__file__).parents[1]
AXE = ROOT / "tests" / "serve" / "axe" / "axe.min.js"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUERIES = {
    "词向量": "how-to/embed",
    "上下文词向量": "index",
    "静态词向量": "concepts/lineage",
    "冻结还是微调": "concepts/frozen-or-fine-tuned",
    "困惑度": "concepts/perplexity",
    "初始状态": "concepts/start-states",
    "加权混合": "concepts/mixing",
    "词义": "concepts/layers",
    "双向语言模型": "concepts/lineage",
    "怎么训练序列标注器": "how-to/tag",
    "文本分类": "how-to/classify",
    "比较编码器": "how-to/compare",
    "大规模处理": "how-to/scale",
    "部署服务": "how-to/serve",
    "从旧的库迁移": "how-to/migrate",
    "领域适应": "how-to/train",
    "命名实体": "how-to/tag",
    "中断后继续": "how-to/train",
    "中文分词": "get-started/install",
    "近邻": "get-started/first-steps",
    "freeze": "reference/generated/api",
    "内存不足": "how-to/faq",
    "显存": "how-to/faq",
    "批大小": "how-to/faq",
    "学习率": "how-to/faq",
    "Excel": "how-to/faq",
    "保存预测结果": "how-to/faq",
    "相似的句子": "how-to/faq",
    "类别不平衡": "how-to/faq",
    "重新开始": "how-to/faq",
    **dict.fromkeys(["句嵌入", "句向量"], "how-to/embed"),
    "去重": "how-to/scale",
    **dict.fromkeys(["繁體", "怎么微调", "微调", "bert-base-chinese", "fastText"], "how-to/faq"),
    "早停": "how-to/faq",
    "可复现": "how-to/faq",
    "离线": "how-to/faq",
    "镜像": "how-to/faq",
    "繁体": "how-to/faq",
    "怎么引用": "how-to/faq",
    "许可证": "how-to/faq",
    "导出词向量": "how-to/faq",
    "没有空格的语言": "how-to/faq",
    "Hugging Face": "how-to/integrations",
    "spaCy": "how-to/integrations",
    "评测指标": "reference/tasks",
    "命名实体识别": "how-to/tag",
    "词义消歧": "how-to/look-inside",
    "训练被杀掉怎么继续": "how-to/faq",
    "分词": "how-to/embed",
    "license": "how-to/faq",
    "huggingface": "how-to/integrations",
    "RAM": "how-to/memory",
    "德语": "how-to/faq",
    "多语言": "how-to/faq",
    "其他语言": "how-to/faq",
    "GBK": "how-to/faq",
}
"""What a reader types, and a page that must be among the results."""
FIRST = {
    "词表": "how-to/train.html",
    **dict.fromkeys(["多义词", "义项", "聚类"], "how-to/look-inside.html#每个词义一个向量"),
    "半精度": "results/speed.html#半精度快多少，损失多少",
    **dict.fromkeys(["实体识别", "命名实体识别"], "how-to/tag.html"),
    "随机种子": "how-to/faq.html#怎样得到可复现的结果？",
    "可视化": "how-to/explorer.html",
    "近义词": "reference/python.html#similar 和 analogy",
    "增量训练": "how-to/train.html#改为领域适应",
    "词嵌入": "how-to/embed.html",
    "句子相似度": "how-to/faq.html#怎样查找相似的文本（语义检索）？",
}
"""What a reader types, and the page of the first result with the title of its section."""
NOT_THERE = {"zh": ["停用词", "数据增强"], "en": ["data augmentation"]}
"""Of what the pages have nothing."""
LANGUAGES = "how-to/faq.html#how-do-i-use-a-language-without-a-shipped-model-german-french-or-any-other"
ENGLISH = {
    "license": "how-to/faq.html#what-is-the-licence",
    "huggingface": "how-to/integrations.html",
    "RAM": "how-to/memory.html",
    "memory": "how-to/memory.html",
    "resume": "how-to/faq.html#my-training-was-killed",
    "GBK": "how-to/faq.html#which-encodings-are-read",
    "vocabulary": "how-to/train.html",
    **dict.fromkeys(["polysemy", "clustering"], "how-to/look-inside.html#a-vector-for-each-sense"),
    "half precision": "results/speed.html#what-does-half-precision-gain-and-lose",
    **dict.fromkeys(["named entity recognition", "NER"], "how-to/tag.html"),
    "random seed": "how-to/faq.html#how-do-i-get-reproducible-results",
    "visualization": "how-to/explorer.html",
    "synonyms": "reference/python.html#similar-and-analogy",
    "incremental training": "how-to/train.html#adapt-a-model-instead",
    "sentence similarity": "how-to/faq.html#how-do-i-find-similar-texts",
    "sentence embeddings": "how-to/embed.html#lines",
    "deduplication": "how-to/scale.html#clean-a-crawl-first",
    "fine-tuning": "how-to/faq.html#how-do-i-fine-tune",
    "fastText": "how-to/faq.html#can-i-use-my-fasttext",
    "bert-base-uncased": "how-to/faq.html#can-i-load-bert-base",
    **dict.fromkeys(["language without a shipped model", "other language", "German", "French", "multilingual"], LANGUAGES),
}
"""What a reader of the English site types, and how the address of the first result begins."""


def module(name: str) -> types.ModuleType:
    """An extension of the site, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "extensions" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_reference_has_every_option_with_its_default() -> None:
    pages = dict(module("reference").pages())
    for group, (_, verbs) in verbs_by_group().items():
        for verb in (each for each in verbs if not each.hidden):
            text = pages[f"commands/{group or verb.name}"]
            for option in (each for each in verb.parameters() if not each.argument):
                assert f"`--{option.name.replace('_', '-')}" in text, (verb.name, option.name)
                assert option.description() in text
            in_group = verbs if group else [verb]
            assert text.count("`--json`\n: Print JSON") == sum(each.json for each in in_group if not each.hidden), verb.name
    assert "[1 or more; default: 50]" in pages["commands/train"] and "polyseme.embed_file(" in pages["api"]


def test_a_chinese_page_whose_english_page_has_changed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations, "ROOT", tmp_path)
    (tmp_path / "docs" / "en").mkdir(parents=True)
    (tmp_path / "docs" / "zh").mkdir()
    english, chinese = tmp_path / "docs" / "en" / "a.md", tmp_path / "docs" / "zh" / "a.md"
    for readme in ("README.md", "README.zh.md"):
        (tmp_path / readme).write_text("# r\n")
    translations.stamp(tmp_path / "README.zh.md")
    english.write_text("# A\n")
    assert translations.problems() == ["docs/zh/a.md is missing: translate docs/en/a.md"]
    chinese.write_text("# 甲\n")
    assert "has no hash" in translations.problems()[0]
    translations.stamp(chinese)
    translations.stamp(chinese)
    assert translations.problems() == [] and chinese.read_text().count("translated from") == 1
    english.write_text("# A, changed\n")
    assert translations.problems() == ["docs/zh/a.md is stale: docs/en/a.md has changed since"]


def test_no_word_is_indexed_across_two_others() -> None:
    for each in ("sphinx", "rjieba"):
        pytest.importorskip(each)
    words_of = module("chinese_search").words_of
    assert {"区分", "词义"} <= set(words_of("区分词义")) and "分词" not in words_of("区分词义")
    assert {"命名", "命名实体", "命名实体识别", "识别"} <= set(words_of("命名实体识别"))
    assert "分词" in words_of("中文分词和分词器") and "杀掉" in words_of("训练被杀掉")


def test_a_formula_shows_the_begin_token_of_a_sentence() -> None:
    pytest.importorskip("latex2mathml")
    made = module("mathml").mathml(r"P(w \mid \texttt{<s>}) < 1", "block")
    assert ElementTree.fromstring(made).findtext(".//{*}mtext") == "<s>" and "&#x0003C;" in made


def test_the_moving_picture_has_every_use_in_every_layer(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import numpy as np

    from scripts.draw_senses import Uses, draw_moving

    points = np.array([[[0, 0]] * 3, [[-0.5, 0.2], [0.4, 0], [0, 0.5]], [[-1, 0], [1, 0], [0, 1]]])
    draw_moving("en", Uses(["river", "money", "money"], points), tmp_path / "moving.svg")
    picture = ElementTree.parse(tmp_path / "moving.svg").getroot()
    groups = [each for each in picture.iter("{http://www.w3.org/2000/svg}g") if each.get("class") == "use"]
    ends = ["--x2:60.0px;--y2:245.0px", "--x2:540.0px;--y2:245.0px", "--x2:300.0px;--y2:80.0px"]
    assert [each.get("style", "").endswith(end) for each, end in zip(groups, ends, strict=True)] == [True] * 3
    assert [each.get("fill") for each in groups] == ["#0072B2", "#D55E00", "#D55E00"]
    assert [each[0].tag.endswith("circle") for each in groups] == [True, False, False]
    assert "prefers-reduced-motion" in (tmp_path / "moving.svg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both languages, built; a warning is an error."""
    for each in ("sphinx", "furo", "myst_nb", "latex2mathml", "rjieba"):
        pytest.importorskip(each, reason=f"{each} is not installed: make docs")
    out = tmp_path_factory.mktemp("site")
    for language in ("en", "zh"):
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-t", language, "-c", "docs"]
        done = subprocess.run([*command, f"docs/{language}", str(out / language)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield made
        made.close()


@pytest.mark.slow
def test_both_languages_have_pages(site: Path) -> None:
    for language in ("en", "zh"):
        written = [page for page in (site / language).rglob("*.html") if "generated" not in page.parts]
        assert len(written) >= 20
    english, chinese = ((site / language / "how-to" / "tag.html").read_text(encoding="utf-8") for language in ("en", "zh"))
    assert 'href="../../zh/how-to/tag.html"' in english and 'href="../../en/how-to/tag.html"' in chinese
    translated = {"Made with": "主题：", "On this page": "本页目录", "Next": "下一页", ">Command line<": ">命令行<"}
    for theirs, ours in translated.items():
        assert theirs in english and ours in chinese and theirs not in chinese, theirs


@pytest.mark.slow
def test_chinese_search_finds_the_page(site: Path, browser: Any) -> None:
    page = browser.new_page()
    problems = list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    for query, wanted in QUERIES.items():
        page.goto(f"{(site / 'zh' / 'search.html').as_uri()}?q={query}")
        page.wait_for_selector("ul.search li a")
        page.wait_for_function("document.querySelector('p.search-summary').innerText")  # told at the end
        found = page.evaluate("[...document.querySelectorAll('ul.search li a')].map(link => link.getAttribute('href'))")
        assert any(link.startswith(f"{wanted}.html") for link in found[:10]), (query, found[:10])
        assert page.evaluate("document.querySelectorAll('ul.search li p.context').length") > 0, query
    page.goto(f"{(site / 'zh' / 'search.html').as_uri()}?q=训练被杀掉怎么继续")
    page.wait_for_function("document.querySelector('p.search-summary').innerText")
    first = page.query_selector("ul.search li")
    assert first.query_selector("a").get_attribute("href").startswith("how-to/faq.html#")  # the answer, not the top of the page
    assert "杀掉" in first.inner_text() and "检查点" in first.query_selector("p.context").inner_text()
    names = "[...document.querySelectorAll('[aria-label]')].map(each => each.getAttribute('aria-label'))"
    assert [name for name in page.evaluate(names) if "Toggle" in name] == [] and problems == []


@pytest.mark.slow
def test_english_search_finds_the_answer(site: Path, browser: Any) -> None:
    page = browser.new_page()
    for query, wanted in ENGLISH.items():
        page.goto(f"{(site / 'en' / 'search.html').as_uri()}?q={query}")
        page.wait_for_function("document.querySelector('p.search-summary')?.innerText")  # told at the end
        found = page.evaluate("[...document.querySelectorAll('ul.search li a')].map(link => link.getAttribute('href'))")
        assert found and found[0].startswith(wanted), (query, found[:5])
        assert "<br" not in page.inner_text("ul.search"), query


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_search_puts_pages_that_say_how_before_results(site: Path) -> None:
    """Without a browser: the site's own code, asked by Node.js."""

    def ask(language: str, *queries: str, links: bool = False) -> dict[str, list[str]]:
        command = ["node", "tests/site_search.js", *(["--links"] if links else []), str(site / language), *queries]
        answer: dict[str, list[str]] = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        return answer

    for language, queries in {"en": ["learning rate", "batch size"], "zh": ["学习率", "批大小", "learning rate"]}.items():
        for query, pages in ask(language, *queries).items():
            rooms = [page.partition("/")[0] for page in pages]
            helpful = [place for place, room in enumerate(rooms) if room in ("how-to", "reference", "get-started")]
            assert pages[0] == "how-to/faq" and helpful == list(range(len(helpful))), (query, pages)
    assert ask("en", "speed of the service")["speed of the service"][0] == "results/service"  # it is called so
    found = ask("en", "RAM", "memory", "tch")
    assert found["RAM"] == found["memory"] and found["tch"] == []  # three letters are no part of a word
    assert found["memory"].index("how-to/train") < found["memory"].index("results/trials")  # which has a heading "Memory"
    for query, links in ask("zh", *FIRST, links=True).items():
        assert links[0] == FIRST[query], (query, links[:3])
    for language, queries in NOT_THERE.items():
        assert all(len(pages) < 3 for pages in ask(language, *queries).values()), language
    for query, pages in ask("zh", *QUERIES).items():
        assert QUERIES[query] in pages[:10], (query, pages[:10])
    questions = {"en": "how can I continue a zebra training that was killed", "zh": "斑马训练被杀掉了怎么继续"}
    for language, query in questions.items():  # no page has the zebra
        assert ask(language, query)[query][0] == "how-to/faq"


@pytest.mark.slow
def test_the_course_can_be_downloaded(site: Path) -> None:
    for language in ("en", "zh"):
        (archive,) = (site / language / "_downloads").rglob("polyseme-course.zip")
        page = (site / language / "course" / "index.html").read_text(encoding="utf-8")
        assert f'href="../{archive.relative_to(site / language)}"' in page
        names = zipfile.ZipFile(archive).namelist()
        assert {"course/exercises/conftest.py", "course/exercises/check_11.py"} <= set(names)
        assert len([name for name in names if name.startswith(f"docs/{language}/course/")]) == 11


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_fit_the_screen_and_can_be_read_by_everyone(site: Path, browser: Any, width: int, scheme: str) -> None:
    """No page is wider than the screen, asks an address, or violates a rule of axe; of the commands, one page."""
    page = browser.new_context(viewport={"width": width, "height": 850}, color_scheme=scheme).new_page()
    asked, problems = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
    made_alike = {path for path in site.rglob("commands/*.html") if path.stem != "embed"}
    for path in sorted(set(site.rglob("*.html")) - made_alike):
        name = f"{path.relative_to(site)} at {width}"
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            problems.append(f"{name}: wider than the screen")
        page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        problems += [f"{name}: {each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"]]
    assert problems == [] and asked == []
