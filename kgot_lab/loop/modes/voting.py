"""Modes of the loop: how a run votes, fetches, writes, reads and concludes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import partial

from kgot_lab.errors import BadReply
from kgot_lab.loop.events import ToolReturned, Vote, Voted
from kgot_lab.loop.insert import (
    approved_calls,
    begin_tool_calls,
    call_tool,
    choose_calls,
    merge_reasons,
    write_result,
)
from kgot_lab.loop.retrieve import READINGS, conclude
from kgot_lab.loop.run_context import (
    Candidate,
    RunContext,
    Steps,
    ask_structured,
    begin_calls,
    distinct,
    situation,
)


class Mode(ABC):
    """How a run answers its question, in turns: vote, fetch and write, until it reads and concludes.

    There is one object for each run, and every step yields events of the run, which it records with
    `self.run.record`. A subclass of `Voting` may replace any step. Pass the class as `think(…, mode=…)`.
    """

    def __init__(self, run: RunContext) -> None:
        self.run = run

    def check(self, attachments: Sequence[str]) -> None:  # noqa: B027, most modes can use all
        """Raise UnsupportedQuestion if the mode cannot use what the run is given. Called before it begins."""

    def answer(self) -> Steps[None]:
        """Yield the events of the whole run."""
        while (voted := (yield from self.vote())) is not None:
            yield voted
            if voted.choice == "RETRIEVE":
                break
            yield from self.fetch(voted)
        yield from self.conclude((yield from self.read(voted)))

    @abstractmethod
    def vote(self) -> Steps[Voted | None]:
        """Decide between INSERT and RETRIEVE. None means that nothing can be fetched any more."""

    @abstractmethod
    def fetch(self, voted: Voted) -> Steps[None]:
        """Fetch what is missing and write it into the graph."""

    @abstractmethod
    def write(self, returned: ToolReturned) -> Steps[None]:
        """Write what a tool returned into the graph."""

    @abstractmethod
    def read(self, voted: Voted | None) -> Steps[list[Candidate]]:
        """Read the graph after a vote for RETRIEVE, or as well as possible after none."""

    @abstractmethod
    def conclude(self, candidates: list[Candidate]) -> Steps[None]:
        """Answer from what was read, in an Answered event."""


class Voting(Mode):
    """The published loop: sampled votes by strict majority, stopped once the outcome is decided."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.statements: list[str] = []  # read statements (or answers) of the last votes
        self.reading = READINGS[run.limits.reading](run)
        self._is_stuck = False

    def vote(self) -> Steps[Voted | None]:
        """Sample votes, and keep the distinct read statements (or answers) of those for RETRIEVE."""
        run, limits = self.run, self.run.limits
        if self._is_stuck or not run.tools or run.state.step >= limits.steps:
            return None
        if run.state.step < limits.voting.unpolled and not run.state.start:
            reason = f"no vote before {limits.voting.unpolled} turn{'s' * (limits.voting.unpolled > 1)}"
            if limits.voting.unpolled == 1 and not run.store.schema().nodes:
                reason = "no vote on an empty graph"
            counts = dict.fromkeys(("inserts", "retrieves", "invalid", "possible"), 0)
            return run.record(Voted, choice="INSERT", reasons=(reason,), **counts)
        # at temperature 0 every vote is the same text
        is_sampled = limits.models.temperatures.get("vote", limits.models.vote_temperature) > 0
        possible = limits.voting.votes if is_sampled else 1
        text = yield from situation(run)
        messages, shape = self.reading.vote_prompt(text), self.reading.vote_shape
        needed = [self._sample(number + 1) for number in range((possible + 1) // 2)]  # sampled in any case
        votes: list[Vote] = []
        while len(votes) < possible and not _is_decided(votes, possible):
            begin_calls(run, "vote", messages, shape, needed[len(votes) :])
            vote = yield from self._sample_vote(text, len(votes) + 1)
            votes.append(vote)
            yield vote
        reasons = distinct([vote.text for vote in votes if vote.choice == "INSERT" and vote.text])
        self.statements = distinct([vote.text for vote in votes if vote.choice == "RETRIEVE"])
        counts = Counter(vote.choice for vote in votes)
        return run.record(
            Voted,
            choice="RETRIEVE" if counts["RETRIEVE"] > counts["INSERT"] else "INSERT",
            inserts=counts["INSERT"],
            retrieves=counts["RETRIEVE"],
            invalid=counts[""],
            possible=possible,
            reasons=tuple(reasons),
        )

    def fetch(self, voted: Voted) -> Steps[None]:
        """Call the tools that the model chooses for what is missing, and write what they return."""
        run = self.run
        missing = (yield from merge_reasons(run, voted.reasons)) if voted.votes else ""
        calls = yield from choose_calls(run, missing)
        approved = yield from approved_calls(run, calls)
        begin_tool_calls(run, approved)
        for call in approved:
            returned = yield from call_tool(run, call)
            if not returned.failed:
                yield from self.write(returned)
        # a model without a valid vote would have none later
        is_invalid = 0 < voted.votes == voted.invalid
        self._is_stuck = is_invalid or (run.limits.voting.stop_when_stuck and not calls)

    def write(self, returned: ToolReturned) -> Steps[None]:
        """Write with statements of the model, or from the triples that it extracts."""
        yield from write_result(self.run, returned)

    def read(self, voted: Voted | None) -> Steps[list[Candidate]]:
        """Read with the statements of the votes, or with those that the model must name."""
        if voted is None:
            return (yield from self.reading.forced())
        return (yield from self.reading.candidates(self.statements))

    def conclude(self, candidates: list[Candidate]) -> Steps[None]:
        """Compute if needed, parse and choose an answer, and cite its evidence."""
        yield from conclude(self.run, candidates)

    def _sample(self, number: int) -> tuple[float, int]:
        """Return the temperature and seed of a vote."""
        return self.run.limits.models.vote_temperature, 100 * self.run.state.step + number

    def _sample_vote(self, text: str, number: int) -> Steps[Vote]:
        """Sample one vote.

        A RETRIEVE whose statement finds nothing counts as INSERT. An invalid reply counts as nothing.
        """
        run, reading = self.run, self.reading
        record = partial(run.record, Vote, number=number)
        messages, shape = reading.vote_prompt(text), reading.vote_shape
        temperature, seed = self._sample(number)
        try:
            vote = yield from ask_structured(run, "vote", messages, shape, temperature=temperature, seed=seed)
        except BadReply as error:
            return record(choice="", text=error.reason)
        choice, said = reading.understand(vote)
        if choice == "RETRIEVE" and (why_not := (yield from reading.check(said))):
            choice, said = "INSERT", why_not
        return record(choice=choice, text=said)


def _is_decided(votes: list[Vote], possible: int) -> bool:
    """Return whether the remaining votes cannot change the outcome. Ties go to INSERT."""
    remaining = possible - len(votes)
    counts = Counter(vote.choice for vote in votes)
    inserts, retrieves = counts["INSERT"], counts["RETRIEVE"]
    return retrieves > inserts + remaining or inserts >= retrieves + remaining
