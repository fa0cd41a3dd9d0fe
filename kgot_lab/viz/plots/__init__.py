"""Every plot by one name each; all return a Plot: a picture with its words (`alt`) and its numbers
(`.table()`), saved by `.save(path)`.

What becomes here of the ten plots of the published code's benchmark (it has others' questions, in levels,
with annotated steps and tools):

1. success by level: `outcomes`, the share of exact answers with its interval; by type of question with
`by="type"`, for want of levels.
2. six outcome classes by level: `outcomes`, its stacked bars; a close call is "partly right" here, and does
not count as a success.
3. steps annotated by people, all against right: our questions have no such steps; `steps` has those that the
loop took.
4. success on short factual questions: `outcomes`.
5. the same with what was not attempted: `outcomes` has "no answer", and right of attempted with its harmonic
mean in the table.
6. match of tools chosen with tools annotated: left out, no question of ours says which tools it needs.
7. flow from that match to success: left out for the same reason.
8. share of each tool: `tool_use`, as bars with what failed, since a ring cannot be read in grey.
9. success by category of tool: left out as 6; `outcomes(by="type")` is the nearest.
10. cost, calls, duration and their rates by function: `costs` (by step and role) and `speed` (a call: mean,
least and most).
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from kgot_lab.errors import BadInput, UnknownName, require
from kgot_lab.viz.plots.comparison import (
    answer_scores,
    evidence_scores,
    likelihood_trust,
    paired_differences,
    stages_lost,
)
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.memory import briefing_curves, lifelines, review_reliability
from kgot_lab.viz.plots.outcomes import outcomes, steps
from kgot_lab.viz.plots.retrieval import bands, cell_shares, lane_ranks, pace, recall_curves, scatter, spans
from kgot_lab.viz.plots.runs import ballots, costs, growth, speed, tool_use

PLOTS: Mapping[str, Callable[..., Plot]] = {
    each.__name__: each
    for each in (
        answer_scores,
        ballots,
        bands,
        briefing_curves,
        cell_shares,
        costs,
        evidence_scores,
        growth,
        lane_ranks,
        lifelines,
        likelihood_trust,
        outcomes,
        pace,
        paired_differences,
        recall_curves,
        review_reliability,
        scatter,
        spans,
        speed,
        stages_lost,
        steps,
        tool_use,
    )
}


def plot_named(name: str, *what: Any, **options: Any) -> Plot:
    """The plot of this name, one of PLOTS, of what that plot draws, with its options.

    Raises UnknownName, BadInput for what the plot does not take, and what the plot raises.
    """
    require(name, str, "a plot is named by a text, as in plot('outcomes', …)")
    if name not in PLOTS:
        raise UnknownName("plot", name, PLOTS)
    takes = signature(PLOTS[name])
    try:
        takes.bind(*what, **options)
    except TypeError as error:
        raise BadInput(f"plot({name!r}): {error}; it takes {', '.join(takes.parameters)}") from None
    return PLOTS[name](*what, **options)


__all__ = [
    "PLOTS", "Plot", "answer_scores", "ballots", "bands", "briefing_curves", "cell_shares", "costs", "evidence_scores", "growth",
    "lane_ranks", "lifelines", "likelihood_trust", "outcomes", "pace", "paired_differences", "plot_named", "recall_curves",
    "review_reliability", "scatter", "spans", "speed", "stages_lost", "steps", "tool_use",
]  # fmt: skip
