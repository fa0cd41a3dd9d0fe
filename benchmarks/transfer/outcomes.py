"""What happens to whom, in a closed vocabulary of outcomes: texts as chains of outcomes with their sign, and
how alike two chains are.

No language model reads them. An outcome is known by a few phrases; an event, or a sentence as it stands, is
the nearer to an outcome the more alike their vectors are. So a text may tell an outcome in words that no list
holds, and its nouns count only as far as they say what happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.structure.systems import row_of
from kgot_lab.analogy.alignment import in_order
from kgot_lab.analogy.linguistic import Analysis, analyse
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.significance import Numbers

OUTCOME_PHRASES: Mapping[str, tuple[str, ...]] = {
    "gains": ("gets something", "acquires and receives something", "is given more"),
    "loses": ("loses something", "has something taken away", "runs out of something"),
    "gives": ("gives something to others", "delivers and hands over", "distributes to all parts"),
    "takes in": ("absorbs and swallows", "takes something in", "lets something enter"),
    "gives off": ("releases something", "emits and lets go", "sends something out"),
    "enables": ("makes something possible", "helps and allows", "is needed for something to work"),
    "prevents": ("prevents something from happening", "blocks and hinders", "makes it impossible"),
    "protects": ("protects from harm", "shields and guards", "keeps safe"),
    "harms": ("hurts and damages", "destroys and ruins", "attacks"),
    "mends": ("repairs and heals", "restores what was broken", "recovers"),
    "makes": ("creates and builds", "produces something new", "brings into being"),
    "ends": ("stops and ends", "dies and disappears", "is over"),
    "begins": ("starts and sets out", "begins something", "appears for the first time"),
    "grows": ("grows and increases", "becomes bigger and spreads", "gets more and more"),
    "shrinks": ("shrinks and decreases", "becomes smaller and weaker", "gets less"),
    "turns into": ("changes into something else", "is transformed", "becomes different"),
    "stays": ("stays the same", "remains and lasts", "keeps on"),
    "moves": ("moves from place to place", "flows and travels", "goes through"),
    "rises": ("rises up", "climbs higher", "is lifted"),
    "falls": ("falls down", "sinks lower", "drops"),
    "joins": ("joins and sticks together", "combines into a whole", "connects"),
    "parts": ("separates and breaks apart", "is divided", "splits"),
    "holds": ("holds in place", "carries the weight", "contains"),
    "seeks": ("looks for something", "wants and needs", "tries to reach a goal"),
    "succeeds": ("succeeds and wins", "reaches the goal", "solves the problem"),
    "fails": ("fails and is defeated", "cannot do it", "gives up"),
    "learns": ("learns and understands", "finds out", "realizes the truth"),
    "warns": ("warns and advises", "tells and shows", "teaches"),
    "enjoys": ("is happy and enjoys it", "is proud and rewarded", "is calm and comfortable"),
    "suffers": ("is sad and afraid", "suffers pain", "is worried and annoyed"),
    "returns": ("comes back again", "returns to the start", "repeats over and over"),
    "prepares": ("prepares and gets ready", "arranges and puts in order", "plans ahead"),
    "uses up": ("uses and consumes", "eats and drinks", "burns as fuel"),
    "resists": ("resists and fights back", "does not give in", "competes"),
    "is so": ("has a certain quality", "is described", "belongs to a kind"),
}
GOOD = frozenset("gains enables protects mends makes grows joins succeeds learns enjoys returns".split())
BAD = frozenset("loses prevents harms ends shrinks parts fails suffers falls".split())
CAUSE_WORDS = (
    "because", "so that", "due to", "thanks to", "as a result", "leads to", "causes", "therefore",
    "makes", "ensures", "allows", "so",
)  # fmt: skip
TURN_WORDS = ("but", "however", "although", "despite", "even so", "yet", "though", "instead", "without")
TRAITS = ("outcomes of sentences", "outcomes of events", "outcomes, in any order", "same sign", "same links")
_SHARPNESS = 2.0


@dataclass(frozen=True, eq=False)
class OutcomeChain:
    """A text as outcomes: a row for each sentence and for each event, of length 1; what is good or bad of
    each sentence, and its links.
    """

    sentences: Numbers  # (n, outcomes)
    events: Numbers  # (k, outcomes)
    good: Numbers  # (n,), from -1 to 1
    links: Numbers  # (2,), whether a cause and a turn are told


class OutcomeTraits:
    """Features of candidates by what happens in them: chains of outcomes laid side by side in order, their
    signs and their links.

    The mean profile of all prepared texts is taken away first, so that what every text tells says nothing.
    """

    names = TRAITS

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        phrases = [phrase for some in OUTCOME_PHRASES.values() for phrase in some]
        self._owner = np.repeat(
            np.arange(len(OUTCOME_PHRASES)), [len(some) for some in OUTCOME_PHRASES.values()]
        )
        self._phrases = _rows(embedder, phrases)
        names = list(OUTCOME_PHRASES)
        self._signs = np.array([(name in GOOD) - (name in BAD) for name in names], np.float64)
        self._row_of: dict[str, int] = {}
        self._chains: list[OutcomeChain] = []

    def prepare(self, texts: Sequence[str]) -> None:
        """Read the texts, and find how near each sentence and each event is to each outcome; those known from
        before are forgotten.
        """
        distinct = sorted(set(texts))
        found = analyse(distinct)
        told = [[sentence.text for sentence in each.sentences] or [each.text] for each in found]
        events = [[event.line for event in each.events] or [each.text] for each in found]
        profiles = [self._profiles(some) for some in (told, events)]
        self._row_of = {text: row for row, text in enumerate(distinct)}
        self._chains = [self._chain(*parts) for parts in zip(found, *profiles, strict=True)]

    def _profiles(self, lines: Sequence[Sequence[str]]) -> list[Numbers]:
        """For each text a row for each of its lines: how near it is to each outcome, in deviations from the
        mean of all lines.
        """
        flat = [line for some in lines for line in some]
        known = {line: row for row, line in enumerate(dict.fromkeys(flat))}
        near = _rows(self._embedder, list(known)) @ self._phrases.T
        best = np.stack(
            [near[:, self._owner == outcome].max(axis=1) for outcome in range(len(OUTCOME_PHRASES))], axis=1
        )
        best = (best - best.mean(axis=0)) / np.maximum(best.std(axis=0), 1e-9)
        return [best[[known[line] for line in some]] for some in lines]

    def _chain(self, read: Analysis, sentences: Numbers, events: Numbers) -> OutcomeChain:
        denied = np.array([-1.0 if each.denied else 1.0 for each in read.sentences] or [1.0])
        sure = np.exp(sentences * _SHARPNESS)
        good = denied * ((sure / sure.sum(axis=1, keepdims=True)) @ self._signs)
        text = f" {read.text.casefold()} "
        links = np.array(
            [any(f" {word} " in text for word in some) for some in (CAUSE_WORDS, TURN_WORDS)], np.float64
        )
        return OutcomeChain(_unit(sentences), _unit(events), good, links)

    def of(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The features of each candidate, shape (candidates, 5); raises BadInput for a text that was not
        prepared.
        """
        one = self._chains[row_of(source, self._row_of, "outcomes")]
        others = [self._chains[row_of(text, self._row_of, "outcomes")] for text in candidates]
        return np.array([self._pair(one, other) for other in others])

    def _pair(self, one: OutcomeChain, other: OutcomeChain) -> list[float]:
        sentences, events = one.sentences @ other.sentences.T, one.events @ other.events.T
        length = min(len(one.good), len(other.good))
        signs = 1 - float(np.abs(one.good[:length] - other.good[:length]).mean()) / 2
        mean = _unit(one.sentences.mean(axis=0)[None])[0] @ _unit(other.sentences.mean(axis=0)[None])[0]
        same_links = 1 - float(np.abs(one.links - other.links).mean())
        return [ordered_likeness(sentences), ordered_likeness(events), float(mean), signs, same_links]


def ordered_likeness(similarities: Numbers) -> float:
    """The mean similarity over pairs taken in order, as an aligner counts it."""
    return float(2 * in_order(similarities[None].astype(np.float32))[0] / sum(similarities.shape))


def _rows(embedder: Embedder, lines: Sequence[str]) -> Numbers:
    return np.asarray(embedder.embed(list(lines)), np.float64)


def _unit(rows: Numbers) -> Numbers:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9), np.float64)
