"""English words: examples by hand (words divided by blanks on the right), and time that grows with the text only."""

from __future__ import annotations

import pytest

from polyseme.text.splitting.english import split_english

EXAMPLES = [
    # punctuation, quotes and brackets apart
    ("Hello, world!", "Hello , world !"),
    ("The cat sat. The dog ran.", "The cat sat . The dog ran ."),
    ("What?! Really?", "What ? ! Really ?"),
    ('He said, "Go."', 'He said , " Go . "'),
    ("“It’s ‘fine’.”", "“ It ’s ‘ fine ’ . ”"),
    ("``Hi,'' she said.", "`` Hi , '' she said ."),
    ("(see [1] and {2})", "( see [ 1 ] and { 2 } )"),
    ("one; two: three", "one ; two : three"),
    ("and/or", "and / or"),
    ("Wait... what?", "Wait ... what ?"),
    ("so…", "so …"),
    ("yes--no", "yes -- no"),
    ("yes—no – maybe", "yes — no – maybe"),
    ("end.Start", "end . Start"),
    # contractions and possessives
    ("I don't know.", "I do n't know ."),
    ("Don’t!", "Do n’t !"),
    ("CAN'T WON'T", "CA N'T WO N'T"),
    ("it's John's", "it 's John 's"),
    ("we'll they've I'm you're he'd", "we 'll they 've I 'm you 're he 'd"),
    ("wouldn't've", "would n't 've"),
    ("I cannot stay; Cannot you?", "I can not stay ; Can not you ?"),
    ("can not", "can not"),
    ("gonna wanna", "gon na wan na"),
    ("the dogs' bowls", "the dogs ' bowls"),
    ("my mother-in-law's car", "my mother-in-law 's car"),
    ("O'Brien at five o'clock, ma'am", "O'Brien at five o'clock , ma'am"),
    ("'I don't,' he said", "' I do n't , ' he said"),
    ("get 'em in the '90s, rock 'n' roll", "get 'em in the '90s , rock 'n' roll"),
    ("the 1990's and the U.S.'s", "the 1990 's and the U.S. 's"),
    ("the letter 's'", "the letter ' s '"),
    ("do n't it 's", "do n't it 's"),
    # numbers, money, time
    ("pi is 3.14.", "pi is 3.14 ."),
    ("$1,000,000 or 5%", "$ 1,000,000 or 5 %"),
    ("£5m, €3.50", "£ 5m , € 3.50"),
    (".5 and $.50", ".5 and $ .50"),
    ("-5 (+3) 7-2", "-5 ( +3 ) 7-2"),
    ("at 10:30, on 9/11", "at 10:30 , on 9/11"),
    ("the 1st and 20th, 90s", "the 1st and 20th , 90s"),
    ("25°C #1", "25 ° C # 1"),
    # abbreviations
    ("Mr. Smith met Dr. Jones.", "Mr. Smith met Dr. Jones ."),
    ("the U.S. economy, e.g. banks, i.e. money", "the U.S. economy , e.g. banks , i.e. money"),
    ("at 5 p.m.", "at 5 p.m."),
    ("U.S.-based I.B.M., U.S.A", "U.S.-based I.B.M. , U.S.A"),
    ("a Ph.D. student", "a Ph.D. student"),
    ("J. R. R. Tolkien and George W. Bush", "J. R. R. Tolkien and George W. Bush"),
    ("J.K. Rowling", "J.K. Rowling"),
    ("Plan B.", "Plan B ."),
    ("taller than I. She left.", "taller than I . She left ."),
    ("No. 5 is here. No.", "No. 5 is here . No ."),
    ("Apple Inc.'s", "Apple Inc. 's"),
    ("apples, etc.", "apples , etc."),
    ("(etc.).", "( etc. ) ."),
    ("etc...", "etc ..."),
    ("AT&T and R&D but A & B", "AT&T and R&D but A & B"),
    # links, addresses, names of files
    ("See https://example.org/a?b=c&d=1#e.", "See https://example.org/a?b=c&d=1#e ."),
    ("(www.example.org)", "( www.example.org )"),
    ("https://example.org/wiki/Bank_(river), ok", "https://example.org/wiki/Bank_(river) , ok"),
    ('<a href="http://example.org">x</a>', '< a href = " http://example.org " > x < / a >'),
    ("Mail first.last+tag@mail.example.org.", "Mail first.last+tag@mail.example.org ."),
    ("Amazon.com and node.js.", "Amazon.com and node.js ."),
    ("http://", "http : / /"),
    # hyphens
    ("a well-known, 5-year-old COVID-19 case", "a well-known , 5-year-old COVID-19 case"),
    ("- item", "- item"),
    # beyond English letters
    ("Müller naïve café", "Müller naïve café"),
    ("cafe\u0301!", "cafe\u0301 !"),
    ("हिन्दी और 日本。", "हिन्दी और 日本 。"),
    ("great👍🏽😀😀!", "great 👍🏽 😀 😀 !"),
    ("👨\u200d👩\u200d👧❤\ufe0f🇫🇷🇩🇪", "👨\u200d👩\u200d👧 ❤\ufe0f 🇫🇷 🇩🇪"),
    ("", ""),
    (" \n\t ", ""),
]


@pytest.mark.parametrize(("text", "words"), EXAMPLES)
def test_examples(text: str, words: str) -> None:
    assert split_english(text) == words.split()


@pytest.mark.parametrize("words", [words for _, words in EXAMPLES])
def test_split_text_stays_as_it_is(words: str) -> None:
    assert split_english(words) == words.split()


SIGNS = [*"a1 '.-@(_👍", "\u0301", "\u200d"]  # each the first letter of another way through the pattern
SPELLS = [*'n\n"’,/:&$+`é漢🇫', "\0", "\u00ad", "\ud800", "a.", "a'", "a's", "n't", "a-", "1,", "a@", "a+", "a@a.", "A&"]
SPELLS += ["http://", "www.", "http://)", "a+a@b-", "I. "]
LONGER = [(sign, 1_000_000) for sign in SIGNS] + [(spell, 300_000) for spell in SPELLS]
ENDLESS = [(pattern, 50_000) for pattern, _ in LONGER]
ENDLESS += [pytest.param(*case, marks=pytest.mark.slow) for case in LONGER]  # type: ignore[misc]  # the same in longer texts


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "size"), ENDLESS)
def test_long_texts_end(pattern: str, size: int) -> None:
    """Each takes at most 2 s on a slow core; a pattern that went back over the text would take minutes to hours."""
    text = (pattern * size)[:size]
    words = split_english(text)
    assert "".join(words) == "".join(text.split())
