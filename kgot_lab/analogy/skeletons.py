"""Skeletons: one line that says what happens in a text, without the words of its domain."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.vectors import CacheFile, text_key
from kgot_lab.errors import BadInput, BadReply, ModelMissing, NotInstalled, OverBudget, require_parts
from kgot_lab.text.cleaning import replace_surrogates

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


@check_arguments
@dataclass(frozen=True)
class Skeletons(Mapping[str, str]):
    """The skeletons of texts, by text, and the reason for each text without one."""

    by_text: Mapping[str, str]
    maker: str
    blank: tuple[str, ...] = ()  # texts without a letter, including repetitions
    failed: Mapping[str, str] = field(default_factory=dict)  # text: why it has no skeleton

    def __getitem__(self, text: str) -> str:
        return self.by_text[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_text)

    def __len__(self) -> int:
        return len(self.by_text)

    def __repr__(self) -> str:
        parts = (("blank", len(self.blank)), ("failed", len(self.failed)))
        return f"<{len(self):,} skeletons by {self.maker}{''.join(f', {count:,} {what}' for what, count in parts if count)}>"


@check_arguments
def make_skeletons(
    texts: Iterable[str],
    maker: SkeletonMaker,
    *,
    folder: Path | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
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
    blank = tuple(text for text in texts if _is_blank(text))
    return Skeletons(by_text, maker.name, blank, failed)


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
