"""Random histories of changes against a slow model of them that keeps every state whole and computes every
answer again.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saying import fact, inferred, said, year

from kgot_lab.errors import BadInput
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.review import ClaimReview
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.types import Triple

pytestmark = pytest.mark.extended

NAMES, SOURCES = "abcd", "123"


class Slow:
    """What claims do, as one would say it: cells that are so or not, each change with what it found and what
    it left.

    A cell is ("standing", claim), ("drop", claim, why) or ("merged", name); it holds a value and the change
    that put it there.
    """

    def __init__(self):
        self.known, self.now, self.states, self.changes = {}, {}, [{}], []

    def make(self, new, undoes=None):
        """A change: cells with their new values, None for no longer so; nothing new is no change."""
        found = {cell: self.now.get(cell) for cell in new}
        if new:
            number = len(self.changes) + 1
            left = {cell: None if value is None else (value, number) for cell, value in new.items()}
            self.now = {cell: held for cell, held in (self.now | left).items() if held is not None}
            self.changes.append((found, left, undoes))
            self.states.append(self.now)

    def learn(self, claims):
        new, known = {}, dict(self.known)
        for claim in {claim.id: claim for claim in reversed(claims)}.values():
            known.setdefault(claim.id, claim)
            new |= dict.fromkeys(self.drops(claim.id))
            if ("standing", claim.id) not in self.now:
                new["standing", claim.id] = (
                    "taken" if claim.confidence >= 0.7 else "queued",
                    claim.confidence,
                )
        self.known = known
        self.make(new)

    def drops(self, claim):
        return [cell for cell in self.now if cell[0] == "drop" and cell[1] == claim]

    def retract(self, why, claims):
        if not claims:
            raise BadInput("nothing was learnt of it")
        self.make({("drop", id, why): True for id in claims if ("drop", id, why) not in self.now})

    def decide(self, claim, standing, confidence=None):
        if claim.id not in self.known:
            raise BadInput("not known")
        cell = ("standing", claim.id)
        decided = self.now.get(cell, [("",)])[0][0] in ("accepted", "rejected") and not self.drops(claim.id)
        if decided and confidence is None:
            raise BadInput("decided already")
        if standing == "accepted" and (self.drops(claim.id) or cell not in self.now):
            raise BadInput("retracted")
        had = self.now[cell][0] if cell in self.now else None
        number = confidence if confidence is not None else had[1] if had else self.known[claim.id].confidence
        self.make({} if had == (standing, number) else {cell: (standing, number)})

    def merge(self, kept, other):
        if ("merged", other) in self.now or self.kept(kept) == other:
            raise BadInput("merged, or a circle")
        facts = [fact for claim in self.known.values() for fact in (claim.fact, *claim.premises)]
        named = {name for fact in facts for name in (fact.subject, fact.object)}
        merged = {
            name
            for kind, *names in self.now
            if kind == "merged"
            for name in (*names, self.now["merged", *names][0])
        }
        if named.union(merged).isdisjoint((kept, other)):
            raise BadInput("no fact names them")
        self.make({("merged", other): kept})

    def unmerge(self, other):
        if ("merged", other) not in self.now:
            raise BadInput("not merged")
        self.make({("merged", other): None})

    def undo(self, number):
        if not 1 <= number <= len(self.changes) or any(undoes == number for *_, undoes in self.changes):
            raise BadInput("not there, or undone")
        found, left, _ = self.changes[number - 1]
        new, overtaken = {}, False
        for cell, put in left.items():
            if put is not None:
                there = self.now.get(cell)
                if there == put or (
                    there and there[0] == put[0] and self.changes[there[1] - 1][2] is not None
                ):
                    new[cell] = None
                else:
                    overtaken = True
        for cell, had in found.items():
            if had is not None:
                if cell not in self.now or cell in new:
                    new[cell] = had[0]
                elif cell[0] != "drop":
                    overtaken = True
        if overtaken and not new:
            raise BadInput("overtaken")
        before = self.now
        self.make(new, undoes=number)
        if any(self.circles(name) for name in NAMES):
            self.now = before
            self.changes.pop()
            self.states.pop()
            raise BadInput("a circle of names")

    def circles(self, name):
        seen = set()
        while ("merged", name) in self.now and name not in seen:
            seen.add(name)
            name = self.now["merged", name][0]
        return name in seen

    # --- what is asked of it ---

    def kept(self, name, state=None):
        state = self.now if state is None else state
        while ("merged", name) in state:
            name = state["merged", name][0]
        return name

    def canonical_fact(self, fact, state=None):
        return Triple(self.kept(fact.subject, state), fact.relation, self.kept(fact.object, state))

    def held(self, state=None, valid=None):
        """The facts that hold, each with the sources that claim it and how sure they are."""
        state = self.now if state is None else state
        dropped = {cell[1] for cell in state if cell[0] == "drop"}
        counting = [
            (self.known[cell[1]], held[0][1])
            for cell, held in state.items()
            if cell[0] == "standing" and held[0][0] in ("taken", "accepted") and cell[1] not in dropped
        ]
        if valid is not None:
            counting = [
                each
                for each in counting
                if (each[0].valid_from or valid) <= valid < (each[0].valid_until or valid + timedelta(1))
            ]
        holds = set()
        while (
            new := {
                self.canonical_fact(c.fact, state)
                for c, _ in counting
                if {self.canonical_fact(p, state) for p in c.premises} <= holds
            }
            - holds
        ):
            holds |= new
        found = defaultdict(dict)
        for claim, sure in counting:
            if {self.canonical_fact(premise, state) for premise in claim.premises} <= holds:
                best = found[self.canonical_fact(claim.fact, state)]
                best[claim.source] = max(sure, best.get(claim.source, 0))
        return found


facts_drawn = st.sampled_from([f"{s} r {o}" for s in NAMES for o in "ab"])
confidences = st.sampled_from([0.5, 0.75, 0.9])
times = st.sampled_from(
    [
        {},
        {"valid_from": year(2001)},
        {"valid_until": year(2002)},
        {"valid_from": year(2001), "valid_until": year(2003)},
    ]
)
claims_drawn = st.one_of(
    st.builds(
        lambda words, source, sure, time: said(words, source, confidence=sure, **time),
        facts_drawn,
        st.sampled_from(SOURCES),
        confidences,
        times,
    ),
    st.tuples(
        facts_drawn, st.sets(facts_drawn, min_size=1, max_size=2), st.sampled_from(SOURCES), confidences
    )
    .filter(lambda drawn: drawn[0] not in drawn[1])
    .map(lambda drawn: inferred(drawn[0], *drawn[1], source=drawn[2], confidence=drawn[3])),
)
some = st.integers(0, 30)
actions = st.one_of(
    st.tuples(st.just("learn"), st.lists(claims_drawn, min_size=1, max_size=4)),
    st.tuples(st.just("learn again"), some),
    st.tuples(st.just("retract source"), st.sampled_from(SOURCES)),
    st.tuples(st.just("retract fact"), facts_drawn),
    st.tuples(st.sampled_from(["accept", "reject"]), some),
    st.tuples(st.just("override"), some, confidences),
    st.tuples(st.just("undo"), some),
    st.tuples(st.just("undo the last"), st.integers(0, 2)),
    st.tuples(st.just("merge"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("unmerge"), st.sampled_from(NAMES)),
)


def act(memory, slow, action):
    """The same on both; whatever one refuses the other refuses."""
    name, *given = action
    review, pool = ClaimReview(memory), sorted(slow.known.values(), key=lambda claim: claim.id)
    if name in ("learn again", "accept", "reject", "override"):
        if not pool:
            return
        claim = pool[given[0] % len(pool)]
    if name == "retract source" and given[0] not in memory.sources():
        return
    last = len(slow.changes)
    real, model = {
        "learn": lambda: (lambda: memory.learn(given[0]), lambda: slow.learn(given[0])),
        "learn again": lambda: (lambda: memory.learn(claim), lambda: slow.learn([claim])),
        "retract source": lambda: (
            lambda: memory.retract_source(given[0]),
            lambda: slow.retract("source", [each.id for each in pool if each.source == given[0]]),
        ),
        "retract fact": lambda: (
            lambda: memory.retract_fact(fact(given[0])),
            lambda: slow.retract(
                "fact",
                [
                    each.id
                    for each in pool
                    if slow.canonical_fact(each.fact) == slow.canonical_fact(fact(given[0]))
                ],
            ),
        ),
        "accept": lambda: (lambda: review.accept(claim.id), lambda: slow.decide(claim, "accepted")),
        "reject": lambda: (lambda: review.reject(claim.id), lambda: slow.decide(claim, "rejected")),
        "override": lambda: (
            lambda: review.override(claim.id, confidence=given[1]),
            lambda: slow.decide(claim, "accepted", given[1]),
        ),
        "undo": lambda: (lambda: memory.undo(given[0] + 1), lambda: slow.undo(given[0] + 1)),
        "undo the last": lambda: (
            lambda: memory.undo(max(last - given[0], 1)),
            lambda: slow.undo(max(last - given[0], 1)),
        ),
        "merge": lambda: (lambda: memory.merge(*given), lambda: slow.merge(*given)),
        "unmerge": lambda: (lambda: memory.unmerge(*given), lambda: slow.unmerge(*given)),
    }[name]()
    assert refused(real) == refused(model), action


def refused(do):
    try:
        do()
    except BadInput:
        return True
    return False


def second_clock():
    time = datetime(2026, 1, 1, tzinfo=UTC)
    while True:
        time += timedelta(seconds=1)
        yield time


@settings(max_examples=30, deadline=None)
@given(st.lists(actions, min_size=3, max_size=20))
def test_every_history_gives_what_the_slow_model_computes_from_it(history):
    with Claims(SQLiteClaims(), now=second_clock().__next__) as memory:
        slow, hashes = Slow(), {}
        for action in history:
            act(memory, slow, action)
            held = slow.held()
            assert set(memory.facts()) == held.keys() and memory.count() == len(held), action
            assert {each: memory.confidence(each) for each in held} == pytest.approx({
                each: 1 - prod(1 - sure for sure in by.values()) for each, by in held.items()
            })  # fmt: skip
            told = memory.triples()
            found = {(each, each.confidence) for each in told}
            assert found == {(each, memory.confidence(each)) for each in held}
            assert hashes.setdefault(memory.graph_hash(), held.keys()) == held.keys()
        # the same facts, the same hash
        assert len(hashes) == len({frozenset(digest) for digest in hashes.values()})
        log = memory.log()
        assert [each.undoes for each in log] == [undoes for *_, undoes in slow.changes]
        for change, state in zip(log, slow.states[1:], strict=True):
            for valid in (None, year(2000), year(2001), year(2002), year(2003)):
                then = memory.as_of(known=change.at, valid=valid)
                found = set(then.facts())
                assert then.count() == len(found)
                assert found == slow.held(state, valid).keys()


@settings(max_examples=20, deadline=None)
@given(st.lists(actions, min_size=3, max_size=15), st.sampled_from(SOURCES))
def test_forgetting_a_source_and_telling_it_again_gives_the_same_graph(history, source):
    with Claims(SQLiteClaims(), now=second_clock().__next__) as memory:
        slow = Slow()
        for action in history:
            act(memory, slow, action)
        before = memory.graph_hash(), memory.graph_hash(claims=True)
        there = [
            claim
            for claim in memory.from_source(source)
            if not slow.drops(claim.id) and ("standing", claim.id) in slow.now
        ]
        if source in memory.sources():
            memory.retract_source(source)
        memory.learn(there)
        assert (memory.graph_hash(), memory.graph_hash(claims=True)) == before


@settings(max_examples=25, deadline=None)
@given(st.lists(claims_drawn, max_size=12), st.sampled_from(SOURCES))
def test_what_an_erasure_leaves_is_what_would_be_there_had_the_source_never_been_read(claims, source):
    with Claims(SQLiteClaims(), accept_from=0) as erased, Claims(SQLiteClaims(), accept_from=0) as never:
        erased.learn(claims)
        erased.erase_source(source)
        never.learn([claim for claim in claims if claim.source != source])
        assert erased.graph_hash() == never.graph_hash()
        erased.learn([claim for claim in claims if claim.source == source])
        never.learn([claim for claim in claims if claim.source == source])
        # what was derived from erased facts is not learnt again by itself
        assert set(erased.facts()) <= set(never.facts())


def test_undoing_makes_no_circle_of_names(memory):
    memory.learn(said("a r b"))
    memory.merge("a", "b")
    unmerged = memory.unmerge("b")
    merged = memory.merge("b", "a")
    with pytest.raises(BadInput, match="circle"):
        memory.undo(unmerged)
    memory.undo(merged)
    memory.undo(unmerged)
    assert memory.facts() == (fact("a r a"),)
