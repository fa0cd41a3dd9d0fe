"""Skeletons: one line that says what happens in a text, without the words of its domain."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Protocol

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.vectors import CacheFile, text_key
from kgot_lab.errors import BadInput, BadReply, ModelMissing, NotInstalled, OverBudget, require_parts
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.text.words import POSSESSIVE, stem

# Leakage: domain words of a text that remain in its skeleton.

TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
# what precedes a word that is always capitalised
SENTENCE_START = re.compile(r"(?:^|[.!?:…]['\"”’)\]]*\s+|\n)\W*$|[\"“‘(\[]$")
DEFAULT_CUT = 3.0  # nats: a word in fewer than 1 of 20 texts

_WORDS = Path(__file__).with_name("skeleton_words.txt").read_text(encoding="utf-8").splitlines()
# words without a domain, and those a skeleton is written with: saying "process" of a process is no leak
FUNCTION_WORDS, GENERAL_WORDS = (frozenset(line.split()) for line in _WORDS)


@dataclass(frozen=True)
class LeakCheck:
    """Counts the words of a text that leaked into its skeleton.

    A content word is a domain word if idf(w) = ln(N / df(w)) >= min(cut, ln N), where N is the number of
    texts and df(w) the number of them that hold w or another ending of it, at least 1. So a word of a single
    text always is one, and the cut is in nats. Names (words capitalised in mid-sentence in both texts) and
    numbers leak however common they are, and `common` words never do. Synonyms are not detected, so the count
    is a lower bound.
    """

    texts: int
    frequency: Mapping[str, int] = field(repr=False, hash=False)  # df, by `stem`
    cut: float = DEFAULT_CUT
    common: frozenset[str] = field(default=frozenset(), repr=False)  # by `stem`

    @classmethod
    @check_arguments
    def of(
        cls,
        texts: Iterable[str],
        *,
        cut: float = DEFAULT_CUT,
        common: Iterable[str] = FUNCTION_WORDS | GENERAL_WORDS,
    ) -> LeakCheck:
        """Build the check from texts like those that it will check.

        For a stricter check pass FUNCTION_WORDS as `common`. Raises BadInput for one text in place of a list,
        for no texts, and for an invalid cut.
        """
        stems_by_text = [{stem(word) for word in TOKEN.findall(text)} for text in texts]
        if not stems_by_text:
            raise BadInput("a leak check learns from texts which words are common; give it at least one")
        frequency = Counter(chain.from_iterable(stems_by_text))
        return cls(len(stems_by_text), frequency, _validate_cut(cut), frozenset(map(stem, common)))

    def idf(self, word: str) -> float:
        """Return ln(N / df) of a word, in nats.

        It is 0 for a word that is in every text, and ln N for one that is in a single text or in none.
        """
        return math.log(self.texts / max(self.frequency.get(stem(word), 1), 1))

    def check(self, text: str, skeleton: str) -> tuple[str, ...]:
        """Return the words of a text that leaked into its skeleton.

        They are in lower case, each once, in the order of the skeleton.
        """
        text_stems, names = {stem(word) for word in TOKEN.findall(text)}, _find_names(text)
        found = {}
        for word in TOKEN.findall(skeleton):
            plain = stem(word)
            if plain in text_stems and plain not in found and self._is_leak(word, plain in names):
                found[plain] = POSSESSIVE.sub("", word.casefold())
        return tuple(found.values())

    def calibrated(
        self, texts: Sequence[str], skeletons: Sequence[str], *, share: float = 0.01, seed: int = 0
    ) -> LeakCheck:
        """Choose the lowest cut at which at most `share` of unrelated skeletons seem to leak.

        What a text shares with the skeleton of another text is language, not leakage. Each text is compared
        with up to 20 others, drawn by the seed. Use texts of a dev split. Raises BadInput for lists of
        unequal length or of fewer than 2.
        """
        if len(texts) != len(skeletons) or len(texts) < 2 or not 0 <= share < 1:
            given_values = f"{len(texts)} texts, {len(skeletons)} skeletons and a share of {share}"
            problem = "calibrated() takes as many skeletons as texts, 2 or more"
            raise BadInput(f"{problem}, and a share from 0 to below 1, not {given_values}")
        open_check = replace(self, cut=0.0)
        shifts = random.Random(seed).sample(range(1, len(texts)), min(20, len(texts) - 1))
        rarest = sorted(
            max(map(self.idf, open_check.check(text, skeletons[(row + shift) % len(texts)])), default=-1.0)
            for shift in shifts
            for row, text in enumerate(texts)
        )
        last = rarest[min(math.ceil((1 - share) * len(rarest)), len(rarest)) - 1]
        return replace(self, cut=math.nextafter(max(last, 0.0), math.inf))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that affects the result."""
        parts = self.texts, sorted(self.frequency.items()), self.cut, sorted(self.common)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _is_leak(self, word: str, is_name: bool) -> bool:
        plain = stem(word)
        if plain[0].isdigit():
            return True
        if plain in self.common or len(plain) < 2:
            return False
        return (is_name and word[0].isupper()) or self.idf(word) >= min(self.cut, math.log(self.texts))

    def __repr__(self) -> str:
        return f"<leak check from {self.texts:,} texts: names, numbers and words with an idf of {self.cut:.2f} or more>"


