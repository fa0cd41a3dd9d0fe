"""Entities of documents by rule: names in scripts with capitals, recurring strings in scripts without, cells of
tables, and the spellings that mean the same entity.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, takewhile
from pathlib import Path
from typing import NamedTuple

from kgot_lab.io.files import read_tables
from kgot_lab.retrieval.entity_linking import CAPITAL_LETTERS, NameIndex
from kgot_lab.text.function_words import detect_language, function_words, is_calendar_word
from kgot_lab.text.words import light_stem, normalise_nfc
from kgot_lab.types import Document

MAX_NAME_LENGTH = 60  # characters of a name
_MAX_WORDS = 6  # words of a name; a longer run of capitals is a heading
_LISTS = read_tables(Path(__file__).with_suffix(".txt"))["words"]
_WORDS = {name: frozenset(words.split()) for name, words in _LISTS}
HONORIFICS = _WORDS["honorifics"]
_JOINING_WORDS = _WORDS["joining"]
_GERMAN_JOINING_WORDS = _WORDS["joining in German"]
_NUMBERED_PARTS = _WORDS["numbered parts"]
_NO_NAMES = _WORDS["no names"]
_LEGAL_FORMS = _WORDS["legal forms"]
_COMPANY_ENDINGS = _WORDS["company endings"]
_AND = re.compile(r"\b(?:and|und|et|y|e|en|og|och|и)\b")
_DETERMINERS = _WORDS["determiners"]
_GERMAN_ENDINGS = ("ung", "ungen", "heit", "keit", "schaft", "tion", "tät", "nis", "ismus", "chen")
_BEFORE_GERMAN_NAMES = _WORDS["before German names"]

_NICKNAMED = r"[^\W\d_a-z][\w'’\-]*"  # in capitals, of any script
_TOKEN = re.compile(
    rf"(?!(?:Der|Die|Das|Im|In|The|A|An|Le|La|El|Il)\b){_NICKNAMED}\.? [\"“„]{_NICKNAMED}[\"“”](?= [^\W\d_a-z])"
    r"|&|[^\W_](?:[\w'’\-/]|\.(?=\w)|&(?=\w))*\.?"
)
_ABBREVIATED = re.compile(r"(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Mt|Ft|Hon|Rev|Gen|Col|Lt|Capt|Sra|Nr|[^\W\d_])\.$")
_OPENS = re.compile(r"(?:^|[:.!?•–—|*\[({\"“„«‘¿¡;-]\s*)$")
# the key of a row, the name of its column, and the other cells
_ROW = re.compile(r"((?:[^:：;；]|:(?=\S)){1,60}?)(?: \(((?:[^()]|\([^()]*\))*)\))?(?::\s+|：\s*)(.+)")
_CELL_PARTS = re.compile(r"\s*[,、/]\s*")
_CELL_END = re.compile(r"\s*[;；]\s*")
_CODE_SIGN = re.compile(r"[`{}<>=_\\]")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_NOT_GIVEN = " not given"  # after the names of the columns without a value, at the end of a row
_NO_VALUE = re.compile(
    r"not given|nan|none|null|nil|#?n/?a|#(?:ref|value|num|null|div/0|name)[!?]|[?–—-]+|", re.IGNORECASE
)
_TRUTH = re.compile(r"true|false|yes|no|ja|nein|oui|non", re.IGNORECASE)


class _Token(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def is_capital(self) -> bool:
        return self.text[0] in CAPITAL_LETTERS

    @property
    def key(self) -> str:
        return self.text.rstrip(".").lower()


@dataclass(frozen=True)
class _Run:
    """A run of capitalised words: its tokens, whether it opens a sentence, and the words before it."""

    tokens: tuple[_Token, ...]
    opens: bool
    before: tuple[str, ...]
    language: str

    @property
    def text(self) -> str:
        words = [token.text for token in self.tokens]
        last = re.sub(r"['’](?:s|S)?$", "", words[-1])
        last = last if _ABBREVIATED.search(last) and len(words) > 1 and "." in last[:-1] else last.rstrip(".")
        return " ".join([*words[:-1], last])

    def without_first(self) -> _Run:
        before = (*self.before, self.tokens[0].key)
        return replace(self, tokens=self.tokens[1:], opens=False, before=before)


class EntityFinder:
    """Finds the entities in sentences of some documents, and merges their spellings.

    A word with a capital is no name if it is a function word, a greeting or a month, or if it only opens
    sentences and nothing else shows that it is a name. In German, where nouns have capitals, a single word is
    a name only if no article stands before it anywhere. In scripts without capitals, names are quoted titles,
    words with an ending such as 市, and strings that recur in two sentences with different neighbours. A row of
    a table, "key: column value; column value", mentions its key and its cells. No model is needed.
    """

    def __init__(self, sentences: Iterable[str], titles: Iterable[str] = ()) -> None:
        texts = [normalise_nfc(sentence) for sentence in sentences]
        self._columns = column_names(texts)
        texts = list(dict.fromkeys(filter(None, texts)))
        self._language = detect_language(texts)
        self._titles = tuple(dict.fromkeys(titles))
        tokens = [list(map(_token, _TOKEN.finditer(text))) for text in texts]
        self._lower = {light_stem(t.key) for words in tokens for t in words if t.text[0].islower()}
        self._inside: Counter[str] = Counter()  # runs that open no sentence
        self._opening: Counter[str] = Counter()
        runs = [run for text in texts for part in self._parts(text) for run in self._runs(part)]
        singles = (run for run in runs if run.language == "de" and len(run.tokens) == 1)
        self._german_nouns = {run.tokens[0].key for run in singles if _has_determiner(run)}
        for run in runs:
            (self._opening if run.opens else self._inside)[run.text] += 1
        self._recurring = recurring_strings(text for text in texts if has_caseless(text))
        self._known = NameIndex([])
        counts = Counter(name for text in texts for name in self._find(text))
        self._known = NameIndex(Document(name, "", name) for name in counts)
        self.spellings = merge_spellings(counts, self._titles)

    def find(self, sentence: str) -> list[str]:
        """Return the entities in a sentence, in order, each by its usual spelling."""
        names = (self.spellings.get(name, name) for name in self._find(normalise_nfc(sentence)))
        return list(dict.fromkeys(names))

    @property
    def aliases(self) -> dict[str, list[str]]:
        """The other spellings of each entity that has several."""
        merged: dict[str, list[str]] = defaultdict(list)
        for spelling, name in self.spellings.items():
            if spelling != name:
                merged[name].append(spelling)
        return dict(merged)

    def _parts(self, text: str) -> list[str]:
        """Return the texts in which runs of capitals are read: the key and values of a row, or the text."""
        row = split_row(text, self._columns)
        return [text] if row is None else [row[0], *(value for _, value in row[1])]

    def _find(self, text: str) -> Iterator[str]:
        row = split_row(text, self._columns)
        if row is not None:
            yield from self._names_in_row(*row)
            return
        if has_caseless(text):
            yield from _caseless_names(text, self._recurring, self._titles)
        if self._has_capitals_throughout(text):
            yield from self._names_in_capitals(text)
            return
        for run in self._runs(text):
            yield from self._names_of_run(run)

    def _names_in_row(self, key: str, cells: Sequence[tuple[str, str]]) -> Iterator[str]:
        if _is_cell_name(key) or re.fullmatch(r"[^\W_]*[^\W\d_][\w-]*", key):  # the code of an article too
            yield key
        values = (value for _, value in cells if not (_TRUTH.fullmatch(value) or _CODE_SIGN.search(value)))
        for part in (part for value in values for part in self._split_value(value)):
            found = [] if split_row(part) else list(self._find(part))
            yield from found or ([part] if self._is_value_name(part) else [])

    def _split_value(self, value: str) -> list[str]:
        """Split a value at commas, but leave "Castrell, Odo" whole if someone is called Odo Castrell."""
        family, _, first = value.partition(", ")
        turned = f"{first} {family}"
        if self._inside[turned] + self._opening[turned] and _is_cell_name(value):
            return [turned]
        return _CELL_PARTS.split(value)

    def _is_value_name(self, value: str) -> bool:
        """Return whether the whole value of a cell is a name: words with capitals, or few characters."""
        if not _is_cell_name(value):
            return False
        if has_caseless(value):
            most = _MAX_HAN_VALUE if _HAN_RUN.search(value) else MAX_NAME_LENGTH
            return len(value.split()) <= 3 and len(value) <= most
        words = value.split()
        if len(words) == 1:
            is_rare = self._language == "de" and self._inside[value] + self._opening[value] < 2
            return value[0] in CAPITAL_LETTERS and not is_rare and not self._is_common_word(value.lower())
        return all(w[0] in CAPITAL_LETTERS or w.isdigit() or w in {"&", *_JOINING_WORDS} for w in words)

    def _has_capitals_throughout(self, text: str) -> bool:
        """Return whether a line is in capitals, or is a title in which each word has one: "How We Saved The Mill"."""
        letters = [letter for letter in text if letter.isalpha()]
        if sum(map(str.isupper, letters)) > 0.8 * len(letters) and " " in text.strip():
            return True
        words = re.findall(r"[^\W\d_]+", text)
        long = [word for word in words[1:] if len(word) > 3]
        raised = [
            word for word in words[1:] if word[0].isupper() and word.lower() in function_words(self._language)
        ]
        return len(words) > 3 and bool(raised) and all(word[0].isupper() for word in long) and "," not in text

    def _names_in_capitals(self, text: str) -> Iterator[str]:
        """Yield the names in a line in capitals that other sentences spell with small letters too."""
        for name in self._known.find_names(text, cased=False):
            yield self._known[name][-1]

    def _runs(self, text: str) -> Iterator[_Run]:
        """Yield the runs of capitalised words in a text."""
        tokens = list(map(_token, _TOKEN.finditer(text)))
        language = detect_language([text], self._language)
        joining = _GERMAN_JOINING_WORDS if language == "de" else _JOINING_WORDS
        at = 0
        while at < len(tokens):
            if not tokens[at].is_capital:
                at += 1
                continue
            end = at + 1
            while longer := _next_of_run(text, tokens, end, joining):
                end = longer
            before = tuple(token.text.lower() for token in tokens[max(0, at - 3) : at])
            yield _Run(tuple(tokens[at:end]), bool(_OPENS.search(text[: tokens[at].start])), before, language)
            at = end

    def _names_of_run(self, run: _Run) -> Iterator[str]:
        """Yield the names in a run of capitalised words: none, one, or those on both sides of an "of"."""
        stripped = self._without_openers(run)
        if stripped is not None and len(stripped.tokens) > 2 and _YEAR.fullmatch(stripped.tokens[-1].text):
            stripped = replace(stripped, tokens=stripped.tokens[:-1])
        if stripped is None or len(stripped.text) > MAX_NAME_LENGTH or len(stripped.tokens) > _MAX_WORDS:
            return
        if len(stripped.tokens) == 1 and not self._is_name(stripped):
            return
        parts = re.split(r" (?:of|de|von|van|di|da) (?:the |la )?", stripped.text)
        known = (self._inside, self._opening)
        if len(parts) == 2 and " " in parts[0] and all(any(p in seen for seen in known) for p in parts):
            yield from parts
        else:
            yield stripped.text

    def _without_openers(self, run: _Run) -> _Run | None:
        """Remove words from the start of a run that are no part of the name, or return None if all are."""
        words = function_words(run.language)
        while run.tokens:
            first, rest = run.tokens[0], run.tokens[1:]
            dated = is_calendar_word(first.text) or first.key in _NUMBERED_PARTS or first.text == "&"
            if all(is_calendar_word(t.text) or t.text[0].isdigit() for t in run.tokens):
                return run if any(len(t.text) == 4 and t.text.isdigit() for t in run.tokens) else None
            is_opener = first.key in words or (run.opens and first.key in function_words("en"))
            keeps = run.text in self._inside if run.opens else rest and run.language not in ("en", "de")
            is_role = len(rest) > 1 and run.language == "de"
            is_role &= _has_determiner(run) or self._is_german_noun(first)
            repeats = run.opens and rest and light_stem(first.key) in self._lower
            repeats = repeats and self._inside[run.without_first().text] > 0
            if dated or (is_opener and not keeps) or is_role or repeats:
                run = replace(run.without_first(), opens=run.opens and not (dated or is_opener))
                while run.tokens and not run.tokens[0].is_capital:
                    run = run.without_first()
                continue
            return run
        return None

    def _is_name(self, run: _Run) -> bool:
        """Return whether a single capitalised word is a name."""
        token, text = run.tokens[0], run.text
        is_no_name = (
            token.key in {*HONORIFICS, *_NO_NAMES} or is_calendar_word(text) or _NO_VALUE.fullmatch(text)
        )
        is_common = self._is_common_word(token.key) and not _is_marked(text)
        if len(text) < 2 or is_no_name or is_common or _CODE_SIGN.search(text):
            return False
        if _is_marked(text) or token.text.endswith(("'s", "’s")):
            return True
        if run.language == "de":
            if self._is_german_noun(token) or _has_determiner(run):
                return False
            after_preposition = bool(run.before) and run.before[-1] in _BEFORE_GERMAN_NAMES
            is_bare_noun = token.key.endswith(("e", "en", "er"))
            return (after_preposition and not is_bare_noun) or self._inside[text] + self._opening[text] > 1
        if not run.opens:
            return len(text) > 2 or text in self._inside
        return self._inside[text] > 0 or self._opening[text] > 1 or self._is_part(text)

    def _is_part(self, text: str) -> bool:
        return any(f" {text} " in f" {title} " for title in self._titles)

    def _is_common_word(self, word: str) -> bool:
        languages = ("en", self._language)
        return light_stem(word) in self._lower or any(word in function_words(each) for each in languages)

    def _is_german_noun(self, token: _Token) -> bool:
        return token.key in self._german_nouns or (len(token.key) > 5 and token.key.endswith(_GERMAN_ENDINGS))


def _token(match: re.Match[str]) -> _Token:
    text = match[0]
    if text.endswith(".") and not (_ABBREVIATED.fullmatch(text) or "." in text[:-1]):
        text = text[:-1]
    return _Token(text, match.start(), match.start() + len(text))


def _next_of_run(text: str, tokens: Sequence[_Token], end: int, joining: frozenset[str]) -> int:
    """Return the end of a run with the next word of it, or 0 at its end."""
    last = end
    for token in tokens[end : end + 3]:
        if text[tokens[last - 1].end : token.start] != " " or token.text == "I":
            return 0
        last += 1
        joined = last - 1 - end
        if token.is_capital:
            begins_anew = token.key in HONORIFICS or token.key in function_words("en")
            return 0 if begins_anew and not joined else last
        if token.text[0].isdigit():
            followed = last < len(tokens) and tokens[last].is_capital
            return last if not joined and not followed and len(token.text) <= 4 else 0
        is_company = (
            _AND.fullmatch(token.text) and last < len(tokens) and tokens[last].key in _COMPANY_ENDINGS
        )
        article = token.text == "the" and tokens[last - 2].text == "of"
        if not (token.text == "&" or is_company or article or token.text in joining):
            return 0
    return 0


def _has_determiner(run: _Run) -> bool:
    """Return whether an article, a pronoun or a number stands before a run, with adjectives between them."""
    before = list(run.before)
    while (
        len(before) > 1
        and before[-1] not in _DETERMINERS
        and before[-1].endswith(("e", "en", "er", "es", "em"))
    ):
        before.pop()
    return bool(before) and (before[-1] in _DETERMINERS or before[-1].isdigit())


def _is_marked(text: str) -> bool:
    """Return whether the spelling of a word shows a name: NATO, McDonald, B12, Anna-Maria."""
    inner = text[1:]
    return len(text) > 1 and (any(map(str.isupper, inner)) or any(map(str.isdigit, inner)))


def _is_cell_name(text: str) -> bool:
    letters = sum(map(str.isalpha, text))
    if _CODE_SIGN.search(text) or _NO_VALUE.fullmatch(text) or text.lower() in function_words("en"):
        return False
    is_date = all(is_calendar_word(word) or not word[0].isalpha() for word in text.split())
    return letters > sum(map(str.isdigit, text)) and len(text) <= MAX_NAME_LENGTH and not is_date


def split_row(sentence: str, columns: Collection[str] = ()) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the key of a row of a table and its cells, each a column and a value, or None for another text.

    `columns` are those that `column_names` finds. Cells that say that a value is missing are left out.
    """
    row = _match_row(sentence)
    if row is None:
        return None
    cells: list[tuple[str, str]] = []
    for cell in filter(None, _CELL_END.split(row[3])):
        name, value = _split_cell(cell, columns)
        if cells and cells[-1][0] in columns and name not in columns and cell[0].islower():
            cells[-1] = cells[-1][0], f"{cells[-1][1]}; {cell}"  # the value has a semicolon
        else:
            cells.append((name, value))
    if len(cells) == 1 and cells[0][0] not in columns:
        return None
    return row[1].strip(), [(name, value) for name, value in cells if not _NO_VALUE.fullmatch(value)]


