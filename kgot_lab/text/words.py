"""The words of a text, tokenised for search, for the comparison of content, and for the lookup of names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from kgot_lab.io.files import read_tables

# Stemming: Snowball's for search in other languages than English (Porter 2001). The English rules, light for ranking
# sentences and thorough for detecting words that leaked into a skeleton, are those of recorded runs and figures.


@lru_cache(200_000)
def snowball_stem(word: str, algorithm: str) -> str:
    """Return the stem of a word in lower case by an algorithm of Snowball, such as "german"."""
    return str(_snowball(algorithm).stemWord(word))


@cache
def _snowball(algorithm: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(algorithm, 0)


POSSESSIVE = re.compile(r"['’]s?$")
_VOWEL = re.compile(r"[aeiouy]")


def light_stem(word: str) -> str:
    """Remove the plural or past ending of a word, approximately."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


@lru_cache(50_000)
def stem(word: str) -> str:
    """Return a word in lower case without its plural, -ed or -ing ending.

    So endings do not hide a leak. The result is for comparison, not for reading.
    """
    word = POSSESSIVE.sub("", word.casefold())
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and _VOWEL.search(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


# combining marks, which are part of words: vowel signs of Hindi, tones of Thai
_MARKS = "".join(mark for mark in map(chr, range(0x300, 0x3100)) if unicodedata.category(mark)[0] == "M")
WORD = re.compile(rf"[\w{_MARKS}]+")
_NAME_TOKEN = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_UNSPACED_SCRIPTS = (  # Thai to Khmer, Japanese, Chinese; Korean too, whose particles follow a name without a space
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_PART = re.compile(f"[{_UNSPACED_SCRIPTS}]|[^{_UNSPACED_SCRIPTS}]+")
UNSPACED = re.compile(f"[{_UNSPACED_SCRIPTS}]")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED_SCRIPTS}]+|[^{_UNSPACED_SCRIPTS}]+")
_CHARACTER = re.compile(rf".[{_MARKS}]*")
_IDEOGRAPH = re.compile("[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_WIDE = re.compile("[\uff00-\uffef]")  # full-width Latin letters and half-width Japanese ones
# without joiners, accents that no letter is composed with, such as those of stressed Cyrillic, and the dot of
# Hindi; the Turkish i with and without a dot, and the two signs of Hindi for a nasal, are one
_SEARCH_FORM = dict.fromkeys([*range(0x300, 0x370), 0x200C, 0x200D, 0x93C]) | str.maketrans("İıँ", "iiं")
# Stop words. Each list is part of a published method or of published figures, so they differ.
_LISTS = read_tables(Path(__file__).with_suffix(".txt"))["stop words"]
_STOP_WORDS = {name: frozenset(words.split()) for name, words in _LISTS}
SEARCH_STOP_WORDS = _STOP_WORDS["search"]
CONTENT_STOP_WORDS = _STOP_WORDS["content"]
NAME_STOP_WORDS = _STOP_WORDS["name"]
_QUESTION_WORDS = _STOP_WORDS["question"]  # such as can, does and support
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Endings of Snowball's stems by which a verb differs from its noun: classify and classification.
_VERB_ENDINGS = {"plain": "plan", "scrib": "script", "ifi": "if", "olv": "olut", "yz": "ys", "ysi": "ys"}
_VERB_ENDING = re.compile(rf"(?:{'|'.join(_VERB_ENDINGS)}|(?<=\w{{5}})i[st])$")
# dropped before a name; New York is not York
LEADING_STOP_WORDS = NAME_STOP_WORDS - frozenset("new first one two no".split())
COMPARED_STOP_WORDS = _STOP_WORDS["compared"]


def content_words(text: str) -> list[str]:
    """Return the content words of a text, in lower case and lightly stemmed, split as `searched_words` does."""
    words = _split_words(normalise_nfc(text).lower())
    return [light_stem(word) for word in words if word not in CONTENT_STOP_WORDS]


def topic_words(text: str) -> dict[str, str]:
    """Return the words that say what a text or a question is about, by stem, in order.

    Underscores and humps, as in renderHtml, part words. A verb and its noun have one stem, as classify and
    classification do: that of Snowball, without the endings by which it tells them apart.
    """
    words = _split_words(_HUMP.sub(" ", normalise_nfc(text)).replace("_", " ").lower())
    found: dict[str, str] = {}
    for word in words:
        if (
            len(word) > 1 and word not in CONTENT_STOP_WORDS and word not in _QUESTION_WORDS
        ) or UNSPACED.match(word):
            found.setdefault(_verb_stem(word), word)
    return found


@lru_cache(50_000)
def _verb_stem(word: str) -> str:
    return _VERB_ENDING.sub(lambda end: _VERB_ENDINGS.get(end[0], ""), snowball_stem(word, "english"))


def searched_words(text: str) -> list[str]:
    """Return the words of a text in order, in lower case, without English stop words and single letters.

    Text in Latin letters is tokenised as by bm25s. Scripts without spaces between words, and Korean, give each
    pair of neighbouring characters, and each ideograph.
    """
    words = _split_words(search_form(text))
    return [word for word in words if len(word) > 1 or UNSPACED.match(word) if word not in SEARCH_STOP_WORDS]


def search_form(text: str) -> str:
    """Return a text composed and in lower case, without joiners, and with wide and narrow letters as others."""
    return (
        unicodedata.normalize("NFKC" if _WIDE.search(text) else "NFC", text).translate(_SEARCH_FORM).lower()
    )


def _split_words(text: str) -> list[str]:
    words = WORD.findall(text)
    if not UNSPACED.search(text):
        return words
    return [part for word in words for run in _UNSPACED_RUN.findall(word) for part in _search_parts(run)]


def _search_parts(run: str) -> list[str]:
    """Return a word, or the pairs of characters and the ideographs of a run in a script without spaces."""
    if not UNSPACED.match(run):
        return [run]
    characters = _CHARACTER.findall(run)
    if len(characters) == 1:
        return [run]
    return [*map("".join, pairwise(characters)), *_IDEOGRAPH.findall(run)]


def casefold_words(text: str) -> list[str]:
    """Return the case-folded words of a text for comparison, split as `searched_words` does, at underscores too."""
    return _split_words(normalise_nfc(text).casefold().replace("_", " "))


def normalise_nfc(text: str) -> str:
    """Normalise a text to NFC, since files may store a letter and its accent as two characters."""
    return unicodedata.normalize("NFC", text)


def name_tokens(text: str) -> tuple[str, ...]:
    """Return the words by which names are compared: case-folded, NFC, without signs.

    Underscores between words count as spaces.
    """
    return tuple(_NAME_TOKEN.findall(normalise_nfc(text.casefold())))


_SAME_SIGNS = str.maketrans({**dict.fromkeys("’‘ʼ′`´", "'"), **dict.fromkeys("“”„«»", '"'), "−": "-"})
_LETTERS = str.maketrans({"ı": "i", "æ": "ae", "œ": "oe"})  # which Unicode does not take apart
_STROKE = re.compile(r"(LATIN SMALL LETTER [A-Z]) WITH .*")


@lru_cache(100_000)
def folded_name(text: str) -> str:
    """Return the form in which names are looked up, since people type them without what their keyboard lacks.

    NFKD, case folding, Latin, Greek and Cyrillic letters without accents and strokes, one apostrophe, quotation
    mark and dash, no invisible characters, single spaces.
    """
    characters = unicodedata.normalize("NFKD", text.translate(_SAME_SIGNS).casefold()).translate(_LETTERS)
    kept = []
    for character in characters:
        category = unicodedata.category(character)
        if stroke := _STROKE.fullmatch(unicodedata.name(character, "")):
            character = unicodedata.lookup(stroke[1])
        if category != "Cf" and not "\u0300" <= character <= "\u036f":
            kept.append("-" if category == "Pd" else character)
    return " ".join("".join(kept).replace("_", " ").split())


def name_units(text: str) -> tuple[str, ...]:
    """Return the words by which names are compared, with each character of an unspaced script as a word."""
    return tuple(part for word in name_tokens(text) for part in _UNSPACED_PART.findall(word))


def contains_words(value: str, text: str) -> bool:
    """Return whether a text contains a value as consecutive words.

    A value without words is contained only in an equal text.
    """
    words = name_units(value)
    if not words:
        return bool(value.strip()) and value.strip() == text.strip()
    return f" {' '.join(words)} " in f" {' '.join(name_units(text))} "


def canonical_answer(answer: str) -> str:
    """Normalise an answer: no case, punctuation, articles or extra spaces."""
    words = re.sub(r"[^\w\s]", " ", answer.lower()).split()
    return " ".join(word for word in words if word not in {"a", "an", "the"})


def same_answer(one: str, other: str) -> bool:
    """Return whether two answers are equal after normalisation."""
    return canonical_answer(one) == canonical_answer(other)


# Sentence splitting: careful for prompts, rough and fast for the vectors of many passages.

# East Asia, India, Urdu, Arabic, Ethiopic, Armenian, Khmer, Burmese, Tibetan
_SCRIPT_ENDS = "。！？｡।॥۔؟።፧։។៕။།"
SentenceRules = Literal["plain", "careful", "any script"]
LONGEST_SENTENCE = 2000  # characters: longer stretches without sentence ends, such as tables, are cut into pieces of this length
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Inc|Ltd|Co|c|ca|[A-Z])\.)$")
# Elwyn Brooks "E. B." White
_INITIALS = re.compile(r"[\"'(](?:[A-Z]\. ?)+[\"')]$|\b(?:Hon|Rev|Gen|Col|Lt|Sgt|Capt|Sen|Gov|Mt|Ft)\.$")
_BEFORE_A_NUMBER = re.compile(r"\b(?:[Nn]o|[Oo]p|[Vv]ol|pp?|b|d|fl)\.$")
# capitals of accented Latin; of Greek, Cyrillic and Armenian
_ACCENTED = "".join(filter(str.isupper, map(chr, range(0x80, 0x370))))
_CAPITAL = "".join(filter(str.isupper, map(chr, range(0x370, 0x2000))))
_CASELESS = "\u05d0-\u10ff\u1100-\u139f\u3040-\u9fff\uac00-\ud7a3\uf900-\ufaff"  # scripts without capitals, from Hebrew to Chinese
_END = r"(?:[.!?]|;(?=\s+[Α-Ω]))"  # the Greek question mark
_LATER = rf"|[{_SCRIPT_ENDS}][\"')\]”’»」』）]*\s*|\n\s*\n|\n(?=\s*[-*\[])"
_ENDS = re.compile(rf"{_END}[\"')\]]*\s+(?=[\"'(\[A-Z0-9{_CAPITAL}{_CASELESS}]){_LATER}")
_ENDS_IN_ANY_SCRIPT = re.compile(
    rf"{_END}[\"')\]”’»]*\s+(?=[\"'(\[A-Z0-9“‘«„¿¡{_ACCENTED}{_CAPITAL}{_CASELESS}]){_LATER}"
)
# А. С. Пушкин, z. B., г. Тула
_INITIAL_IN_ANY_SCRIPT = re.compile(rf"(?<![\w'’])(?:[{_ACCENTED}{_CAPITAL}]|[^\W\d_A-Z])\.$")
_BEFORE_A_FIGURE = re.compile(
    r"\b(?:[Ff]igs?|[Ee]qs?|[Cc]h|[Cc]hap|[Nn]r|[Nn]os|[Aa]pprox|Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.$"
)
# 17. Mai, 2 Mio. Euro
_GERMAN_FORM = re.compile(
    r"\b(?:\d{1,2}\. (?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)|(?:Mio|Mrd|Str|bzw|Tel)\. ...)$"
)
_CAPITAL_AFTER_END = re.compile(  # or a row
    rf"(?<=[.!?])\s+(?=[A-Z\"'(0-9{_CAPITAL}{_CASELESS}])|(?<=[{_SCRIPT_ENDS}])(?![\"')\]”’»」』）{_SCRIPT_ENDS}])\s*"
    r"|(?:^|\n+)(?:\| )(?=\S)"
)


