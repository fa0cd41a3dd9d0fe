"""Skeletons: what happens in a text, said in one line without the words of its field."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kgot_lab.analogy.skeletons import LeakCheck
from kgot_lab.embedding.cache import CacheFile, CacheTable, text_key
from kgot_lab.errors import BadInput, BadReply, ModelMissing, NotInstalled, OverBudget, require_parts
from kgot_lab.text.cleaning import whole

_log = logging.getLogger(__name__)

LOT = 8  # texts made between two writes: what an interruption can lose
LABEL = re.compile(
    r"^[\W_]*(?:here is |the |its |abstract |structural )*(?:skeleton|mechanism|summary|answer|output)[*_\s]*[:=][*_\s]*",
    re.I,
)
BULLET = re.compile(r"^(?:[-•>#]+|\*|\d+[.)])\s+")
_SKELETONS = CacheTable("skeletons-1.sqlite", "skeletons", "skeleton", "TEXT", "skeleton")
QUOTES = dict(zip("\"'`*_“‘«", "\"'`*_”’»", strict=True))  # what opens, and what closes it


class Maker(Protocol):
    """Anything that turns texts into skeletons, one for each. Of two makers with the same `digest`, each
    makes what the other would.
    """

    @property
    def name(self) -> str: ...
    @property
    def digest(self) -> str: ...  # SHA-256 of what decides the skeletons: prompt, model, version
    def __call__(self, texts: Sequence[str], /) -> list[str]: ...  # raises LLMError, BadInput


@dataclass(frozen=True)
class Skeletons(Mapping[str, str]):
    """The skeletons of some texts, by text, and what became of the texts that have none."""

    by_text: Mapping[str, str]
    maker: str
    blank: tuple[str, ...] = ()  # texts without a letter, as often as they came
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


def skeletons(
    texts: Iterable[str],
    maker: Maker,
    *,
    folder: Path | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
    leaks: LeakCheck | None = None,
) -> Skeletons:
    """The skeletons of some texts: those kept from earlier, and the others made now, a few at a time, each
    lot written at once.

    Kept in `folder` (the user's cache folder by default) under a hash of maker and text, so a run that was
    interrupted goes on where it stopped. When a lot fails, each text of it is tried alone, and one that fails
    again is in `failed` with the reason, to be tried anew next time. A blank text gets none. Before the first
    and after each lot `progress(done, total)` counts the texts that were missing. Raises BadInput for what
    are no texts or no maker; NotInstalled, ModelMissing and OverBudget, because no text could then be made.
    """
    texts = _checked(texts)
    require_parts(
        maker,
        ("name", "digest", "__call__"),
        "a maker is called with texts and has a name and a digest, as Linguistic() does",
    )
    wanted = {text: text_key(maker.digest, text) for text in texts if not _blank(text)}
    kept = _Kept(folder) if cache else None
    known = kept.read(list(wanted.values())) if kept else {}
    missing = [text for text, key in wanted.items() if key not in known]
    failed: dict[str, str] = {}
    for start in range(0, len(missing), LOT):
        _tell(progress, start, len(missing))
        made = dict(_made(maker, missing[start : start + LOT], failed))
        fresh = {wanted[text]: skeleton for text, skeleton in made.items()}
        if kept:
            kept.write(fresh)
        known |= fresh
    _tell(progress, len(missing), len(missing))
    by_text = {text: known[key] for text, key in wanted.items() if key in known}
    leaked = {text: leaks.check(text, skeleton) for text, skeleton in by_text.items()} if leaks else {}
    blank = tuple(text for text in texts if _blank(text))
    return Skeletons(
        by_text, maker.name, blank, failed, {text: words for text, words in leaked.items() if words}
    )


def one_line(reply: str) -> str:
    """The skeleton in a reply: its first line with words, without label, bullet and quotes. Raises BadReply
    if there is none.
    """
    lines = [
        "".join(letter if letter.isprintable() else " " for letter in line).strip()
        for line in reply.splitlines()
    ]
    more = [line for line in lines if not line.endswith(":")]  # "Here it is:" is not it
    for line in more or lines:
        skeleton = _bare(LABEL.sub("", _bare(BULLET.sub("", line.strip()))))
        if not _blank(skeleton):
            return skeleton
    raise BadReply("there is no skeleton in it", reply)


def _made(maker: Maker, texts: Sequence[str], failed: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Each text with its skeleton; texts that fail together are tried one by one, and one that fails alone is
    noted in `failed`.
    """
    try:
        lines = _lines(maker, texts)
    except (NotInstalled, ModelMissing, OverBudget):  # no other text would fare better
        raise
    except (
        Exception
    ) as error:  # a maker may be anyone's, and hours of others' work must not be lost to one text
        if len(texts) > 1:
            for text in texts:
                yield from _made(maker, [text], failed)
        else:
            failed[texts[0]] = str(error) or type(error).__name__
            _log.warning("no skeleton of %r: %s: %s", texts[0][:60], type(error).__name__, error)
    else:
        yield from zip(texts, lines, strict=True)


def _lines(maker: Maker, texts: Sequence[str]) -> list[str]:
    """What a maker makes of some texts, one line for each; raises BadInput if it gives more or fewer, or an
    empty one.
    """
    made = maker([whole(text) for text in texts])
    if len(made) != len(texts):
        raise BadInput(
            f"{maker.name} made {len(made)} skeletons of {len(texts)} texts; a maker gives one for each"
        )
    if any(map(_blank, made)):
        raise BadInput(
            f"{maker.name} found nothing to tell in it: nothing but nouns, perhaps, or a language that it does not read"
        )
    return [whole(one_line(skeleton)) for skeleton in made]


class _Kept:
    """Skeletons made earlier."""

    def __init__(self, folder: Path | None) -> None:
        self._file = CacheFile(folder, _SKELETONS, called="skeleton", without="skeletons are made anew")

    def read(self, keys: Sequence[bytes]) -> dict[bytes, str]:
        """Those of the skeletons with these keys that are kept."""
        known: dict[bytes, str] = {}
        for rows in self._file.read(keys):
            known |= {key: line for key, line in rows if isinstance(line, str) and not _blank(line)}
        return known

    def write(self, fresh: Mapping[bytes, str]) -> None:
        """Keep some skeletons."""
        self._file.write(fresh.items())


def _checked(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise BadInput(f"give a list of texts, not one text: skeletons([{texts[:40]!r}], maker)")
    texts = list(texts)
    if odd := [text for text in texts if not isinstance(text, str)]:
        raise BadInput(
            f"{len(odd)} of {len(texts)} are not texts, the first is {odd[0]!r}; give '' for a thing without a description"
        )
    return texts


def _blank(text: str) -> bool:
    return not any(map(str.isalpha, text))


def _bare(line: str) -> str:
    """A line without the quotes around it."""
    line = line.strip()
    while len(line) > 2 and QUOTES.get(line[0]) == line[-1] and line[0] not in line[1:-1].strip(line[0]):
        line = line[1:-1].strip()
    return line


def _tell(progress: Callable[[int, int], None] | None, done: int, total: int) -> None:
    if progress and total:
        progress(done, total)
