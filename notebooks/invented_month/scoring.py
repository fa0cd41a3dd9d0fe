"""What was told against what must be told: the right person, the right call, by the right paths, in time; and
errors by kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from kgot_lab.evaluation.significance import Estimate, interval, proportion

from .month import GoldBriefing, GoldMonth
from .telling import ToldBriefing

TOLD_RIGHT = "right"
# the right person heard of the right call
TOLD_OF_GOLD = (TOLD_RIGHT, "other paths", "too early", "too late")
NOT_TOLD = "not told"


@dataclass(frozen=True)
class JudgedBriefing:
    """A briefing that must be told, or that was told, or both: and how it went."""

    user: str
    item: str
    action: str
    kind: str
    why: str = ""  # what the paths or the times were

    @property
    def was_told(self) -> bool:
        return self.kind != NOT_TOLD

    @property
    def is_gold(self) -> bool:
        return self.kind in (*TOLD_OF_GOLD, NOT_TOLD)


@dataclass(frozen=True)
class MonthScore:
    """How a month went, briefing by briefing."""

    judged: tuple[JudgedBriefing, ...]

    @property
    def precision(self) -> Estimate:
        """Of what was told, the share that is right in all: person, call, paths, time."""
        told = [each.kind == TOLD_RIGHT for each in self.judged if each.was_told]
        return proportion(sum(told), len(told))

    @property
    def recall(self) -> Estimate:
        """Of what must be told, the share that was, right in all."""
        gold = [each.kind == TOLD_RIGHT for each in self.judged if each.is_gold]
        return proportion(sum(gold), len(gold))

    @property
    def kinds(self) -> Mapping[str, int]:
        """How many briefings of each kind there were, the most frequent first."""
        return dict(Counter(each.kind for each in self.judged).most_common())


def score_month(month: GoldMonth, told: Iterable[ToldBriefing]) -> MonthScore:
    """Judge what was told in a month by its gold, in the order in which it was told, and then what was not
    told.
    """
    open = {(each.user, each.item, each.action): each for each in month.briefings}
    gold = dict(open)
    judged = []
    for each in told:
        keys = [(each.user, item, each.action) for item in sorted(each.items)]
        if found := next((key for key in keys if key in open), None):
            judged.append(_compared(open.pop(found), each))
        else:
            judged.append(
                JudgedBriefing(
                    each.user, " ".join(sorted(each.items)), each.action, _wrong(month, each, gold, keys)
                )
            )
    judged += [JudgedBriefing(*key, NOT_TOLD, each.doubt) for key, each in open.items()]
    return MonthScore(tuple(judged))


def _compared(gold: GoldBriefing, told: ToldBriefing) -> JudgedBriefing:
    kind, why = TOLD_RIGHT, ""
    if told.paths != gold.paths:
        more, less = (
            set(told.paths.items()) - set(gold.paths.items()),
            set(gold.paths.items()) - set(told.paths.items()),
        )
        kind, why = "other paths", f"told {sorted(more)} in place of {sorted(less)}"
    elif not gold.since <= told.at <= gold.by:
        kind = "too late" if told.at > gold.by else "too early"
        why = f"told {told.at.isoformat()}, due from {gold.since.isoformat()} to {gold.by.isoformat()}"
    return JudgedBriefing(gold.user, gold.item, gold.action, kind, why)


def _wrong(
    month: GoldMonth,
    told: ToldBriefing,
    gold: Mapping[tuple[str, str, str], GoldBriefing],
    keys: Sequence[tuple[str, str, str]],
) -> str:
    """Of which kind a briefing is that should not have been told."""
    if any(key in gold for key in keys):
        return "told again"
    if any(key[:2] == (told.user, item) for key in gold for item in told.items):
        return "another action"
    near = next(
        (each.kind for each in month.silences if each.user == told.user and each.item in told.items), ""
    )
    if near:
        return f"near miss: {near}"
    return "another person" if any(key[1] in told.items for key in gold) else "of nobody's call"


# --- curves ---


@dataclass(frozen=True)
class BriefingPoint:
    """Precision and recall at one rate of errors over several seeds, and how many briefings of each kind a
    month has on average.
    """

    rate: float
    precision: Estimate
    recall: Estimate
    kinds: Mapping[str, float] = field(hash=False)


def briefing_point(rate: float, scores: Sequence[MonthScore]) -> BriefingPoint:
    """The months of several seeds as one point; the intervals draw items with all their briefings, since
    these stand and fall together.
    """
    judged = list(chain.from_iterable(score.judged for score in scores))
    counted: Counter[str] = Counter(each.kind for each in judged)
    kinds = {kind: count / len(scores) for kind, count in counted.most_common()}
    return BriefingPoint(
        rate,
        _by_item([each for each in judged if each.was_told]),
        _by_item([each for each in judged if each.is_gold]),
        kinds,
    )


def _by_item(judged: Sequence[JudgedBriefing]) -> Estimate:
    right, items = [float(each.kind == TOLD_RIGHT) for each in judged], [each.item for each in judged]
    # where nothing differs there is nothing to draw from, and an item is as good as one briefing
    if len(set(right)) < 2:
        return proportion(int(any(right)) * len(set(items)), len(set(items)))
    return interval(right, items)