def rough_sentences(text: str) -> list[str]:
    """Split a text into sentences and rows of tables by signs alone, or return the text if there are none."""
    return [part for part in _CAPITAL_AFTER_END.split(text) if part] or [text]


def sentences(text: str, rules: SentenceRules = "careful") -> list[str]:
    """Split a text into sentences by punctuation, respecting common abbreviations and initials.

    None is longer than LONGEST_SENTENCE. "any script" rules also end a sentence before accented, Cyrillic and
    other letters and curled quotes, and at 。！？, and know "Fig. 3". "plain" rules, which recordings of older
    versions used, know fewer than "careful": no initials in quotes, no "b. 1960".
    """
    found: list[str] = []
    start = 0
    for match in (_ENDS_IN_ANY_SCRIPT if rules == "any script" else _ENDS).finditer(text):
        before = text[max(start, match.start() - 20) : match.end()].strip()
        if _ABBREVIATION.search(before) or _is_short_form(before, text[match.end() : match.end() + 3], rules):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return _cut(found)


def _cut(pieces: list[str]) -> list[str]:
    size = LONGEST_SENTENCE
    return [piece[first : first + size] for piece in pieces for first in range(0, len(piece), size)]


def _is_short_form(before: str, next: str, rules: SentenceRules) -> bool:
    """Return whether a full stop belongs to initials or to a short word before a number."""
    if rules == "plain":
        return False
    if _INITIALS.search(before) or (next[:1].isdigit() and _BEFORE_A_NUMBER.search(before)):
        return True
    if rules == "careful":
        return False
    if _GERMAN_FORM.search(f"{before} {next}"):
        return True
    return bool(
        _INITIAL_IN_ANY_SCRIPT.search(before) or (next[:1].isdigit() and _BEFORE_A_FIGURE.search(before))
    )


