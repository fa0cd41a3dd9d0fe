"""The receipts of the transfer: traits of all questions, made once; every number follows from them without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kgot_lab.experiments.structure.analogies import Choices
from kgot_lab.experiments.structure.answered import load_choices
from kgot_lab.experiments.structure.fitted import Features, Said, Together
from kgot_lab.experiments.structure.instruments import Instruments
from kgot_lab.experiments.transfer.compared import HeldOut
from kgot_lab.experiments.transfer.held_sets import DRAWN_FROM, HELD_SETS, held_questions
from kgot_lab.experiments.transfer.outcomes import OutcomeTraits
from kgot_lab.experiments.transfer.systems import Sets, chosen_setting
from kgot_lab.experiments.transfer.traits import MASKED, SETTINGS, AlignedTraits, Setting, Traits, keep_traits, kept_traits, traits_of
from kgot_lab.experiments.transfer.twins import TELLINGS, twin_questions

_STORIES = "storyanalogy"


def make_traits(tools: Instruments, folder: Path, drawn: Path) -> Iterator[Choices]:
    """Work out the traits of every question that has none in the folder; `drawn` holds the questions of the structure benchmark.

    The sets from which settings are chosen get the parts of all settings, the others those of the chosen ones.
    """
    yield from _made(tools, folder, [held_questions(name) for names in HELD_SETS.values() for name in names], SETTINGS)
    sets = kept_sets(folder)
    chosen = {Setting(), *(chosen_setting(some) for held in HELD_SETS for some in (sets.without(held), sets.only(held)))}
    yield from _made(tools, folder, [*map(twin_questions, TELLINGS), *_drawn(drawn).values()], sorted(chosen))


def _made(tools: Instruments, folder: Path, asked: list[Choices], settings: tuple[Setting, ...] | list[Setting]) -> Iterator[Choices]:
    surface = Together(tools.surface_traits(), Said(tools.skeleton(MASKED, tools.masked_maker)))
    features: dict[str, Features] = {
        "traits": Together(surface, AlignedTraits(tools.embedder, settings)),
        "outcomes": OutcomeTraits(tools.embedder),
    }
    for some in asked:
        for kind, each in features.items():
            path = folder / kind / f"{some.name}.jsonl.gz"
            if not path.exists():
                keep_traits(traits_of(each, some), path)
        yield some


def kept_sets(folder: Path) -> Sets:
    """The four sets with their traits."""
    return Sets({held: tuple(_kept(folder, held_questions(name)) for name in names) for held, names in HELD_SETS.items()})


def held_out(sets: Sets) -> list[HeldOut]:
    """Each set of questions, answered by what the other sets taught."""
    return [HeldOut.of(held, traits, sets) for held in HELD_SETS for traits in sets.by[held]]


def held_out_cells(folder: Path, drawn: Path, sets: Sets) -> list[HeldOut]:
    """The questions of the four cells and the matched ones, answered by what the other sets taught."""
    return [HeldOut.of(name.partition(" ")[0], _kept(folder, some), sets) for name, some in _drawn(drawn).items()]


def told_twins(folder: Path, sets: Sets) -> dict[str, HeldOut]:
    """The questions of the twins by telling; what is tuned on StoryAnalogy learns from its own questions, never from the twins."""
    (taught,) = sets.by[_STORIES]
    return {telling: HeldOut.of(_STORIES, _kept(folder, twin_questions(telling)), sets, taught=taught) for telling in TELLINGS}


def _kept(folder: Path, some: Choices) -> Traits:
    one, other = (kept_traits(folder / kind / f"{some.name}.jsonl.gz", some) for kind in ("traits", "outcomes"))
    return one.and_with(other)


def _drawn(folder: Path) -> dict[str, Choices]:
    """The questions drawn in cells and the matched ones, each under its set and kind."""
    kinds = ("cells", "matched")
    return {f"{held} {kind}": load_choices(folder / f"{name} {kind}.jsonl.gz") for held, name in DRAWN_FROM.items() for kind in kinds}
