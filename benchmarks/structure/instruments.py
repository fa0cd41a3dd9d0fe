"""The systems of the structure benchmark, built of the same instruments: surface, controls, structure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.structure.analogies import Choices
from benchmarks.structure.calibration import CalibratedThresholds, calibrate_thresholds
from benchmarks.structure.controls import MinusSurface, NounVeto, RandomSkeleton, SecondBySurface
from benchmarks.structure.fitted import ALL, SIMPLE, Fitted, OnTheSurface, Said, Together
from benchmarks.structure.nouns import Nouns
from benchmarks.structure.stored_skeletons import SkeletonFile
from benchmarks.structure.structural import Aligned, Delta, DeltaVerified, Skeleton
from benchmarks.structure.systems import Surface, System, Words
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import compare_pairs
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import SkeletonMaker, make_skeletons
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.io.files import bundled_path

MODEL_OF_SKELETONS = "the local model"


@cache
def skeletons_of_the_model() -> SkeletonFile:
    """The skeletons that the local model made."""
    return SkeletonFile(bundled_path("skeletons/local-model.jsonl.gz"))


@dataclass(frozen=True)
class Instruments:
    """What every system is built of: an embedder, nouns, an aligner, and makers of skeletons; models are
    loaded when first used.
    """

    embedder: Embedder
    nouns: Nouns
    aligner: Aligner
    masked_maker: LinguisticSkeletons
    events_maker: LinguisticSkeletons

    @classmethod
    def of(cls, embedder: Embedder) -> Instruments:
        """The instruments over an embedder."""
        return cls(
            embedder,
            Nouns(),
            Aligner(embedder),
            LinguisticSkeletons(style="masked"),
            LinguisticSkeletons(style="events"),
        )

    def skeleton(self, name: str, maker: SkeletonMaker) -> Skeleton:
        return Skeleton(name, lambda texts: make_skeletons(texts, maker), self.embedder)

    def masked(self, text: str) -> str:
        return make_skeletons([text], self.masked_maker, cache=False).get(text, text)

    def stranger(self) -> System:
        """The masked skeletons, dealt out again among texts of like length."""

        def make(skeleton_of: Callable[[str], str]) -> System:
            return Skeleton(
                "random skeleton", lambda texts: {text: skeleton_of(text) for text in texts}, self.embedder
            )

        return RandomSkeleton(
            make, lambda text: make_skeletons([text], self.masked_maker, cache=False).get(text, "")
        )

    def surface_traits(self, names: Sequence[str] = ALL) -> OnTheSurface:
        return OnTheSurface(Surface(self.embedder), Words(), self.nouns, names)

    def _surface_and_controls(self) -> list[System]:
        return [
            Surface(self.embedder),
            Words(),
            MinusSurface(Surface(self.embedder)),
            SecondBySurface(Surface(self.embedder)),
            NounVeto(Surface(self.embedder), self.nouns),
            NounVeto(Surface(self.embedder), self.nouns, masked=(Surface(self.embedder), self.masked)),
            self.stranger(),
        ]

    def with_alignment(self, taught: Choices) -> Fitted:
        traits = Together(self.surface_traits(), Said(Aligned("aligned", self.aligner)))
        return Fitted("fitted surface + aligned", traits, taught, kind="structure")

    def systems(self, taught: Choices) -> list[System]:
        """Surface, controls and structure; what is fitted or calibrated learns from the dev questions
        given.
        """
        masks = self.skeleton("skeleton, masked", self.masked_maker)
        thresholds = self.chosen(taught, self.masked_maker)
        return [
            *self._surface_and_controls(),
            Fitted("fitted surface, simple", self.surface_traits(SIMPLE), taught),
            Fitted("fitted surface", self.surface_traits(), taught),
            masks,
            self.skeleton("skeleton, events", self.events_maker),
            Delta("delta, as specified", Surface(self.embedder), masks),
            Delta("delta, calibrated", Surface(self.embedder), masks, thresholds),
            DeltaVerified(
                "delta, verified", Delta("", Surface(self.embedder), masks), Aligned("", self.aligner)
            ),
            Aligned("aligned", self.aligner),
            Aligned("aligned, veto", self.aligner, veto=True),
            Aligned("aligned, in any order", Aligner(self.embedder, ordered=False)),
            Fitted(
                "fitted surface + skeleton, masked",
                Together(self.surface_traits(), Said(masks)),
                taught,
                kind="structure",
            ),
            Fitted(
                "fitted surface, simple + aligned",
                Together(self.surface_traits(SIMPLE), Said(Aligned("aligned", self.aligner))),
                taught,
                kind="structure",
            ),
            self.with_alignment(taught),
        ]

    def with_the_model(self, taught: Choices) -> list[System]:
        """What the local model's skeletons give, and the systems they are to be compared with."""
        own = self.skeleton(f"skeleton, {MODEL_OF_SKELETONS}", skeletons_of_the_model())
        both = Together(self.surface_traits(), Said(Aligned("aligned", self.aligner)), Said(own))
        return [
            *self.systems(taught),
            own,
            Delta(f"delta, {MODEL_OF_SKELETONS}, as specified", Surface(self.embedder), own),
            Delta(
                f"delta, {MODEL_OF_SKELETONS}, calibrated",
                Surface(self.embedder),
                own,
                self.chosen(taught, skeletons_of_the_model()),
            ),
            DeltaVerified(
                f"delta, {MODEL_OF_SKELETONS}, verified",
                Delta("", Surface(self.embedder), own),
                Aligned("", self.aligner),
            ),
            Fitted(f"fitted surface + aligned + {MODEL_OF_SKELETONS}", both, taught, kind="structure"),
        ]

    def chosen(self, taught: Choices, maker: SkeletonMaker) -> CalibratedThresholds:
        """The thresholds that tell right choices from wrong ones best (F1) on dev questions."""
        labelled = [
            (question.source, text, place == question.answer)
            for question in taught.questions
            for place, text in enumerate(question.choices)
        ]
        labelled = [each for each in labelled if each[0] != each[1]]
        made = make_skeletons(taught.texts, maker)
        known = [(source, text, label) for source, text, label in labelled if source in made and text in made]
        found = compare_pairs([(source, text) for source, text, _ in known], made, self.embedder)
        return calibrate_thresholds(
            found, [label for _, _, label in known], embedder=self.embedder.name, maker=maker.name
        )

    def searchers(self, taught: Choices) -> list[System]:
        masks = self.skeleton("skeleton, masked", self.masked_maker)
        return [
            *self._surface_and_controls(),
            Fitted("fitted surface", self.surface_traits(), taught),
            masks,
            self.skeleton("skeleton, events", self.events_maker),
            Delta("delta, as specified", Surface(self.embedder), masks),
            Delta("delta, calibrated", Surface(self.embedder), masks, self.chosen(taught, self.masked_maker)),
            Aligned("aligned", self.aligner),
            self.with_alignment(taught),
        ]
