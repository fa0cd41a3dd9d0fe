"""The receipts of the transfer: traits of all questions, made once; every number follows from them without a
model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path

from benchmarks.structure.analogies import Choices
from benchmarks.structure.answered import load_choices
from benchmarks.structure.fitted import Features, Said, Together
from benchmarks.structure.instruments import Instruments
from benchmarks.transfer.compared import HeldOut
from benchmarks.transfer.encodings import EncodedTraits, Encoder
from benchmarks.transfer.held_sets import ANSWERED_TOO, DRAWN_FROM, HELD_SETS, held_questions
from benchmarks.transfer.outcomes import OutcomeTraits
from benchmarks.transfer.rewordings import reworded_pairs
from benchmarks.transfer.systems import Sets, chosen_setting
from benchmarks.transfer.traits import (
    MASKED,
    SETTINGS,
    AlignedTraits,
    Setting,
    Traits,
    keep_traits,
    kept_traits,
    traits_of,
)
from benchmarks.transfer.twins import TELLINGS, twin_questions

# by the set that each was learnt without; learnt when first asked for
Encoders = Callable[[], Mapping[str, Encoder]]
_STORIES, _WORDS = "storyanalogy", "scan"


def make_traits(tools: Instruments, folder: Path, drawn: Path) -> Iterator[Choices]:
    """Work out the traits of every question that has none in the folder; `drawn` holds the questions of the
    structure benchmark.

    The sets from which settings are chosen get the parts of all settings, the others those of the chosen
    ones. Encoders are learnt where an encoded trait is missing.
    """
    encoders: Encoders = cache(lambda: {held: encoder_without(held, tools) for held in HELD_SETS})
    held = [held_questions(name) for names in HELD_SETS.values() for name in names]
    yield from _made(tools, folder, held, SETTINGS, encoders)
    sets = kept_sets(folder)
    chosen = {
        Setting(),
        *(chosen_setting(some) for held in HELD_SETS for some in (sets.without(held), sets.only(held))),
    }
    more = [*map(held_questions, ANSWERED_TOO), *map(twin_questions, TELLINGS), *_drawn(drawn).values()]
    yield from _made(tools, folder, more, sorted(chosen), encoders)


def encoder_without(held: str, tools: Instruments) -> Encoder:
    """The encoder that develop texts of other sets teach, each reworded by rule."""
    return Encoder.learnt(reworded_pairs(texts_without(held), tools.nouns), tools.embedder)


def texts_without(held: str) -> list[str]:
    """The develop texts of all sets but the one that is held out, and but SCAN's, whose words tell nothing."""
    taught_by = [name for other, names in HELD_SETS.items() if other not in (held, _WORDS) for name in names]
    return list(dict.fromkeys(text for name in taught_by for text in held_questions(name).develop.texts))


def _made(
    tools: Instruments, folder: Path, asked: list[Choices], settings: Sequence[Setting], encoders: Encoders
) -> Iterator[Choices]:
    surface = Together(tools.surface_traits(), Said(tools.skeleton(MASKED, tools.masked_maker)))
    features: dict[str, Callable[[], Features]] = {
        "traits": cache(lambda: Together(surface, AlignedTraits(tools.embedder, settings))),
        "outcomes": cache(lambda: OutcomeTraits(tools.embedder)),
        "encoded": cache(lambda: EncodedTraits(encoders(), tools.embedder)),
    }
    for some in asked:
        for kind, build in features.items():
            path = folder / kind / f"{some.name}.jsonl.gz"
            if not path.exists():
                keep_traits(traits_of(build(), some), path)
        yield some


def kept_sets(folder: Path) -> Sets:
    """The four sets with their traits."""
    return Sets(
        {
            held: tuple(_kept(folder, held_questions(name)) for name in names)
            for held, names in HELD_SETS.items()
        }
    )


def held_out(folder: Path, sets: Sets, names: Collection[str] = ()) -> list[HeldOut]:
    """Each set of questions, or those named, answered by what the sets taught of which it is none."""
    asked = {traits.questions.name: (held, traits) for held in HELD_SETS for traits in sets.by[held]}
    asked |= {name: (held, _kept(folder, held_questions(name))) for name, held in ANSWERED_TOO.items()}
    chosen = {name: of for name, of in asked.items() if name in (names or asked)}
    return [
        HeldOut.of(held, traits, sets, here=name not in ANSWERED_TOO)
        for name, (held, traits) in chosen.items()
    ]


def held_out_cells(folder: Path, drawn: Path, sets: Sets) -> list[HeldOut]:
    """The questions of the four cells and the matched ones, answered by what the other sets taught."""
    return [
        HeldOut.of(name.partition(" ")[0], _kept(folder, some), sets) for name, some in _drawn(drawn).items()
    ]


def told_twins(folder: Path, sets: Sets) -> dict[str, HeldOut]:
    """The questions of the twins by telling; what is tuned on StoryAnalogy learns from its own questions,
    never from the twins.
    """
    (taught,) = sets.by[_STORIES]
    return {
        telling: HeldOut.of(_STORIES, _kept(folder, twin_questions(telling)), sets, taught=taught)
        for telling in TELLINGS
    }


def _kept(folder: Path, some: Choices) -> Traits:
    one, *others = (
        kept_traits(folder / kind / f"{some.name}.jsonl.gz", some)
        for kind in ("traits", "outcomes", "encoded")
    )
    return reduce(Traits.and_with, others, one)


def _drawn(folder: Path) -> dict[str, Choices]:
    """The questions drawn in cells and the matched ones, each under its set and kind."""
    kinds = ("cells", "matched")
    return {
        f"{held} {kind}": load_choices(folder / f"{name} {kind}.jsonl.gz")
        for held, name in DRAWN_FROM.items()
        for kind in kinds
    }
