"""Trials of two configurations of an expert on those who talk to it: each conversation has one of them, by
its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import ExpertConfig, changed_config
from kgot_lab.experts.repository import ExpertTables, JudgedAnswer, NotFound, StoredTrial
from kgot_lab.experts.trials.measures import TrialOutcome, TrialVariant, variant_of
from kgot_lab.experts.trials.verdict import TrialPlan, TrialVerdict, trial_verdict
from kgot_lab.types import Json

SETTLED_AFTER = timedelta(hours=1)  # an answer without a thumb is one that nobody judged, after so long


@dataclass(frozen=True)
class TrialChoice:
    """What a conversation of a trial is answered with: the variant, and the configuration."""

    trial: str
    variant: TrialVariant
    config: ExpertConfig

    @property
    def about(self) -> dict[str, Json]:
        """What is kept of it with an answer."""
        return {"trial": self.trial, "variant": self.variant, "digest": self.config.digest}


def begin_trial(
    tables: ExpertTables,
    expert: str,
    a: object,
    b: object,
    plan: TrialPlan,
    check: Callable[[ExpertConfig], ExpertConfig],
) -> StoredTrial:
    """Begin a trial of two changes of an expert, {} for the expert as it is; raises BadInput, and NotFound
    for the expert.
    """
    config = tables.expert(expert).config
    variants = {}
    for name, change in (("a", a), ("b", b)):
        if not isinstance(change, Mapping):
            raise BadInput(f"variant {name} is a JSON object with the fields that differ")
        if {"kg_db_id", "kg_db_ids", "name"} & set(change):
            raise BadInput("a variant differs in how it searches and speaks, not in name or graphs")
        variants[name] = check(changed_config(config, change))
    if variants["a"] == variants["b"]:
        raise BadInput("the two variants are the same: there is nothing to compare")
    return tables.add_trial(expert, {"plan": asdict(plan), "a": a, "b": b})


def chosen_variant(config: ExpertConfig, trial: StoredTrial, conversation: str) -> TrialChoice:
    """What a conversation is answered with while a trial is going on."""
    variant = variant_of(trial.id, conversation, _plan(trial).shares)
    return TrialChoice(trial.id, variant, changed_config(config, trial.body[variant]))


def verdict_on(
    tables: ExpertTables, expert: str, id: str, now: datetime
) -> tuple[StoredTrial, TrialVerdict | None]:
    """What a trial of an expert shows so far, None before anything is settled; raises NotFound."""
    found = [each for each in tables.trials(expert) if each.id == id]
    if not found:
        raise NotFound("trial")
    (trial,) = found
    outcomes = [outcome for each in tables.judged(expert) if (outcome := _outcome(each, id, now)) is not None]
    return trial, trial_verdict(outcomes, _plan(trial)) if outcomes else None


def _plan(trial: StoredTrial) -> TrialPlan:
    told = dict(trial.body["plan"])
    return TrialPlan(**told | {"shares": tuple(told["shares"])})


def _outcome(answer: JudgedAnswer, trial: str, now: datetime) -> TrialOutcome | None:
    """What came of an answer, where it belongs to a trial and is settled."""
    about = answer.about
    if about.get("trial") != trial or about.get("failed") or about.get("stopped"):
        return None
    settled = answer.thought_at or answer.at + SETTLED_AFTER
    if settled > now:
        return None
    told = len(about.get("kg_nodes_used", ()))
    first = about.get("first_token_ms")
    return TrialOutcome(
        test_id=trial,
        variant=about["variant"],
        unit=answer.conversation,
        at=settled.timestamp(),
        thumb=answer.thumb,
        told=told,
        cited=min(told, len(about.get("citations", ()))),
        false_citations=len(about.get("false_citations", ())),
        seconds_first=None if first is None else first / 1000,
        digest=about["digest"],
    )
