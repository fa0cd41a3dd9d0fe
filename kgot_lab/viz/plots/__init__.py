"""All plots, each under one name.

Every plot function returns a Plot: a picture with a description (`alt`) and numbers (`.table()`), saved by
`.save(path)`. The ten plots of a run of questions are in `questions`.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from kgot_lab.errors import BadInput, require, require_known
from kgot_lab.viz.plots.comparison import (
    answer_scores,
    evidence_scores,
    likelihood_trust,
    paired_differences,
    stages_lost,
)
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.memory import briefing_curves, lifelines, review_reliability
from kgot_lab.viz.plots.retrieval import bands, cell_shares, lane_ranks, pace, recall_curves, scatter, spans
from kgot_lab.viz.plots.runs import ballots, growth

PLOTS: Mapping[str, Callable[..., Plot]] = {
    each.__name__: each
    for each in (
        answer_scores, ballots, bands, briefing_curves, cell_shares, evidence_scores, growth, lane_ranks, lifelines,
        likelihood_trust, pace, paired_differences, recall_curves, review_reliability, scatter, spans, stages_lost,
    )
}  # fmt: skip


def plot_named(name: str, *what: Any, **options: Any) -> Plot:
    """Draw the plot of this name, one of PLOTS, with its arguments and options.

    Raises UnknownName if there is no such plot, BadInput if the arguments do not fit, and what the plot
    raises.
    """
    require(name, str, "a plot is named by a text, as in plot('ballots', …)")
    require_known("plot", PLOTS, name)
    takes = signature(PLOTS[name])
    try:
        takes.bind(*what, **options)
    except TypeError as error:
        raise BadInput(f"plot({name!r}): {error}; it takes {', '.join(takes.parameters)}") from None
    return PLOTS[name](*what, **options)


__all__ = ["PLOTS", "Plot", "plot_named", *PLOTS]
