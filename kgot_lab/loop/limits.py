"""Limits and modes of the loop as one frozen value, with named presets and cost forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import Any, Literal, get_args

from kgot_lab.arguments import CheckedRecord, bounded, check_arguments
from kgot_lab.errors import BadInput, UnknownName, require, require_between, require_count, require_known
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


def _names(record: Any) -> list[str]:
    return [each.name for each in fields(record)]


class _Checked(CheckedRecord):
    """A record whose fields are checked by their types and bounds, and choices by name."""

    _prefix, _advice = "limits.", "Limits().but(votes=3) changes any limit by its name"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in vars(self).keys() & _CHOICES.keys():
            require_known(self._prefix + name, _CHOICES[name], getattr(self, name))


@check_arguments
@dataclass(frozen=True)
class ModelLimits(_Checked):
    """How models are asked in every mode. Mappings are overrides by role."""

    temperature: float = bounded(0.0, 0, 2)
    vote_temperature: float = bounded(0.7, 0, 2)  # of all samples after the first: at 0 all are identical
    temperatures: Mapping[str, float] = field(default_factory=dict, hash=False)
    reply_tokens: Mapping[str, int] = field(default_factory=dict, hash=False)  # of REPLY_TOKENS
    longer: int = 3  # retries of a truncated reply, each with twice the tokens

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("role in limits.reply_tokens", REPLY_TOKENS, *self.reply_tokens)
        require_known("role in limits.temperatures", REPLY_TOKENS, *self.temperatures)
        for role, maximum in self.reply_tokens.items():
            require_count(maximum, 1, f"limits.reply_tokens[{role!r}]")
        for role, value in self.temperatures.items():
            require_between(value, 0, 2, f"limits.temperatures[{role!r}]")

    def tokens_of(self, role: str) -> int:
        """Return the maximum number of reply tokens for a role."""
        return self.reply_tokens.get(role) or REPLY_TOKENS[role]


@dataclass(frozen=True)
class ToolLimits(_Checked):
    """Limits of tool calls in every mode."""

    calls: int = bounded(5, 1)  # per step
    tool_attempts: int = bounded(6, 1)  # attempts at a tool call with temporary failures
    # seconds before the second attempt, doubled for each further one
    tool_wait: float = bounded(1.0, 0, 3600)
    # time limit of one run of Python, for arithmetic and for the Python tool
    python_seconds: float = bounded(STATEMENT_SECONDS, 0.1, 3600)
    tool_tokens: int = bounded(6000, 1)  # of what one call returned
    tell_failures: bool = True  # prompts say why a call failed
    # prompts name the calls beyond the limit, and nobody is asked to approve a call that cannot be made
    tell_unmade: bool = True


@dataclass(frozen=True)
class VotingOptions(_Checked):
    """Options of the modes that vote: all but "paths"."""

    votes: int = bounded(5, 1)  # votes per turn
    unpolled: int = 0  # INSERT turns before the first vote
    merge: bool = True  # the model merges several reasons to INSERT; False concatenates them
    stop_when_stuck: bool = False  # read at once if the model proposes no new call
    forced_reads: int = bounded(5, 1)  # read statements when the steps ran out or the loop is stuck
    rereads: int = 3  # new read statements after an empty result
    repairs: int = 3  # repairs of one failing statement
    parses: int = bounded(3, 1)  # formatted answers per candidate
    pool: bool = False  # pool the rows of all candidates, and choose by plurality instead of by the model
    arithmetic: Arithmetic = "always"  # when to ask whether rows need a computation
    graph_tokens: int = bounded(6000, 1)
    row_tokens: int = bounded(4000, 1)


@dataclass(frozen=True)
class PathOptions(_Checked):
    """Options of the mode "paths"."""

    paths: int = 1  # paths read before the next search
    path_tokens: int = bounded(240, 1)  # token budget of one path
    # token budget of the best sentences of all paths, read if no answer is sure; 0: never
    wide_tokens: int = 480
    passages: int = 0  # whole passages to read instead of those sentences, the best first
    sure: float = bounded(0.6, 0, 1)  # answer probability at which reading stops
    hops: bool = True  # decompose a question into hops if its best path gives no sure answer
    comparisons: bool = True  # ask about two compared things separately and compare their values
    typed_facts: bool = True  # extract facts with a model from the sentences that an answer was read from
    links: Sequence[str] = ("titles", "entities")  # links between passages, of LINKED_BY
    examples: bool = True  # few-shot examples in prompts that read a path

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("link in limits.links", LINKED_BY, *self.links)
        object.__setattr__(self, "links", tuple(self.links))
        if not (self.paths or self.wide_tokens):
            raise BadInput("limits.paths and limits.wide_tokens are both 0: then nothing is read")


@check_arguments
@dataclass(frozen=True)
class Limits(_Checked):
    """Limits and options of a run. The defaults are those of the published command line (preset "reference").

    writing: "statements" (the model writes in the query language) or "operations" (it writes triples, which
    are converted to statements). reading: "statements", "operations" (the model names nodes, and the read
    statement is built from them), "whole graph" (the model answers from the graph as text), or "paths" with
    writing "mentions": sentences and the names in them are written by rule, and the model answers from one
    path at a time. `but` changes values by their names alone, as in `preset("local").but(votes=1)`.
    """

    preset: str = "reference"
    steps: int = bounded(7, 1)  # INSERT turns before reading is forced
    writing: Writing = "statements"
    reading: Reading = "statements"
    open_with_question: bool = False  # the first call searches for the question, without a model
    answer_format: Format = "default"
    evidence: int = 3  # facts cited for an answer
    # rules for sentence splitting and, along paths, for finding names
    sentences: SentenceRules = "any script"
    # ask whether the sentences that an answer was read from say it
    check_answers: bool = False
    models: ModelLimits = ModelLimits()
    tools: ToolLimits = ToolLimits()
    options: VotingOptions | PathOptions = VotingOptions()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.writing == "mentions") != (self.reading == "paths"):
            raise BadInput(
                'limits.writing "mentions" and limits.reading "paths" go together: the paths are those of the mentions'
            )
        if (self.reading == "paths") != isinstance(self.options, PathOptions):
            raise BadInput(f"limits.options of the mode {self.mode} are not {type(self.options).__name__}(…)")
        require_known("preset", ("reference", "local", "paths"), self.preset.rstrip("*"))
        writing = {"local": "operations", "paths": "mentions"}.get(self.preset)
        if writing and (self.writing != writing or self.options == type(self.options)()):
            problem = f"Limits(preset={self.preset!r}) begins with the values of the preset reference"
            raise BadInput(f"{problem}: take preset({self.preset!r}), and .but(…) to change some")

    @property
    def mode(self) -> str:
        """The mode by the name that messages give it: "paths", or what a model writes and reads."""
        if self.reading == "paths" or self.reading == self.writing:
            return self.reading
        return f"{self.writing}, read by {self.reading}"

    @property
    def writes_triples(self) -> bool:
        """Whether the model writes triples, which are converted to statements."""
        return self.writing == "operations"

    @property
    def reads_names(self) -> bool:
        """Whether the model names nodes, and the facts near them are read."""
        return self.reading == "operations"

    @property
    def voting(self) -> VotingOptions:
        """The options of a mode that votes."""
        assert isinstance(self.options, VotingOptions)
        return self.options

    @property
    def routes(self) -> PathOptions:
        """The options of the mode "paths"."""
        assert isinstance(self.options, PathOptions)
        return self.options

    @property
    def search_passages(self) -> int:
        """The passages that one search returns. Paths are read by rule, so many cost little."""
        return 16 if self.reading == "paths" else 8

    def learning(self) -> Limits:
        """Return the limits of a run with a memory, which learns typed facts if the mode finds them."""
        if isinstance(self.options, VotingOptions):
            return self
        return replace(self, options=replace(self.options, typed_facts=True))

    def but(self, **changes: Any) -> Limits:
        """Return the limits with some values changed, each by its name alone.

        The name of the preset then ends in "*". Another mode begins with the defaults of its options. Raises
        UnknownName for an unknown limit, and BadInput for an option that the mode does not have, and for
        another preset, which is where limits begin.
        """
        for name in ("preset", "reading"):
            require(changes.get(name, ""), str, f"limits.{name} is a name")
        if changes.get("preset", self.preset) != self.preset:
            advice = f"preset(name).but(…) begins with another ({', '.join(PRESETS)})"
            raise BadInput(f"but(…) leaves limits those of the preset {self.preset}: {advice}")
        return self._changed(**changes)

    def _changed(self, **changes: Any) -> Limits:
        kind = PathOptions if changes.get("reading", self.reading) == "paths" else VotingOptions
        options = self.options if isinstance(self.options, kind) else kind()
        records: dict[str, Any] = {"models": self.models, "tools": self.tools, "options": options}
        own: dict[str, Any] = {"preset": self.preset.rstrip("*") + "*", **changes}
        for part, record in records.items():
            inner = {name: own.pop(name) for name in _names(record) if name in own}
            records[part] = replace(record, **inner)
        known = [name for name in _names(self) if name not in records]
        for name in own.keys() - set(known):
            other = VotingOptions if kind is PathOptions else PathOptions
            if name in _names(other):
                modes = "vote" if kind is PathOptions else "read paths"
                problem = f"limits.{name} is an option of modes that {modes}"
                raise BadInput(f"{problem}; the options of this run's mode are: {', '.join(_names(kind))}")
            raise UnknownName("limit", name, [*known, *chain.from_iterable(map(_names, records.values()))])
        return replace(self, **records, **own)

    @classmethod
    def of_json(cls, recorded: Mapping[str, Any]) -> Limits:
        """Build the limits of a recorded run.

        Values that it does not name take the defaults of that time, and options of other modes, which older
        versions recorded too, are left. Raises UnknownName for an unknown limit.
        """
        values = {**_AS_RECORDED, **recorded}
        other = VotingOptions if values.get("reading") == "paths" else PathOptions
        kept = {str(name): value for name, value in values.items() if name not in _names(other)}
        return cls()._changed(**{"preset": "reference", **kept})

    def as_json(self) -> dict[str, Any]:
        """Convert the limits to plain values by their names, for the head of a trace.

        Limits that older versions did not record are included only if they were set.
        """
        usual = Limits.of_json({"writing": self.writing, "reading": self.reading})._flat()
        values = self._flat()
        shown = (name for name in values if name not in _NEWER_LIMITS or values[name] != usual[name])
        return {name: values[name] for name in shown}

    def _flat(self) -> dict[str, Any]:
        values = asdict(self)
        parts = [values.pop(name) for name in ("models", "tools", "options")]
        flat = values | parts[0] | parts[1] | parts[2]
        return {name: [*value] if isinstance(value, tuple) else value for name, value in flat.items()}

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


_NEWER_LIMITS = (
    "temperatures", "reply_tokens", "longer", "tool_attempts", "tool_wait", "python_seconds", "paths", "path_tokens", "wide_tokens",
    "passages", "sure", "hops", "comparisons", "typed_facts", "links", "examples", "sentences", "check_answers", "evidence", "tell_failures",
    "tell_unmade",
)  # fmt: skip
# defaults of runs that did not record a limit, where today's defaults differ
_AS_RECORDED: Mapping[str, Any] = {
    "tell_failures": False,
    "tell_unmade": False,
    "sentences": "plain",
    "links": ("titles", "names"),
    "evidence": 8,
}


REFERENCE = Limits()
LOCAL = REFERENCE._changed(
    preset="local", steps=3, votes=3, forced_reads=1, rereads=1, repairs=2, parses=3, calls=2, writing="operations", reading="operations",
    pool=True, merge=False, unpolled=2, open_with_question=True, stop_when_stuck=True, arithmetic="numbers", answer_format="gaia",
    graph_tokens=550, tool_tokens=190, row_tokens=700,
)  # fmt: skip
PATHS = REFERENCE._changed(
    preset="paths", steps=2, writing="mentions", reading="paths", open_with_question=True, answer_format="gaia",
    path_tokens=140, wide_tokens=260, typed_facts=False, check_answers=True,
)  # fmt: skip
PRESETS = {"reference": REFERENCE, "local": LOCAL, "paths": PATHS}


def limit_names() -> set[str]:
    """Return the names of the limits of all modes."""
    parts = (part for preset in PRESETS.values() for part in (preset, *vars(preset).values()))
    return {name for part in parts if isinstance(part, CheckedRecord) for name in _names(part)}


SMALL_MODELS = ("local", "ollama")  # small models, by the prefix of their names


@check_arguments
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
    small = LOCAL if with_tools else PATHS
    presets = {"auto": small if model.split(":")[0] in SMALL_MODELS else REFERENCE, **PRESETS}
    if isinstance(preset_name, str) and preset_name not in presets:
        raise UnknownName("preset", preset_name, presets)
    limits = presets[preset_name] if isinstance(preset_name, str) else preset_name
    if answer_format and answer_format != limits.answer_format:
        return limits.but(answer_format=answer_format)
    return limits


@check_arguments
def preset(name: str) -> Limits:
    """Return the limits of a preset. Raises UnknownName if there is none of that name."""
    require_known("preset", PRESETS, name)
    return PRESETS[name]


# The cost forecast of a run, from its limits, before any call.

# Tokens that a call of each role reads and writes: medians of recorded runs with small graphs, rounded up.
_CALL_TOKENS = {
    "vote": (650, 60), "merge": (200, 60), "tools": (500, 40), "write": (650, 300), "sentence": (230, 40),
    "read": (650, 60), "arithmetic": (500, 40), "parse": (450, 15), "choose": (500, 10),
    "path": (350, 8), "hops": (320, 30), "wide": (650, 8), "reread": (500, 8), "facts": (320, 80), "claim": (300, 15), "check": (700, 1),
}  # fmt: skip


@check_arguments
def forecast(
    limits: Limits, *, steps: int | None = None, calls: int = 1, rate: Rate | None = None
) -> CostEstimate:
    """Estimate the calls, tokens, seconds and dollars of a run.

    The run takes `steps` INSERT turns (by default all) with `calls` tool calls each. Failures and repairs are
    not counted. Votes and parses are counted in full, so an early decision costs less. A sentence counts as
    35 tokens.
    """
    require_count(calls, 0, "calls", "it is per step", maximum=1_000_000)
    require_count(0 if steps is None else steps, 0, "steps", "it is how many INSERT turns a run takes")
    return estimate(calls_by_role(limits, steps=steps, calls=calls), _CALL_TOKENS, rate or Rate())


def forecast_extraction(limits: Limits, texts: Sequence[str], *, rate: Rate | None = None) -> CostEstimate:
    """Estimate the cost of extracting facts from texts.

    This takes one call per sentence, or one per text if the model writes statements.
    """
    by_sentence = limits.writes_triples
    counts = {"sentence": sum(len(sentences(t)) for t in texts)} if by_sentence else {"write": len(texts)}
    return estimate(counts, _CALL_TOKENS, rate or Rate())


def calls_by_role(limits: Limits, *, steps: int | None = None, calls: int = 1) -> dict[str, int]:
    """Return the expected number of model calls for each role.

    Arithmetic is one check per candidate, or none if it depends on the question.
    """
    most = limits.steps if steps is None else min(steps, limits.steps)
    options = limits.options
    if isinstance(options, PathOptions):  # calls for an open question whose first path is not sure
        checked = int(limits.check_answers)
        paths = 0 if checked else options.paths * max(most, 1)
        return {
            "path": paths + 2 * options.hops,
            "hops": int(options.hops),
            "wide": int(options.wide_tokens > 0),
            "facts": int(options.typed_facts),
            **({"reread": 1, "claim": 1, "check": 2} if checked else {}),
        }
    turns = max(most, min(options.unpolled, limits.steps))
    forced = turns == limits.steps
    sampled = limits.models.vote_temperature > 0
    by_sentence = limits.writes_triples
    votes, parses = (options.votes, options.parses) if sampled else (1, 1)
    polled = max(turns - options.unpolled, 0)
    reads = 0 if limits.reading == "whole graph" or not forced else options.forced_reads if sampled else 1
    won = votes // 2 + 1  # a majority of votes, each with its own statement; the vote stops there
    candidates = 1 if options.pool else (reads or 1) if forced else won
    return {
        "vote": votes * (polled + (not forced)),
        "merge": polled * (options.merge and votes > 1),
        "tools": max(turns - limits.open_with_question, 0),
        "write": 0 if by_sentence else turns * calls,
        "sentence": turns * calls * limits.tools.tool_tokens // 35 if by_sentence else 0,
        "read": reads,
        "arithmetic": candidates if options.arithmetic == "always" else 0,
        "parse": parses * candidates,
        "choose": int(not options.pool and parses * candidates > 1),
        "claim": int(limits.check_answers),
        "check": 2 * limits.check_answers,
    }
