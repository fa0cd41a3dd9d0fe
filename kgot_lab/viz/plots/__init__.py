"""All plots, each under one name.

Every plot function returns a Plot: a picture with a description (`alt`) and numbers (`.table()`), saved by
`.save(path)`. The ten plots of a run of questions are in `questions`.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_known
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.memory import lifelines
from kgot_lab.viz.plots.retrieval import bands, pace, recall_curves, scatter
from kgot_lab.viz.plots.runs import growth, votes

PLOTS: Mapping[str, Callable[..., Plot]] = {
    each.__name__: each for each in (bands, growth, lifelines, pace, recall_curves, scatter, votes)
}


@check_arguments
def plot_named(name: str, *what: Any, **options: Any) -> Plot:
    """Draw the plot of this name, one of PLOTS, with its arguments and options.

    Raises UnknownName if there is no such plot, BadInput if the arguments do not fit, and what the plot
    raises.
    """
    require_known("plot", PLOTS, name)
    takes = signature(PLOTS[name])
    try:
        takes.bind(*what, **options)
    except TypeError as error:
        raise BadInput(f"plot({name!r}): {error}; it takes {', '.join(takes.parameters)}") from None
    return PLOTS[name](*what, **options)


__all__ = ["PLOTS", "Plot", "plot_named", *PLOTS]
