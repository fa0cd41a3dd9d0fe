"""What came of one answer in a trial."""

from __future__ import annotations

from dataclasses import dataclass

from kgot_lab.errors import BadInput, require_amount, require_count
from kgot_lab.experts.trials.measures import VARIANTS, TrialVariant


@dataclass(frozen=True, kw_only=True)
class TrialOutcome:
    """What came of one answer; raises BadInput for counts and times that cannot be.

    test_id, variant, unit: the test, what its conversation was given, and the id of the conversation. at:
    when the outcome was settled (a thumb given or waited for long enough), in seconds since any beginning. A
    comparison that is looked at again and again takes outcomes in this order, so an outcome does not change
    once it was looked at. thumb: +1, -1, or None where nobody judged the answer. told, cited: how many nodes
    its context held, and how many of these it cited. false_citations: what it cited that was not there.
    seconds_first, seconds_whole: to the first token and to the last; None where no token came. intent_right:
    whether its intent was the right one, where that is known. digest: of the configuration it was answered
    with, or "": two digests within one variant are found by it.
    """

    test_id: str
    variant: TrialVariant
    unit: str
    at: float
    thumb: int | None = None
    told: int = 0
    cited: int = 0
    false_citations: int = 0
    seconds_first: float | None = None
    seconds_whole: float | None = None
    intent_right: bool | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.test_id or not self.unit:
            raise BadInput("an outcome belongs to a test and a conversation: both ids must be given")
        if self.variant not in VARIANTS:
            raise BadInput(f"a variant is 'a' or 'b', not {self.variant!r}")
        if self.thumb not in (1, -1, None):
            raise BadInput(f"a thumb is +1, -1 or None, not {self.thumb!r}")
        require_amount(self.at, "the time of an outcome")
        for name in ("told", "cited", "false_citations"):
            require_count(getattr(self, name), 0, name)
        if self.cited > self.told:
            raise BadInput(
                f"{self.cited} nodes cited of {self.told} told: what was not told counts as false_citations"
            )
        for name in ("seconds_first", "seconds_whole"):
            if getattr(self, name) is not None:
                require_amount(getattr(self, name), name)
