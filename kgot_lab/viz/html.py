"""Build a run or a report as one self-contained HTML file that can be printed and works from disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput, describe_value
from kgot_lab.evaluation.failures import failures
from kgot_lab.evaluation.reports import Report
from kgot_lab.io.files import write_whole
from kgot_lab.loop.events import Event
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace
from kgot_lab.viz.page import STYLE, html_document, page
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.retrieval import pace, recall_curves, rival, scatter, shown_systems
from kgot_lab.viz.static.markup import Markup, element, joined
from kgot_lab.viz.stepping.stepper import stepper

# The recall benchmark as one self-contained HTML file: tables, plots, and what each system missed.

_QUESTIONS = 300  # maximum questions listed per data set
_ROWS = 300  # maximum rows of a plot's numbers

MORE_STYLE = """
body { max-width: 76rem; }
.wide { overflow-x: auto; }
table.grid td, table.grid th { padding-left: .9rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
table.grid td:first-child, table.grid th:first-child { padding-left: 0; }
caption { font-weight: bold; padding-bottom: .3rem; white-space: nowrap; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; border: none; }
figcaption { font: .85rem Helvetica, Arial, sans-serif; max-width: 60rem; }
.failure { border-bottom: 1px solid #e5e5e5; padding: .25rem 0; }
.failure table { margin-left: 1.2rem; } .failure p { margin: .3rem 1.2rem; }
nav a { margin-right: 1.2rem; font-family: Helvetica, Arial, sans-serif; }
"""


def write_recall_page(reports: Report | Iterable[Report], path: Path, *, k: int = 5) -> Path:
    """Write the page of one report or several to a file and return its path.

    Failures are reported at `k`.
    """
    return write_whole(
        path, recall_page([reports] if isinstance(reports, Report) else reports, k=k), "the report"
    )


def recall_page(reports: Iterable[Report], *, k: int = 5, title: str = "The recall benchmark") -> str:
    """Build the HTML page of some recall reports.

    For each data set it has the plots, the tables and the failures, question by question.
    """
    reports = list(reports)
    links = element(
        "nav", *(element("a", report.dataset.name, href=f"#{_anchor(report)}") for report in reports)
    )
    plans = [element("p", f"{plan}.") for plan in dict.fromkeys(str(report.plan) for report in reports)]
    plans += [
        element("p", remark)
        for remark in dict.fromkeys(remark for report in reports for remark in report.remarks)
    ]
    body = element("main", element("h1", title), *plans, links, *(_section(report, k) for report in reports))
    return html_document(title, STYLE + MORE_STYLE, body)


def _section(report: Report, k: int) -> Markup:
    tables = [element("div", Markup(grid.html), class_="wide") for grid in report.grids()]
    first = len(tables) // len(report.parts)  # number of tables of the first part; the others are collapsed
    parts = element(
        "details",
        element("summary", f"The same tables for {' and '.join(report.parts[1:])}"),
        *tables[first:],
    )
    shut = [parts] if report.parts[1:] else []
    inner = (_plots(report), *tables[:first], *shut, _how(report), _failures(report, k))
    return element("section", element("h2", report.dataset.name), *inner, id=_anchor(report))


def _how(report: Report) -> Markup:
    said = (
        "Intervals are 95 % BCa bootstrap. p comes from a paired randomisation test and is corrected by Holm over the rows of a table. "
        "Bold marks the best of a column, and p below .05 after correction. “detectable” is the smallest true difference that this many "
        "questions would have shown four times in five."
    )
    pipelines = (element("li", element("b", run.system), f": {run.description}") for run in report.runs)
    made = sorted(
        {
            (run.about.get("date", ""), run.about.get("machine", ""), run.about.get("versions", ""))
            for run in report.runs
        }
    )
    where = (element("li", "; ".join(filter(None, facts))) for facts in made if any(facts))
    details = element(
        "details",
        element("summary", "The pipelines, and where they ran"),
        element("ul", *pipelines),
        element("ul", *where),
    )
    return joined([element("p", said, class_="small"), details])


def _plots(report: Report) -> Markup:
    part, other, named = report.parts[0], rival(report), shown_systems(report)
    questions = f"{len(report.dataset.queries)} questions ({part})"
    rest = [run.system for run in report.runs if run.system not in named]
    why = f" The baseline and the best of {len(report.runs)} systems are drawn. Left out, all in the tables: {'; '.join(rest)}."
    bands = f"Recall at k over {questions}. Bands: 95 % intervals of {report.plan.baseline} and {other}.{why * bool(rest)}"
    dots = "Time against recall: up and left is better. The benchmark computes the vector of a query before the clock runs."
    axes = f"{report.plan.baseline} across, {other} up"
    words = f"{questions} by {report.plan.primary}: {axes}. Numbers count questions; above the line {other} is better."
    grey = " Grey points are the systems left out above." * bool(rest)
    return joined(
        [
            _figure(recall_curves(report), bands),
            _figure(pace(report), dots + grey),
            _figure(scatter(report), words),
        ]
    )


def _figure(drawn: Plot, caption: str) -> Markup:
    """Build a figure: a plot, its caption and its numbers, collapsed."""
    numbers = element(
        "details",
        element("summary", "The numbers of this plot"),
        element("div", drawn.table(limit=_ROWS).html, class_="wide"),
    )
    return element("figure", drawn.svg, element("figcaption", caption), *([numbers] if drawn.numbers else []))


def _failures(report: Report, k: int) -> Markup:
    """List what each system missed.

    If the report has other parts too, the test split is not shown, so that nobody designs for it.
    """
    dataset = report.dataset.develop if "locked" in report.parts and len(report.parts) > 1 else report.dataset
    found = failures(dataset, report.runs, k)
    which = " (the locked ones are not shown)" if dataset is not report.dataset else ""
    summary = element("summary", f"What each system missed among its first {k}, question by question{which}")
    return element("details", summary, Markup(found.html(_QUESTIONS)))


def _anchor(report: Report) -> str:
    return "data-" + "".join(letter if letter.isalnum() else "-" for letter in report.dataset.name)


@dataclass(frozen=True)
class Page:
    """The text of an HTML file. `save` writes it."""

    title: str
    text: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, creating its folder if necessary.

        Raises BadInput if it cannot be written. An existing file is then left unchanged.
        """
        return write_whole(path, self.text, "the page")

    def __repr__(self) -> str:
        return f"<Page {self.title!r}, {len(self.text) / 1000:,.0f} kB: .save(path) writes it>"


def html(
    what: Trace | Iterable[Event] | Report | Iterable[Report], *, forks: Iterable[Fork] = (), title: str = ""
) -> Page:
    """Build the page of a run or of recall reports.

    The graph of a run can be moved and stepped through, and its `forks` are shown next to it. Raises BadInput
    if `what` is empty, mixes runs and reports, or is a run without its beginning.
    """
    if isinstance(what, Trace):
        return _of_run(what, tuple(forks), title)
    if not isinstance(what, Report | Iterable):
        raise BadInput(f"html() takes a run or a recall report, not {describe_value(what)}")
    things: list[Event | Report] = [what] if isinstance(what, Report) else list(what)
    reports = [thing for thing in things if isinstance(thing, Report)]
    events = [thing for thing in things if isinstance(thing, Event)]
    if not things or (reports and events) or len(reports) + len(events) < len(things):
        raise BadInput(
            "html() takes a run (a trace or its events), or a recall report or several, and not a mixture"
        )
    if events:
        return _of_run(Trace("", "", tuple(events)), tuple(forks), title)
    named = title or "The recall benchmark"
    return Page(named, recall_page(reports, title=named))


def _of_run(run: Trace, forks: tuple[Fork, ...], title: str) -> Page:
    walked = stepper(run, forks=forks)
    named = title or walked.question
    return Page(named, page(run, title=title, live={"Step through it": walked.live.data}))