def _match_row(text: str) -> re.Match[str] | None:
    row = _ROW.fullmatch(text)
    if row is None or row[1].count('"') % 2 or row[1].count("(") != row[1].count(")"):
        return None
    return row if row[2] or text[-1] not in ".!?。" else None


def _split_cell(cell: str, columns: Collection[str]) -> tuple[str, str]:
    words = cell.split(" ")
    is_value = words[0][:1] in CAPITAL_LETTERS or len(words) < 2
    size = max((n for n in range(1, len(words)) if " ".join(words[:n]) in columns), default=int(not is_value))
    return " ".join(words[:size]), " ".join(words[size:])


def column_names(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of the columns of tables, of which each row is a text and another text ends a table.

    A name is how all cells of a column begin, or what a row says is not given. A row with one cell and without
    a name of its first column is read as one only beside another that begins alike.
    """
    found: set[str] = set()
    for kind, table in groupby(
        map(_match_row, texts), lambda row: row and (row[2], bool(_CELL_END.search(row[3])))
    ):
        rows = [_CELL_END.split(row[3]) for row in table if row]
        first_words = {cells[0].split(" ")[0] for cells in rows}
        is_prose = len(first_words) > 1 or len(rows) < 2 or first_words <= function_words("en")
        if kind is None or (is_prose and not kind[1]):
            continue
        missing = [cells.pop().removesuffix(_NOT_GIVEN) for cells in rows if cells[-1].endswith(_NOT_GIVEN)]
        found.update(name for names in missing for name in names.split(", "))
        columns: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
        for number, words in ((at, cell.split()) for at, cells in enumerate(rows) for cell in cells):
            if len(words) > 1 and (_is_of_name(words[0]) or not words[0].istitle()):
                columns[words[0]].append((number, words))
        for cells in columns.values():
            if len(cells) >= min(len(rows), 2):  # a row without a value says so
                found.update(_common_beginnings(cells, 1))
    return frozenset(found)


def _common_beginnings(cells: Sequence[tuple[int, list[str]]], size: int) -> Iterator[str]:
    """Yield the names of the columns whose cells, each with its row, have the first `size` words in common.

    Two of these cells in one row are of different columns, which a further word tells apart.
    """
    first = cells[0][1]
    if any(words != first for _, words in cells) or not all(map(_is_of_name, first[size:])):
        beside = zip(*(words[size:-1] for _, words in cells), strict=False)
        size += len([*takewhile(lambda each: len({*each}) == 1 and _is_of_name(each[0]), beside)])
    yield " ".join(first[:size])
    if len({row for row, _ in cells}) < len(cells):
        longer: dict[str, list[tuple[int, list[str]]]] = defaultdict(list)
        for row, words in cells:
            if len(words) > size + 1 and (words[size].isdigit() or _is_of_name(words[size])):
                longer[words[size]].append((row, words))
        for group in longer.values():
            yield from _common_beginnings(group, size + 1)


def _is_of_name(word: str) -> bool:
    """Return whether a word may be of the name of a column, in which no word has a capital and small letters."""
    return not (
        word[0].isdigit() or _TRUTH.fullmatch(word) or (word.istitle() and word.isalpha() and len(word) > 1)
    )


# Scripts without capitals.

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_SPACED = "\u0590-\u0dff\u10a0-\u10ff\u1200-\u137f\uac00-\ud7a3\ufb1d-\ufdff\ufe70-\ufefc"  # Hebrew to Sinhala, Georgian, Ethiopic, Hangul
_CASELESS = re.compile(f"[{_HAN}{_KATAKANA}\u3041-\u309f{_UNSPACED}{_SPACED}]")
_QUOTED = re.compile(
    r"《([^《》]{1,40})》|『([^『』]{1,40})』|「([^「」]{1,30})」(?!と)|〈([^〈〉]{1,40})〉|«([^«»]{1,40})»|[\"“„”]([^\"“„”]{2,40})[\"“”]"
)
_SENTENCE_SIGN = re.compile(r"[.。!！?？]")
_HAN_RUN = re.compile(f"[{_HAN}]+")
_KATAKANA_RUN = re.compile(f"[{_KATAKANA}]+(?:[・＝·][{_KATAKANA}]+)*")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SPACED_WORD = re.compile(f"[{_SPACED}]+")
# characters at neither end of a Chinese or Japanese name
_FUNCTION_CHARACTERS = frozenset(
    "的了是在和与或就也都不有我你他她它这那其为及被把从到对着而且则并之让很更最还又再才没每各个於與為從對這個們"
)
_COUNTED = re.compile("[一二三四五六七八九十百千万零两半几第年月日元个届晚场家批种岁点春夏秋冬天来]+")
_MAX_HAN_TITLE = 6  # characters of a name with 的
_MAX_HAN_VALUE = 4  # characters of a value that is a name
_NO_HAN_END = _FUNCTION_CHARACTERS | frozenset("里上下中内前后由向将过得使给等所去来说住于至")
_PLACE_ENDING = (
    "博物馆|图书馆|委员会|铸造厂"
    "|大学|学院|公司|银行|医院|中学|小学|协会|村庄|市|县|縣|省|区|區|镇|鎮|村|州|路|街|河|江|湖|桥|橋|港|岛|島|駅|府|町|川|山|寺|社|庁"
)
_ENDING_NAME = re.compile(rf"([{_HAN}]{{2,6}}?(?:{_PLACE_ENDING}))(?![{_HAN}]*(?:{_PLACE_ENDING}))")
_PERSON = re.compile(rf"([{_HAN}{_KATAKANA}・]{{1,10}}?)(?:先生|女士|小姐|教授|博士|さん|さま|様|氏)")
_PARTICLES = (
    "에게서|한테서|으로서|에서는|에게는|입니다|이었다|에서|에게|한테"
    "|까지|부터|으로|처럼|보다|이다|은|는|이|가|을|를|에|의|와|과|도|로|만"
)
_PARTICLE_ENDING = re.compile(rf"(?<=[\uac00-\ud7a3]{{2}})(?:{_PARTICLES})$")
_NO_NAME_RUN = re.compile(
    f"(?!さん|さま|(?<=さ)[んま])[^{_HAN}{_KATAKANA}・]|[{''.join(sorted(_FUNCTION_CHARACTERS))}于於在给送由向往座位用住]"
)
_SPACED_STOP_WORDS = _WORDS["stop words without capitals"]
_NO_THAI_START, _NO_THAI_END = re.compile(r"[\u0e30-\u0e3a\u0e45-\u0e4e]"), re.compile(r"[\u0e40-\u0e44]")
_MAX_GRAM, _MIN_THAI = 10, 4  # characters


def has_caseless(text: str) -> bool:
    """Return whether a text holds letters of a script without capitals."""
    return bool(_CASELESS.search(text))


def recurring_strings(sentences: Iterable[str]) -> frozenset[str]:
    """Return the strings of scripts without capitals that recur in two sentences as words do.

    Before and after such a string stand at least two different characters or an end (accessor variety, Feng et
    al. 2004), and no longer string recurs as often in its place.
    """
    found_in: Counter[str] = Counter()
    before: dict[str, set[str]] = defaultdict(set)
    after: dict[str, set[str]] = defaultdict(set)
    for number, sentence in enumerate(sentences):
        grams: set[str] = set()
        for gram, left, right in _grams(sentence):
            grams.add(gram)
            before[gram].add(left or f"start {number}")
            after[gram].add(right or f"end {number}")
        found_in.update(grams)
    words = {g for g, n in found_in.items() if n > 1 and len(before[g]) > 1 and len(after[g]) > 1}
    covered = {
        part
        for word in words
        for part in _parts_of(word)
        if part in words and found_in[part] == found_in[word]
    }
    return frozenset(words - covered)


def _parts_of(word: str) -> Iterator[str]:
    pieces, glue = (word.split(" "), " ") if " " in word else (list(word), "")
    yield from (
        glue.join(pieces[start:end])
        for start, end in combinations(range(len(pieces) + 1), 2)
        if end - start < len(pieces)
    )


_Gram = tuple[str, str, str]  # a string, and the characters or words before and after it, "" at an end


def _grams(sentence: str) -> Iterator[_Gram]:
    """Yield the strings of a sentence that may be names, each with what stands around it."""
    for run in _HAN_RUN.findall(sentence):
        for gram, before, after in _parts_with_context(run, 2, _MAX_GRAM):
            is_counted = gram[0] in "由年" or _COUNTED.fullmatch(gram)
            is_phrase = "的" in gram and len(gram) > _MAX_HAN_TITLE
            if (
                not is_counted
                and not is_phrase
                and gram[0] not in _FUNCTION_CHARACTERS
                and gram[-1] not in _NO_HAN_END
            ):
                left, right = ("" if each in _FUNCTION_CHARACTERS else each for each in (before, after))
                yield gram, left, right
    for run in _UNSPACED_RUN.findall(sentence):
        for gram, before, after in _parts_with_context(run, _MIN_THAI, 2 * _MAX_GRAM):
            begins_inside = _NO_THAI_START.match(gram) or _NO_THAI_START.match(after)
            if not (begins_inside or _NO_THAI_END.match(gram[-1])):
                yield gram, before, after
    yield from ((run, "", "") for run in _KATAKANA_RUN.findall(sentence) if len(run) > 2)
    words = ["", *_SPACED_WORD.findall(sentence), ""]
    for start in range(1, len(words) - 1):
        for end in range(start + 1, min(len(words) - 1, start + 4) + 1):
            stem = _PARTICLE_ENDING.sub("", words[end - 1])
            gram = " ".join([*words[start : end - 1], stem])
            if not {words[start], stem} & _SPACED_STOP_WORDS and len(gram) > 1:
                left, right = (
                    "" if words[at] in _SPACED_STOP_WORDS else words[at] for at in (start - 1, end)
                )
                yield gram, left, right if stem == words[end - 1] else f"{words[end - 1]} {right}"


def _parts_with_context(text: str, least: int, most: int) -> Iterator[_Gram]:
    for start in range(len(text)):
        for end in range(start + least, min(len(text), start + most) + 1):
            yield text[start:end], text[start - 1 : start], text[end : end + 1]


def _caseless_names(text: str, recurring: frozenset[str], titles: Sequence[str]) -> Iterator[str]:
    """Yield the names in a text of a script without capitals."""
    for title in titles:
        if len(title) > 1 and has_caseless(title) and title in text:
            yield title
    for match in _QUOTED.finditer(text):
        quoted = next(filter(None, match.groups()))
        if has_caseless(quoted) and not _SENTENCE_SIGN.search(quoted) and len(quoted.split()) <= 6:
            yield quoted.strip()
    plain = _QUOTED.sub(lambda match: " " * len(match[0]), text)
    found = dict.fromkeys(gram for gram, _, _ in _grams(plain) if gram in recurring)
    names = {
        match[1].strip("・"): None
        for run in _NO_NAME_RUN.split(plain)
        for pattern in (_ENDING_NAME, _PERSON)
        for match in pattern.finditer(run)
        if len(match[1]) > 1
    }
    names |= dict.fromkeys(run for run in _KATAKANA_RUN.findall(plain) if re.search("[・＝·]", run))
    every = [*found, *names]
    yield from (name for name in every if not any(name != other and name in other for other in every))


# Spellings of one entity.

_SIGNS = re.compile(r"[^\w&]+")
_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "å": "aa", "æ": "ae", "œ": "oe"}
)


def fold_name(name: str) -> str:
    """Fold a name for comparison: case, accents, hyphens and dots, "&" and "and", possessives, first article."""
    text = re.sub(r"['’]s\b|['’]$", "", normalise_nfc(name)).lower().translate(_UMLAUTS)
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not ("\u0300" <= c <= "\u036f"))
    words = _SIGNS.sub(" ", _AND.sub("&", text).replace("'", "")).split()
    return " ".join(words[1:] if words[:1] == ["the"] and len(words) > 2 else words)


def merge_spellings(counts: Mapping[str, int], titles: Iterable[str] = ()) -> dict[str, str]:
    """Map each spelling of a name to the usual one: a title, or else the most frequent, or else the longest.

    "Castrell, Odo" and "Mr Castrell" are "Odo Castrell" if no one else has this family name. A plural is its
    singular if both occur. Numbers are never changed.
    """
    titled = {fold_name(title): title for title in titles}
    groups: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        groups[_entity_key(name)].append(name)
    people: dict[str, set[str]] = defaultdict(set)
    for key in groups:
        words = key.split()
        if (
            2 <= len(words) <= 4
            and not set(words) & {"&", *_JOINING_WORDS}
            and key.replace(" ", "").isalpha()
            and words[0] not in HONORIFICS
        ):
            people[words[-1]].add(key)
    for name in counts:
        words = fold_name(name).split()
        if len(words) == 2 and words[0] in HONORIFICS and len(people[words[1]]) == 1:
            target = next(iter(people[words[1]]))
            spelled = groups.pop(words[1], []) if words[1] != target else []
            groups[target] += [*spelled, *(n for n in groups.pop(" ".join(words), []) if n not in spelled)]
    for key in [key for key in groups if key.endswith("s") and key[:-1] in groups and len(key) > 4]:
        if not key.split()[-1][:-1].isdigit():
            groups[key[:-1]] += groups.pop(key)
    forms = Counter(key.rpartition(" ")[0] for key in groups if key.split(" ")[-1] in _LEGAL_FORMS)
    for key in [*groups]:  # "Belt Tools" is "Belt Tools Ltd" if there is no "Belt Tools Inc"
        bare, _, form = key.rpartition(" ")
        if form in _LEGAL_FORMS and " " in bare and bare in groups and forms[bare] == 1:
            groups[bare] += groups.pop(key)
    merged: dict[str, str] = {}
    for key, names in groups.items():
        best = max(
            names, key=lambda name: ("," not in name, not has_honorific(name), counts[name], len(name))
        )
        merged |= dict.fromkeys(names, titled.get(key, best))
    return merged


def has_honorific(name: str) -> bool:
    """Return whether a name begins with a form of address, such as "Mrs"."""
    return bool(HONORIFICS.intersection(fold_name(name).split()[:1]))


def _entity_key(name: str) -> str:
    """Return the folded name, with the first name first and without an honorific before a full name."""
    family, comma, first = name.partition(", ")
    if comma and first and len(name.split()) <= 4 and "," not in first:
        name = f"{first} {family}"
    words = fold_name(name).split()
    return " ".join(words[1:] if len(words) > 2 and words[0] in HONORIFICS else words)
