"""A memory of a chat that no model reads: user turns first, and a turn that was found brings those that
change, answer or order it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.beam import remarks
from benchmarks.beam.chats import ChatTurn
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.retrieval.fusion import rows_and_scores, scale_by_range
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import content_words
from kgot_lab.types import Document, HitColumns, Query, Ranking

_Scores = NDArray[np.float64]
_LEAST = 1e-6  # a first score of 0 would tie all others with it
_SHOWN = 5  # turns that a reader is sure to see


@dataclass(frozen=True)
class TurnRules:
    """What the memory does beside searching, each 0 or False to leave it out.

    score(turn) = half by BM25 over stems of what was spoken, half by the cosine, each by its range; less
    `reaction` for a turn that opens as an answer; where a question asks what holds, more by `session` for the
    turns of the best one's session, in which what changes or denies it mostly stands; for a request, more by
    `preference` for what the user prefers. Then, as rankings: an `order` whose condition has at least this
    cosine with the question comes no later than fifth; `threads`: where a question asks what holds, the
    reactions that follow the best turns come fourth (sixth for a yes or no) and on; `replies`: where the
    assistant's words are asked for, each turn brings its reply, and a summary shows the replies first;
    `spread`: a sequence or a summary takes the best of each session in turn.
    """

    reaction: float = 0.1
    session: float = 0.2
    preference: float = 0.1
    order: float = 0.4
    threads: bool = True
    replies: bool = True
    spread: bool = True


class TurnMemory:
    """The turns of a chat made ready to be asked for; the embedder reads the user's turns and the conditions
    of their orders.

    It stands apart from memory/claims because no rule here finds the subject and relation in a free turn by
    which a claim supersedes one, and because what is asked for are turns: one that a later turn supersedes is
    evidence as well, and must not be hidden.
    """

    def __init__(self, turns: Sequence[ChatTurn], embedder: Embedder, rules: TurnRules | None = None):
        self.rules = rules or TurnRules()
        self._embedder = embedder
        self._turns = [turn for turn in turns if turn.by_user]
        self._reply = {
            earlier.id: later.id
            for earlier, later in pairwise(turns)
            if earlier.by_user and not later.by_user
        }
        said = [remarks.spoken(turn.text) for turn in self._turns]
        self._ids = [turn.id for turn in self._turns]
        self._words = bm25(
            [
                Document(turn.id, " ".join(content_words(text)))
                for turn, text in zip(self._turns, said, strict=True)
            ]
        )
        self._vectors = embedder.embed([turn.text for turn in self._turns])
        self._sessions = np.array([turn.session for turn in self._turns])
        self._reactions = np.array([remarks.is_reaction(text) for text in said], np.float64)
        self._preferences = np.array([remarks.tells_preference(text) for text in said], np.float64)
        conditions = {
            row: condition for row, text in enumerate(said) if (condition := remarks.condition_of_order(text))
        }
        self._ordering = list(conditions)
        self._conditions = embedder.embed(list(conditions.values()))

    def with_rules(self, rules: TurnRules) -> TurnMemory:
        """The same turns by other rules."""
        other = copy(self)
        other.rules = rules
        return other

    def stage(self, name: str = "memory") -> Stage:
        """The memory as a stage; the first score of a ranking is the highest cosine of a user turn, the
        others are that by place.
        """
        return Stage(name, lambda ranking: self._ranked(ranking.query))

    def _ranked(self, query: Query) -> Ranking:
        if not self._ids:
            return Ranking(query, ())
        asked = self._embedder.embed([query.text])[0]
        cosines = np.asarray(self._vectors @ asked, np.float64)
        ids = self._arranged(query.text, self._scored(query.text, cosines), asked)
        places = np.arange(len(ids))
        return Ranking(query, HitColumns(ids, places, max(float(cosines.max()), _LEAST) / (places + 1)))

    def _scored(self, question: str, cosines: _Scores) -> _Scores:
        rows, found = rows_and_scores(self._words.search(" ".join(content_words(question))), self._ids)
        words = np.zeros(len(self._ids))
        words[rows] = found
        scores: _Scores = (
            scale_by_range(words) + scale_by_range(cosines)
        ) / 2 - self.rules.reaction * self._reactions
        best = int(np.argmax(scores))
        if remarks.asks_state(question):
            scores = scores + self.rules.session * (self._sessions == self._sessions[best])
        if remarks.asks_for_help(question):
            scores = scores + self.rules.preference * self._preferences
        return scores

    def _arranged(self, question: str, scores: _Scores, asked: NDArray[np.float32]) -> list[str]:
        """The ids of the turns in the order in which they are shown."""
        rows = np.argsort(-scores, kind="stable").tolist()
        if remarks.asks_for_sequence(question) or remarks.asks_for_summary(question):
            rows = self._by_turns_of_sessions(rows) if self.rules.spread else rows
        else:
            rows = self._with_order(question, self._with_threads(question, rows), asked)
        ids = [self._ids[row] for row in rows]
        if self.rules.replies and remarks.asks_for_summary(question):
            return [*(self._reply[id] for id in ids if id in self._reply), *ids]
        if self.rules.replies and remarks.asks_for_replies(question):
            return [each for id in ids for each in (id, self._reply.get(id)) if each]
        return ids

    def _by_turns_of_sessions(self, rows: list[int]) -> list[int]:
        """The best of each session, then the second of each, and so on."""
        met = defaultdict[int, int](int)
        keys = []
        for place, row in enumerate(rows):
            session = int(self._sessions[row])
            keys.append((met[session], place))
            met[session] += 1
        return [rows[place] for _, place in sorted(keys)]

    def _with_order(self, question: str, rows: list[int], asked: NDArray[np.float32]) -> list[int]:
        """The standing order that the question gives occasion for, no later than fifth."""
        if not self._ordering or not self.rules.order or remarks.asks_what_was_said(question):
            return rows
        near = self._conditions @ asked
        best = int(np.argmax(near))
        row = self._ordering[best]
        if near[best] < self.rules.order or row in rows[:_SHOWN]:
            return rows
        rest = [each for each in rows if each != row]
        return [*rest[: _SHOWN - 1], row, *rest[_SHOWN - 1 :]]

    def _with_threads(self, question: str, rows: list[int]) -> list[int]:
        """What the user said next to the best turns, where it only reacts: fourth for a value, sixth for a
        yes or no, and on.
        """
        if not (self.rules.threads and remarks.asks_state(question)):
            return rows
        before, leading = (_SHOWN, 3) if remarks.asks_whether(question) else (3, 2)
        brought = [
            row + 1 for row in rows[:leading] if self._is_followed(row) and row + 1 not in rows[:before]
        ]
        return [*rows[:before], *brought, *(row for row in rows[before:] if row not in brought)]

    def _is_followed(self, row: int) -> bool:
        """Whether the user's next turn is of the same session and only reacts."""
        after = row + 1
        return (
            after < len(self._ids)
            and bool(self._reactions[after])
            and bool(self._sessions[row] == self._sessions[after])
        )
