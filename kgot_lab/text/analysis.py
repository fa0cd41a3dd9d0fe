"""Analysis of text for search: the languages of a collection, and its words with their stems."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from kgot_lab.io.files import read_tables
from kgot_lab.text.function_words import languages_of_word
from kgot_lab.text.words import WORD, normalise_nfc, searched_words, snowball_stem

_SAMPLE = 200  # texts that decide the languages of a collection, and how much of each is read
_SAMPLE_CHARACTERS = 500
# of all words, at least; a text in a language of the list has .13 (Turkish) to .45 (Spanish)
_FUNCTION_WORDS = 0.1
_SCRIPT_SHARE = 0.05  # of all letters, for a script to count: English texts name Greek letters
_ENGLISH_SHARE = 0.75  # of all letters: the English embedding model scatters the other texts
_TABLES = read_tables(Path(__file__).with_name("languages.txt"))
_STEMMERS, _LANGUAGES = dict(_TABLES["stemmers"]), dict(_TABLES["scripts"])


@dataclass(frozen=True)
class Analyzer:
    """The words of a collection's texts and of questions to it: `searched_words`, stemmed by Snowball.

    `languages` holds a language for each script, that of most letters first; a language without stems may be one.
    `is_english`: whether nearly all of it is English.
    """

    languages: tuple[str, ...] = ("en",)
    is_english: bool = True

    def __call__(self, text: str) -> list[str]:
        words = searched_words(text)
        return [_stemmed(word, self.languages) for word in words] if self.stemmers else words

    @property
    def stemmers(self) -> tuple[str, ...]:
        """The names of the stemming algorithms."""
        return tuple(_STEMMERS[language] for language in self.languages if language in _STEMMERS)


def analyzer(texts: Iterable[str]) -> Analyzer:
    """Return the analyzer of a collection, whose languages its scripts and function words decide.

    Latin text without enough function words of a language is taken for English, unless it has accents.
    """
    words, accented = Counter[str](), 0
    function_words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    texts = list(texts)
    some = islice(texts, 0, None, -(-len(texts) // _SAMPLE) or 1)
    sample = normalise_nfc(" ".join(text[:_SAMPLE_CHARACTERS] for text in some)).lower()
    for word in WORD.findall(sample):
        if script := _script(word[0]):
            words[script] += 1
            accented += script == "latin" and not word.isascii()
            function_words[script].update(languages_of_word(word))
    letters, languages = Counter(filter(None, map(_script, sample))), list[str]()
    for script, count in letters.most_common():
        if count < _SCRIPT_SHARE * letters.total():
            break
        language, counts = _LANGUAGES.get(script, script), function_words[script]
        best = max(counts, key=lambda each: (counts[each], each == "en"), default="")
        if script == "latin" and counts["en"] < _FUNCTION_WORDS * words[script] < accented:
            language = best or script
        if counts[best] >= _FUNCTION_WORDS * words[script]:
            language = best or language
        languages.append(language)
    if "ar" in languages and sample.count("ی") > sample.count("ي"):  # the Persian letter, and the Arabic one
        languages = ["fa" if language == "ar" else language for language in languages]
    if "ja" in languages:  # which writes Chinese characters too
        languages = ["ja" if language == "zh" else language for language in languages]
    is_english = not languages or ("en" in languages and letters["latin"] >= _ENGLISH_SHARE * letters.total())
    return Analyzer(tuple(dict.fromkeys(languages)) or ("en",), is_english)


@lru_cache(4_096)
def _script(letter: str) -> str:
    """Return the script of a letter in lower case, "" of a digit."""
    if not letter.isalpha():
        return ""
    return unicodedata.name(letter, "").partition(" ")[0].partition("-")[0].lower()


@lru_cache(200_000)
def _stemmed(word: str, languages: tuple[str, ...]) -> str:
    script = _script(word[0])
    for language in languages:
        if language in _STEMMERS and _LANGUAGE_SCRIPTS.get(language, "latin") == script:
            return snowball_stem(word, _STEMMERS[language])
    return word


_LANGUAGE_SCRIPTS = {language: script for script, language in _LANGUAGES.items()} | {
    "ru": "cyrillic",
    "fa": "arabic",
}
