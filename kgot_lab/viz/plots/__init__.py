"""All plots, each under one name.

Every plot function returns a Plot: a picture with a description (`alt`) and numbers (`.table()`), saved by
`.save(path)`. The ten plots of a run of questions are in `questions`.
"""

from collections.abc import Callable, Mapping

from kgot_lab.arguments import check_arguments
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.memory import lifelines
from kgot_lab.viz.plots.retrieval import bands, pace, recall_curves, scatter
from kgot_lab.viz.plots.runs import growth, votes

PLOTS: Mapping[str, Callable[..., Plot]] = {
    each.__name__: check_arguments(each)
    for each in (bands, growth, lifelines, pace, recall_curves, scatter, votes)
}


__all__ = ["PLOTS", "Plot", *PLOTS]
