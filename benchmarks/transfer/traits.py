"""Numbers for each choice of each question, from which every system of the transfer is made; kept, so that
nothing is read twice.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from kgot_lab.io.files import write_whole

from benchmarks.structure.analogies import Choices
from benchmarks.structure.answered import content_digest
from benchmarks.structure.fitted import Features
from kgot_lab.analogy.alignment import Aligner, AlignmentWeights
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Numbers

TRIED_FORMS, TRIED_DENIALS, TRIED_EVENTS = (0.0, 0.3, 0.6), (0.0, 0.1), (0.0, 0.2, 0.4, 0.6)
MASKED = "skeleton, masked"
_FORMAT = "traits 1"


@dataclass(frozen=True, order=True)
class Setting:
    """How an aligner is set: its weights, whether order counts, and whether the list of connectives is used
    or they are read as well.
    """

    form: float = 0.3
    denial: float = 0.1
    events: float = 0.2
    ordered: bool = True
    connectives: bool = False

    @property
    def parts(self) -> tuple[str, str]:
        """The two traits of which its score is made: sentences, and events."""
        order, read = "" if self.ordered else " any order", " connectives" if self.connectives else ""
        return f"sentences {self.form:g} {self.denial:g}{order}{read}", f"events{order}{read}"

    def __str__(self) -> str:
        words = f"form {self.form:g}, denial {self.denial:g}, events {self.events:g}"
        return f"{words}, {'in order' if self.ordered else 'in any order'}, connectives {'read' if self.connectives else 'dropped'}"


SETTINGS = tuple(
    Setting(*values)
    for values in product(TRIED_FORMS, TRIED_DENIALS, TRIED_EVENTS, (True, False), (False, True))
)


@dataclass(frozen=True, repr=False)
class Traits:
    """Numbers for the choices of some questions: `table` has shape (questions, choices, names)."""

    questions: Choices
    names: tuple[str, ...]
    table: Numbers

    def column(self, name: str) -> Numbers:
        """One trait, shape (questions, choices); raises BadInput for one that is not there."""
        if name not in self.names:
            raise BadInput(f"{self.questions.name} has no trait {name!r}; it has {', '.join(self.names)}")
        return np.asarray(self.table[:, :, self.names.index(name)], np.float64)

    def aligned(self, setting: Setting) -> Numbers:
        """The score of an aligner that is set so, shape (questions, choices)."""
        sentences, events = (self.column(part) for part in setting.parts)
        return np.asarray(
            np.clip((1 - setting.events) * sentences + setting.events * events, 0, 1), np.float64
        )

    def and_with(self, other: Traits) -> Traits:
        """These and other traits of the same questions side by side; raises BadInput for other questions."""
        if [each.id for each in self.questions.questions] != [each.id for each in other.questions.questions]:
            raise BadInput(f"{self.questions.name} and {other.questions.name} are not the same questions")
        return Traits(
            self.questions, (*self.names, *other.names), np.concatenate([self.table, other.table], axis=2)
        )

    def __repr__(self) -> str:
        return f"<{len(self.names)} traits of {len(self.table)} questions of {self.questions.name}>"


class AlignedTraits:
    """The parts of the scores of all aligners that some settings make: a few aligners read the texts, and are
    set anew for each part.
    """

    def __init__(self, embedder: Embedder, settings: Sequence[Setting] = SETTINGS) -> None:
        parts = {part: (setting, number) for setting in settings for number, part in enumerate(setting.parts)}
        self.names = tuple(parts)
        self._parts = list(parts.values())
        self._aligners = {
            read: Aligner(embedder, connectives=read)
            for read in {setting.connectives for setting in settings}
        }

    def prepare(self, texts: Sequence[str]) -> None:
        """Read and embed the texts."""
        for aligner in self._aligners.values():
            aligner.prepare(texts)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The parts, shape (candidates, parts)."""
        columns = []
        for setting, events in self._parts:
            aligner = self._aligners[setting.connectives]
            aligner.weights, aligner.ordered = (
                AlignmentWeights(setting.form, setting.denial, float(events)),
                setting.ordered,
            )
            columns.append(aligner.similarity(source, candidates))
        return np.stack(columns, axis=1)


def traits_of(features: Features, some: Choices) -> Traits:
    """What some features say of every choice of every question."""
    features.prepare(some.texts)
    return Traits(
        some, features.names, np.array([features.of(each.source, each.choices) for each in some.questions])
    )


def keep_traits(traits: Traits, path: Path) -> None:
    """Write traits with four digits after the point: the same ones, the same bytes."""
    head = {
        "format": _FORMAT,
        "set": traits.questions.name,
        "questions": content_digest(traits.questions),
        "names": traits.names,
    }
    rows = [
        {"question": each.id, "traits": [[round(number, 4) + 0.0 for number in choice] for choice in table]}
        for each, table in zip(traits.questions.questions, traits.table.tolist(), strict=True)
    ]
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in [head, *rows])
    write_whole(path, gzip.compress(text.encode(), mtime=0), "the traits")


def kept_traits(path: Path, some: Choices) -> Traits:
    """Read what `keep_traits` wrote; raises BadInput for a file that is broken or of other questions."""
    try:
        head, *rows = (json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())
        table = {row["question"]: row["traits"] for row in rows}
        if (head["format"], head["questions"]) == (_FORMAT, content_digest(some)):
            return Traits(
                some, tuple(head["names"]), np.array([table[each.id] for each in some.questions], np.float64)
            )
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise BadInput(f"{path.name} cannot be read ({error}); make it again") from error
    raise BadInput(f"{path.name} holds traits of other questions than those of {some.name}; make it again")
