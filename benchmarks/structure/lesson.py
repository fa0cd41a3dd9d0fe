"""The figures that lesson 31 shows, derived from the answers on file."""

from __future__ import annotations

from pathlib import Path

from benchmarks.structure.analogies import choices
from benchmarks.structure.kept import KeptAnswers, kept_edges, sure
from kgot_lab.types import Json

_DATA = ("storyanalogy-mc", "analobench S1", "parallelparc")
_COMPARED = ("aligned", "fitted surface + aligned")


def lesson_figures(folder: Path) -> dict[str, Json]:
    """Compute every figure of the lesson, as plain values."""
    answers = KeptAnswers.of(folder)
    dev = {question.id for question in choices("storyanalogy-mc").dev.questions}
    drawn = list(answers.sets["storyanalogy-mc cells"][1])
    gains = {system: answers.gains(system) for system in _COMPARED}
    asked = answers.sets["storyanalogy-mc"][1]
    return {
        "accuracy": {
            name: {system: answers.accuracy(name, system) for system in said} for name, (_, said) in answers.sets.items()
        },
        "dev accuracy": {system: answers.scores("storyanalogy-mc", system).only(dev).mean("accuracy") for system in asked},
        "cells": {data: {system: answers.by_cell(data, system) for system in drawn} for data in _DATA},
        "gains": gains,
        "beyond chance": {system: sure(rows) for system, rows in gains.items()},
        "edges": kept_edges(folder),
    }  # fmt: skip