def _find_names(text: str) -> set[str]:
    """Return the capitalised words that do not start a sentence or quotation."""
    return {
        stem(match.group())
        for match in TOKEN.finditer(text)
        if match.group()[0].isupper()
        and not SENTENCE_START.search(text[max(match.start() - 20, 0) : match.start()])
    }


def _validate_cut(cut: float) -> float:
    if not (math.isfinite(cut) and cut >= 0):
        raise BadInput(f"the cut of a leak check is an idf in nats, 0 or more, not {cut}")
    return float(cut)


_log = logging.getLogger(__name__)

BATCH_SIZE = 8  # texts between two writes: the most that an interruption loses
REPLY_LABEL = re.compile(
    r"^[\W_]*(?:here is |the |its |abstract |structural )*(?:skeleton|mechanism|summary|answer|output)[*_\s]*[:=][*_\s]*",
    re.I,
)
BULLET = re.compile(r"^(?:[-•>#]+|\*|\d+[.)])\s+")
_CACHE_NAME = "skeletons-2.sqlite"
QUOTES = dict(zip("\"'`*_“‘«", "\"'`*_”’»", strict=True))  # opening and closing quotes


class SkeletonMaker(Protocol):
    """Anything that maps texts to skeletons. Two makers with the same `digest` are interchangeable."""

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256 of everything that affects the skeletons
    def __call__(self, texts: Sequence[str], /) -> list[str]: ...  # raises LLMError, BadInput


@dataclass(frozen=True)
class Skeletons(Mapping[str, str]):
    """The skeletons of texts, by text, and the reason for each text without one."""

    by_text: Mapping[str, str]
    maker: str
    blank: tuple[str, ...] = ()  # texts without a letter, including repetitions
    failed: Mapping[str, str] = field(default_factory=dict)  # text: why it has no skeleton
    # text: its words that its skeleton still holds
    leaks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, text: str) -> str:
        return self.by_text[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_text)

    def __len__(self) -> int:
        return len(self.by_text)

    def __repr__(self) -> str:
        parts = (("blank", len(self.blank)), ("failed", len(self.failed)), ("leaking", len(self.leaks)))
        return f"<{len(self):,} skeletons by {self.maker}{''.join(f', {count:,} {what}' for what, count in parts if count)}>"


