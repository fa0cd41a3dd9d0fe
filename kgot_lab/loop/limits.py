"""Limits and modes of the loop as one frozen value, with named presets and cost forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from kgot_lab.errors import BadInput, UnknownName, require, require_count
from kgot_lab.llm.budget import CostEstimate, Rate, estimate
from kgot_lab.text.words import SentenceRules, sentences
from kgot_lab.types import STATEMENT_SECONDS

Writing = Literal["statements", "operations", "mentions"]
Reading = Literal["statements", "operations", "whole graph", "paths"]
Arithmetic = Literal["always", "numbers", "never"]
Format = Literal["default", "gaia"]
REPLY_TOKENS: Mapping[str, int] = {  # maximum reply tokens by role
    "vote": 300, "merge": 200, "tools": 250, "next names": 80, "write": 1500, "sentence": 120, "mend": 400, "read": 400, "names": 100,
    "arithmetic?": 20, "arithmetic": 400, "parse": 200, "choose": 20, "guess": 200,
    "path": 40, "compared": 48, "hops": 80, "facts": 160, "claim": 60, "check": 2,
}  # fmt: skip
# a title in a sentence, an entity that two sentences share, a sentence near another passage; "names" are the runs
# of capitalised words that earlier versions took for entities, without types
LINKED_BY = ("titles", "entities", "vectors", "names")
_CHOICES = {
    "writing": get_args(Writing),
    "reading": get_args(Reading),
    "arithmetic": get_args(Arithmetic),
    "answer_format": get_args(Format),
    "sentences": get_args(SentenceRules),
}


@dataclass(frozen=True)
class Limits:
    """Limits and modes of a run. The defaults are those of the published command line (preset "reference").

    writing: "statements" (the model writes in the query language) or "operations" (it writes triples, which
    are converted to statements). reading: "statements", "operations" (the model names nodes, and the read
    statement is built from them), "whole graph" (the model answers from the graph as text), or "paths" with
    writing "mentions": sentences and the names in them are written by rule, and the model answers from one
    path at a time.
    """

    preset: str = "reference"
    steps: int = 7  # INSERT turns before reading is forced
    votes: int = 5  # ballots per turn
    forced_reads: int = 5  # read statements when the steps ran out or the loop is stuck
    rereads: int = 3  # new read statements after an empty result
    repairs: int = 3  # repairs of one failing statement
    parses: int = 3  # formatted answers per candidate
    calls: int = 5  # tool calls per step
    temperature: float = 0.0
    vote_temperature: float = 0.7  # at 0 all ballots are identical
    # overrides by role
    temperatures: Mapping[str, float] = field(default_factory=dict, hash=False)
    # overrides of REPLY_TOKENS by role
    reply_tokens: Mapping[str, int] = field(default_factory=dict, hash=False)
    longer: int = 3  # retries of a truncated reply, each with twice the tokens
    tool_attempts: int = 6  # attempts at a tool call with temporary failures
    tool_wait: float = 1.0  # seconds before the second attempt, doubled for each further one
    # time limit of one run of Python, for arithmetic and for the Python tool
    python_seconds: float = STATEMENT_SECONDS
    writing: Writing = "statements"
    reading: Reading = "statements"
    pool: bool = False  # pool the rows of all candidates, and choose by plurality instead of by the model
    merge: bool = True  # the model merges several reasons to INSERT; False concatenates them
    unpolled: int = 0  # INSERT turns before the first vote
    open_with_question: bool = False  # the first call searches for the question, without a model
    stop_when_stuck: bool = False  # read at once if the model proposes no new call
    arithmetic: Arithmetic = "always"  # when to ask whether rows need a computation
    answer_format: Format = "default"
    graph_tokens: int = 6000
    tool_tokens: int = 6000
    row_tokens: int = 4000
    evidence: int = 3  # facts cited for an answer
    paths: int = 1  # paths read before the next search, with reading "paths"
    path_tokens: int = 240  # token budget of one path
    # token budget of the best sentences of all paths, read if no answer is sure; 0: never
    wide_tokens: int = 480
    passages: int = 0  # whole passages to read instead of those sentences, the best first
    sure: float = 0.6  # answer probability at which reading stops, 0 to 1
    hops: bool = True  # decompose a question into hops if its best path gives no sure answer
    # ask about two compared things separately and compare their values
    comparisons: bool = True
    # extract facts with a model from the sentences that an answer was read from
    typed_facts: bool = True
    links: Sequence[str] = ("titles", "entities")  # links between passages, of LINKED_BY
    # rules for sentence splitting and, along paths, for finding names
    sentences: SentenceRules = "any script"
    examples: bool = True  # few-shot examples in prompts that read a path
    # ask whether the sentences that an answer was read from say it
    check_answers: bool = False

    def __post_init__(self) -> None:
        counted = "steps votes parses forced_reads calls graph_tokens tool_tokens row_tokens path_tokens"
        for name in counted.split():
            require_count(getattr(self, name), 1, f"limits.{name}")
        for name in "rereads repairs unpolled longer paths wide_tokens passages evidence".split():
            require_count(getattr(self, name), 0, f"limits.{name}")
        for role, maximum in _checked_roles("reply_tokens", self.reply_tokens).items():
            require_count(maximum, 1, f"limits.reply_tokens[{role!r}]")
        for role, value in _checked_roles("temperatures", self.temperatures).items():
            _require_between(value, 0, 2, f"limits.temperatures[{role!r}]")
        require_count(self.tool_attempts, 1, "limits.tool_attempts")
        _require_between(self.tool_wait, 0, 3600, "limits.tool_wait")
        _require_between(self.python_seconds, 0.1, 3600, "limits.python_seconds")
        switches = "pool merge open_with_question stop_when_stuck hops comparisons typed_facts examples check_answers"
        for name in switches.split():
            require(getattr(self, name), bool, f"limits.{name} is true or false")
        object.__setattr__(self, "links", _checked_links(self.links))
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownName(f"limits.{name}", str(getattr(self, name)), choices)
        for name in ("temperature", "vote_temperature"):
            _require_between(getattr(self, name), 0, 2, f"limits.{name}")
        _require_between(self.sure, 0, 1, "limits.sure")
        if (self.writing == "mentions") != (self.reading == "paths"):
            raise BadInput(
                'limits.writing "mentions" and limits.reading "paths" go together: the paths are those of the mentions'
            )
        if self.reading == "paths" and not (self.paths or self.wide_tokens):
            raise BadInput("limits.paths and limits.wide_tokens are both 0: then nothing is read")

    @property
    def search_passages(self) -> int:
        """The passages that one search returns. Paths are read by rule, so many cost little."""
        return 16 if self.reading == "paths" else 8

    def but(self, **changes: Any) -> Limits:
        """Return the limits with some values changed.

        The name of the preset then ends in "*". Raises UnknownName for an unknown limit.
        """
        for name in set(changes) - {limit.name for limit in fields(self)}:
            raise UnknownName("limit", name, [limit.name for limit in fields(self)])
        return replace(self, **{"preset": self.preset.rstrip("*") + "*", **changes})

    @classmethod
    def of_json(cls, recorded: Mapping[str, Any]) -> Limits:
        """Build the limits of a recorded run.

        Values that it does not name take the defaults of that time. Raises TypeError for an unknown limit.
        """
        return cls(**{**_AS_RECORDED, **recorded})

    def as_json(self) -> dict[str, Any]:
        """Convert the limits to plain values, for the head of a trace.

        Limits that older versions did not record are included only if they were set.
        """
        values, usual = asdict(self), asdict(Limits(**_AS_RECORDED))
        values["links"], usual["links"] = list(self.links), list(usual["links"])
        shown = (name for name in values if name not in _NEWER_LIMITS or values[name] != usual[name])
        return {name: values[name] for name in shown}

    @property
    def few_tools(self) -> bool:
        """Whether a run gets only the search and the file tools, since a small model chooses badly among
        many.
        """
        return self.preset.rstrip("*") in ("local", "paths")

    @property
    def finds_parts(self) -> bool:
        """Whether names, blocks and evidence are separated as finely as in the current version.

        It is False for recorded runs of earlier versions.
        """
        return self.sentences == "any script"

    @property
    def cites_by_names(self) -> bool:
        """Whether evidence was found by names that rows share with edges, as in runs of earlier versions."""
        return bool(self.evidence == _AS_RECORDED["evidence"])

    def tokens_of(self, role: str) -> int:
        """Return the maximum number of reply tokens for a role."""
        return self.reply_tokens.get(role) or REPLY_TOKENS[role]


_NEWER_LIMITS = (
    "temperatures", "reply_tokens", "longer", "tool_attempts", "tool_wait", "python_seconds", "paths", "path_tokens", "wide_tokens",
    "passages", "sure", "hops", "comparisons", "typed_facts", "links", "examples", "sentences", "check_answers", "evidence",
)  # fmt: skip
# defaults of runs that did not record a limit, where today's defaults differ
_AS_RECORDED: Mapping[str, Any] = {"sentences": "plain", "links": ("titles", "names"), "evidence": 8}


def _checked_links(links: object) -> tuple[str, ...]:
    if isinstance(links, str) or not isinstance(links, Sequence):
        names = ", ".join(LINKED_BY)
        raise BadInput(f'limits.links names some of {names}, such as ["titles"]; here it is {links!r}')
    for name in links:
        if name not in LINKED_BY:
            raise UnknownName("link in limits.links", str(name), LINKED_BY)
    return tuple(links)


def _checked_roles(name: str, values: object) -> Mapping[str, Any]:
    require(values, Mapping, f"limits.{name} maps what is asked for to a number")
    assert isinstance(values, Mapping)
    for role in values:
        if role not in REPLY_TOKENS:
            raise UnknownName(f"role in limits.{name}", str(role), REPLY_TOKENS)
    return values


def _require_between(value: object, minimum: float, maximum: float, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise BadInput(f"{name} must be between {minimum:g} and {maximum:g}, not {value}")


REFERENCE = Limits()
LOCAL = Limits(
    preset="local", steps=3, votes=3, forced_reads=1, rereads=1, repairs=2, parses=3, calls=2, writing="operations", reading="operations",
    pool=True, merge=False, unpolled=2, open_with_question=True, stop_when_stuck=True, arithmetic="numbers", answer_format="gaia",
    graph_tokens=550, tool_tokens=190, row_tokens=700,
)  # fmt: skip
PATHS = Limits(
    preset="paths", steps=2, votes=1, repairs=0, writing="mentions", reading="paths", merge=False, open_with_question=True,
    stop_when_stuck=True, arithmetic="never", answer_format="gaia",
    path_tokens=140, wide_tokens=260, typed_facts=False, check_answers=True,
)  # fmt: skip
PRESETS = {"reference": REFERENCE, "local": LOCAL, "paths": PATHS}


SMALL_MODELS = ("local", "ollama")  # small models, by the prefix of their names


def limits_for(
    model: str,
    preset_name: str | Limits = "auto",
    answer_format: str | None = None,
    *,
    with_tools: bool = False,
) -> Limits:
    """Return the limits for a model, by the name of a preset or from given limits.

    "auto" selects the preset that fits the model's name: for a small one "paths", or "local" where a run is
    `with_tools` besides the search, or with attached files. Raises UnknownName for an unknown preset, and
    BadInput if `preset_name` is neither a name nor limits.
    """
    require(preset_name, (str, Limits), "a preset is a name (auto, local, paths, reference) or limits")
    small = LOCAL if with_tools else PATHS
    presets = {"auto": small if model.split(":")[0] in SMALL_MODELS else REFERENCE, **PRESETS}
    if isinstance(preset_name, str) and preset_name not in presets:
        raise UnknownName("preset", preset_name, presets)
    limits = presets[preset_name] if isinstance(preset_name, str) else preset_name
    if answer_format and answer_format != limits.answer_format:
        return limits.but(answer_format=answer_format)
    return limits


def preset(name: str) -> Limits:
    """Return the limits of a preset. Raises UnknownName if there is none of that name."""
    if name not in PRESETS:
        raise UnknownName("preset", name, PRESETS)
    return PRESETS[name]


# The cost forecast of a run, from its limits, before any call.

# Tokens that a call of each role reads and writes: medians of recorded runs with small graphs, rounded up.
_CALL_TOKENS = {
    "vote": (650, 60), "merge": (200, 60), "tools": (500, 40), "write": (650, 300), "sentence": (230, 40),
    "read": (650, 60), "arithmetic": (500, 40), "parse": (450, 15), "choose": (500, 10),
    "path": (350, 8), "hops": (320, 30), "wide": (650, 8), "reread": (500, 8), "facts": (320, 80), "claim": (300, 15), "check": (700, 1),
}  # fmt: skip


def forecast(
    limits: Limits, *, steps: int | None = None, calls: int = 1, rate: Rate | None = None
) -> CostEstimate:
    """Estimate the calls, tokens, seconds and dollars of a run.

    The run takes `steps` INSERT turns (by default all) with `calls` tool calls each. Failures and repairs are
    not counted. Votes and parses are counted in full, so an early decision costs less. A sentence counts as
    35 tokens.
    """
    counts = calls_by_role(limits, steps=steps, calls=calls)
    return estimate(counts, _CALL_TOKENS, rate or Rate())


def forecast_extraction(limits: Limits, texts: Sequence[str], *, rate: Rate | None = None) -> CostEstimate:
    """Estimate the cost of extracting facts from texts.

    This takes one call per sentence, or one per text if the model writes statements.
    """
    by_sentence = limits.writing == "operations"
    counts = {"sentence": sum(len(sentences(t)) for t in texts)} if by_sentence else {"write": len(texts)}
    return estimate(counts, _CALL_TOKENS, rate or Rate())


def calls_by_role(limits: Limits, *, steps: int | None = None, calls: int = 1) -> dict[str, int]:
    """Return the expected number of model calls for each role.

    Arithmetic is one check per candidate, or none if it depends on the question.
    """
    most = limits.steps if steps is None else min(steps, limits.steps)
    if limits.reading == "paths":  # calls for an open question whose first path is not sure
        checked = int(limits.check_answers)
        paths = 0 if checked else limits.paths * max(most, 1)
        return {
            "path": paths + 2 * limits.hops,
            "hops": int(limits.hops),
            "wide": int(limits.wide_tokens > 0),
            "facts": int(limits.typed_facts),
            **({"reread": 1, "claim": 1, "check": 2} if checked else {}),
        }
    turns = max(most, min(limits.unpolled, limits.steps))
    forced = turns == limits.steps
    sampled = limits.vote_temperature > 0
    by_sentence = limits.writing == "operations"
    votes, parses = (limits.votes, limits.parses) if sampled else (1, 1)
    polled = max(turns - limits.unpolled, 0)
    reads = 0 if limits.reading == "whole graph" or not forced else limits.forced_reads if sampled else 1
    won = votes // 2 + 1  # a majority of ballots, each with its own statement; the vote stops there
    candidates = 1 if limits.pool else (reads or 1) if forced else won
    return {
        "vote": votes * (polled + (not forced)),
        "merge": polled * (limits.merge and votes > 1),
        "tools": max(turns - limits.open_with_question, 0),
        "write": 0 if by_sentence else turns * calls,
        "sentence": turns * calls * limits.tool_tokens // 35 if by_sentence else 0,
        "read": reads,
        "arithmetic": candidates if limits.arithmetic == "always" else 0,
        "parse": parses * candidates,
        "choose": int(not limits.pool and parses * candidates > 1),
        "claim": int(limits.check_answers),
        "check": 2 * limits.check_answers,
    }