# Blocks of structured text: headings, list items and table rows are blocks of their own.

_HEADING = re.compile(r"\s*#{1,6}\s+")
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?=\S)|(\d{1,2}[.)]\s+)(?=\S))")
_BULLET = re.compile(r"\A[-*+•]\s+(?=\S)")
_RULE = re.compile(r"[\s|:=-]+")  # between the header of a table and its rows


def text_sentences(text: str, rules: SentenceRules = "careful", *, paragraphs: bool = False) -> list[str]:
    """Split a text of several lines into sentences, each on one line. A row of a table is one sentence.

    Headings and list items are sentences of their own, and with `paragraphs` a paragraph ends a sentence too.
    """
    found: list[str] = []
    for block, is_row in _split_blocks(text):
        line = " ".join(block.split())
        found += _cut([line]) if is_row else sentences(block if paragraphs else line, rules)
    return [" ".join(_BULLET.sub("", sentence, count=1).split()) for sentence in found]


def blocks(text: str) -> list[str]:
    """Split a text into blocks: headings, table rows, list items, and the text between them.

    Heading signs, outer bars of tables and numbers of list items are removed.
    """
    return [block for block, _ in _split_blocks(text)]


def _split_blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the blocks of a text, and whether each is a row of a table."""
    begun: list[str] = []
    for line in [*text.split("\n"), "|"]:  # the last ends the last block
        is_row = line.lstrip().startswith("|")
        if is_row or _HEADING.match(line):
            if begun:
                yield "\n".join(begun), False
            begun = []
            if not _RULE.fullmatch(line):
                yield (line.strip().strip("|") if is_row else line.strip().strip("#")).strip(), is_row
            continue
        if item := _ITEM.match(line):
            if begun:
                yield "\n".join(begun), False
            begun = []
            line = line[item.end() :] if item[1] else line  # its full stop would end a sentence
        begun.append(line)