@check_arguments
def make_skeletons(
    texts: Iterable[str],
    maker: SkeletonMaker,
    *,
    folder: Path | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
    leaks: LeakCheck | None = None,
) -> Skeletons:
    """Make the skeletons of texts in batches, reusing stored ones. Each batch is stored at once.

    They are stored in `folder` (the user's cache folder by default) under a hash of maker and text, so an
    interrupted run can be resumed. If a batch fails, each of its texts is tried alone. One that fails again
    is listed in `failed` with the reason, and is retried next time. A blank text gets no skeleton.
    `progress(done, total)` counts the missing texts, before the first batch and after each. Raises BadInput
    if `texts` are not texts or `maker` is not a maker. Raises NotInstalled, ModelMissing and OverBudget,
    since then no text could be processed.
    """
    texts = list(texts)
    use = "a maker is called with texts and has a name and a digest, as LinguisticSkeletons() does"
    require_parts(maker, ("name", "digest", "__call__"), use)
    wanted = {text: text_key(maker.digest, text) for text in texts if not _is_blank(text)}
    file = CacheFile(folder, _CACHE_NAME, label="skeleton", fallback="skeletons are made again")
    known = _read_cache(file, list(wanted.values())) if cache else {}
    missing = [text for text, key in wanted.items() if key not in known]
    failed: dict[str, str] = {}
    for start in range(0, len(missing), BATCH_SIZE):
        _report_progress(progress, start, len(missing))
        made = dict(_make_batch(maker, missing[start : start + BATCH_SIZE], failed))
        fresh = {wanted[text]: skeleton for text, skeleton in made.items()}
        if cache:
            file.write({key: skeleton.encode() for key, skeleton in fresh.items()})
        known |= fresh
    _report_progress(progress, len(missing), len(missing))
    by_text = {text: known[key] for text, key in wanted.items() if key in known}
    found = ((text, leaks.check(text, skeleton)) for text, skeleton in by_text.items()) if leaks else ()
    leaked = {text: words for text, words in found if words}
    blank = tuple(text for text in texts if _is_blank(text))
    return Skeletons(by_text, maker.name, blank, failed, leaked)


def extract_skeleton(reply: str) -> str:
    """Return the skeleton in a reply: its first line with words, without label, bullet and quotes.

    Raises BadReply if there is none.
    """
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in reply.splitlines())
    lines = [line.strip() for line in printable]
    more = [line for line in lines if not line.endswith(":")]  # "Here it is:" is not it
    for line in more or lines:
        skeleton = _strip_quotes(REPLY_LABEL.sub("", _strip_quotes(BULLET.sub("", line.strip()))))
        if not _is_blank(skeleton):
            return skeleton
    raise BadReply("there is no skeleton in it", reply)


def _make_batch(
    maker: SkeletonMaker, texts: Sequence[str], failed: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield each text with its skeleton.

    Texts that fail together are tried one by one. One that fails alone is recorded in `failed`.
    """
    try:
        lines = _run_maker(maker, texts)
    except (NotInstalled, ModelMissing, OverBudget):  # all other texts would fail too
        raise
    except Exception as error:
        # a maker may be anyone's, and hours of others' work must not be lost to one text
        if len(texts) > 1:
            for text in texts:
                yield from _make_batch(maker, [text], failed)
        else:
            failed[texts[0]] = str(error) or type(error).__name__
            _log.warning("no skeleton of %r: %s: %s", texts[0][:60], type(error).__name__, error)
    else:
        yield from zip(texts, lines, strict=True)


def _run_maker(maker: SkeletonMaker, texts: Sequence[str]) -> list[str]:
    """Run a maker on texts and return one line for each.

    Raises BadInput if it returns more or fewer, or an empty one.
    """
    made = maker([replace_surrogates(text) for text in texts])
    if len(made) != len(texts):
        counts = f"{len(made)} skeletons of {len(texts)} texts"
        raise BadInput(f"{maker.name} made {counts}; a maker gives one for each")
    if any(map(_is_blank, made)):
        problem = f"{maker.name} found nothing to tell in it"
        raise BadInput(f"{problem}: nothing but nouns, perhaps, or a language that it does not read")
    return [replace_surrogates(extract_skeleton(skeleton)) for skeleton in made]


def _read_cache(cache: CacheFile, keys: Sequence[bytes]) -> dict[bytes, str]:
    """Return the cached skeletons of some keys. A blank one counts as missing."""
    lines = {key: value.decode() for key, value in cache.read(keys).items()}
    return {key: line for key, line in lines.items() if not _is_blank(line)}


def _is_blank(text: str) -> bool:
    return not any(map(str.isalpha, text))


def _strip_quotes(line: str) -> str:
    """Remove the quotes around a line."""
    line = line.strip()
    while len(line) > 2 and QUOTES.get(line[0]) == line[-1] and line[0] not in line[1:-1].strip(line[0]):
        line = line[1:-1].strip()
    return line


def _report_progress(progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if progress and total:
        progress(done, total)
