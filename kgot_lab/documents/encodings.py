"""The encoding of a text that is not Unicode: the likely one if it is sure, or the likely ones."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

# encodings in which texts are still found; others that charset-normalizer knows are rare
_ENCODINGS = (
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp874 cp437 cp850 cp852 cp866 iso8859_2 iso8859_16 iso8859_5 iso8859_7 koi8_r "
    "koi8_u mac_roman cp932 euc_jp gb18030 big5 cp949"
).split()
_LATIN = tomllib.loads(Path(__file__).with_name("latin.toml").read_text(encoding="utf-8"))["languages"]
_MIXED_SCRIPTS = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "FULLWIDTH", "HANGUL", "LATIN"}
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\uff61-\uff9f]")  # and kana of half width
_SIGNS = ("Lm", "No", "Sc", "Sk", "Sm", "So", "Co", "Cn")  # categories of characters that stand in no word
_PUNCTUATION = ".,;:!?()[]\"'“”„«»‘’…–—"
_SHORT_WORDS = "àáâéèêíîóôúåöøæýőű"
_SAMPLE_LINES, _SAMPLE_BYTES = 200, 100_000
_MULTI_BYTE = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_JAPANESE = ("euc_jp", "cp932")
_KANA_SHARE = 0.15
_SURE_LETTERS = 8  # letters of a script that no word shares with Latin
_MARGIN = 0.15  # by which the letters of the likely one must be more usual in a language


def guess_encoding(data: bytes) -> tuple[str, list[str]]:
    """Decode a text that is neither UTF-8 nor UTF-16 and return it with its encoding.

    If the encoding is not sure, return "" and the likely ones.
    """
    from charset_normalizer import from_bytes

    for encoding in _JAPANESE:
        with suppress(UnicodeDecodeError):
            if _is_japanese(text := data.decode(encoding)):
                return text, [encoding]
    lines = (line for line in data.splitlines(keepends=True) if not line.isascii())
    sample = b"".join(islice(lines, _SAMPLE_LINES))[:_SAMPLE_BYTES]
    if len(sample) == _SAMPLE_BYTES:  # bytes up to "/" are no second half of a character
        sample = sample[: 1 + max(sample.rfind(byte) for byte in b"\n ,.!-\"'")]
    found = [match for match in from_bytes(sample, cp_isolation=_ENCODINGS) if not _is_odd(str(match))]
    if not found:
        return "", []
    best = found[0]
    letters = [letter for letter in str(best) if letter.isalpha()]
    others = sum(not letter.isascii() for letter in letters)
    rivals = [match for match in found if match.chaos <= best.chaos + 0.05]
    if best.encoding in _MULTI_BYTE and others >= _SURE_LETTERS:  # elsewhere valid only by chance
        rivals = [match for match in rivals if match.encoding in _MULTI_BYTE]
    texts = {
        each: str(match) for match in rivals for each in match.could_be_from_charset if each in _ENCODINGS
    }
    if 2 * others < len(letters):
        likely = texts = _likely_latin(texts)
    elif others >= _SURE_LETTERS:
        least = best.coherence - _MARGIN
        likely = {each.encoding: str(each) for each in rivals if each is best or each.coherence >= least}
    else:
        likely = {}
    if len(set(likely.values())) == 1:
        encoding = "cp1252" if "cp1252" in likely else next(iter(likely))
        with suppress(UnicodeDecodeError):
            if not _is_japanese(text := data.decode(encoding)):  # which is in neither encoding of Japanese
                return text, [encoding]
    return "", sorted(likely or texts)


def _is_japanese(text: str) -> bool:
    """Return whether a text has as many kana as only Japanese has: in other encodings they do not occur."""
    letters = [letter for letter in text[:_SAMPLE_BYTES] if letter.isalpha() and not letter.isascii()]
    kana = sum("ぁ" <= letter <= "ー" for letter in letters)
    return len(letters) >= _SURE_LETTERS and kana >= _KANA_SHARE * len(letters)


def _likely_latin(texts: dict[str, str]) -> dict[str, str]:
    """Return the encodings that write the language of a text in Latin letters, as its common words show it."""
    words = Counter(re.findall(r"\b[a-z]+\b", next(iter(texts.values())).lower()))
    counts = [sum(words[word] for word in language["words"].split()) for language in _LATIN]
    likely = [language for language, count in zip(_LATIN, counts, strict=True) if count == max(counts)]
    return {
        encoding: text
        for encoding, text in texts.items()
        for language in likely
        if encoding in language["encodings"].split()
        and {letter for letter in text.lower() if letter.isalpha() and not letter.isascii()}
        <= set(language["letters"])
    }


def _is_odd(text: str) -> bool:
    """Return whether a text has controls, or words that mix scripts or hold capitals or signs within."""
    words = {word.strip(_PUNCTUATION) for word in text.split() if not word.isascii()}
    return bool(_CONTROLS.search(text)) or any(map(_is_odd_word, words))


def _is_odd_word(word: str) -> bool:
    scripts = {unicodedata.name(letter, "?").split()[0] for letter in word if letter.isalpha()}
    if len(scripts) > 1 and not scripts <= _MIXED_SCRIPTS:
        return True
    if scripts == {"LATIN"} and len(word) == 1 and word.islower() and not word.isascii():
        return word not in _SHORT_WORDS
    pairs = [pair for pair in pairwise(word) if not (pair[0] + pair[1]).isascii()]
    return any(
        (one.islower() and other.isupper())
        or (other.isdigit() and one.isalpha() and "LATIN" in scripts)
        or (other.isalpha() and unicodedata.category(one) in _SIGNS)
        or (one.isalpha() and other != word[-1] and unicodedata.category(other) in _SIGNS)
        for one, other in pairs
    )
