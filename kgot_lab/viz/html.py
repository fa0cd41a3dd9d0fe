"""Build a run or a report as one self-contained HTML file that can be printed and works from disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.failures import failures
from kgot_lab.evaluation.reports import Report
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.events import Event
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace
from kgot_lab.text.cleaning import format_count
from kgot_lab.viz.live import read_asset
from kgot_lab.viz.page import build_run_page, html_document
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.retrieval import challenger, pace, recall_curves, scatter, shown_systems
from kgot_lab.viz.static.markup import Markup, collapsible, concat, element
from kgot_lab.viz.stepping.stepper import stepper

# The recall benchmark as one self-contained HTML file: tables, plots, and what each system missed.

_MAX_QUESTIONS = 300  # maximum questions listed per data set
_MAX_ROWS = 300  # maximum rows of a plot's numbers


def recall_page(reports: Iterable[Report], *, k: int = 5, title: str = "The recall benchmark") -> str:
    """Build the HTML page of some recall reports.

    For each data set it has the plots, the tables and the failures, question by question.
    """
    reports = list(reports)
    anchors = (element("a", report.dataset.name, href=f"#{_anchor(report)}") for report in reports)
    plans = [element("p", f"{plan}.") for plan in dict.fromkeys(str(report.plan) for report in reports)]
    remarks = dict.fromkeys(remark for report in reports for remark in report.remarks)
    plans += [element("p", remark) for remark in remarks]
    sections = (_report_section(report, k) for report in reports)
    body = element("main", element("h1", title), *plans, element("nav", *anchors), *sections)
    return html_document(title, read_asset("run_page.css") + read_asset("recall_page.css"), body)


def _report_section(report: Report, k: int) -> Markup:
    tables = [element("div", Markup(grid.html), class_="wide") for grid in report.grids()]
    count = len(tables) // len(report.parts)  # number of tables of the first part; the others are collapsed
    summary = f"The same tables for {' and '.join(report.parts[1:])}"
    collapsed = [collapsible(summary, *tables[count:])] if report.parts[1:] else []
    methods, missed = _methods_markup(report), _failures_markup(report, k)
    sections = (_plots_markup(report), *tables[:count], *collapsed, methods, missed)
    return element("section", element("h2", report.dataset.name), *sections, id=_anchor(report))


def _methods_markup(report: Report) -> Markup:
    explanation = (
        "Intervals are 95 % BCa bootstrap. p comes from a paired randomisation test and is corrected by Holm over the rows of a table. "
        "Bold marks the best of a column, and p below .05 after correction. “detectable” is the smallest true difference that this many "
        "questions would have shown four times in five."
    )
    pipelines = (element("li", element("b", run.system), f": {run.description}") for run in report.runs)
    kinds = ("date", "machine", "versions")
    provenance = sorted({tuple(run.about.get(kind, "") for kind in kinds) for run in report.runs})
    environments = (element("li", "; ".join(filter(None, facts))) for facts in provenance if any(facts))
    lists = element("ul", *pipelines), element("ul", *environments)
    details = collapsible("The pipelines, and where they ran", *lists)
    return concat([element("p", explanation, class_="small"), details])


def _plots_markup(report: Report) -> Markup:
    part, rival, shown = report.parts[0], challenger(report), shown_systems(report)
    questions = f"{format_count(len(report.dataset.queries), 'question')} ({part})"
    omitted = [run.system for run in report.runs if run.system not in shown]
    omission_note = ""
    if omitted:
        shown_note = f"The baseline and the best of {len(report.runs)} systems are drawn."
        omission_note = f" {shown_note} Left out, all in the tables: {'; '.join(omitted)}."
    recall_caption = f"Recall at k over {questions}. Bands: 95 % intervals of {report.plan.baseline} and {rival}.{omission_note}"
    pace_caption = "Time against recall: up and left is better. The benchmark computes the vector of a query before the clock runs."
    axes = f"{report.plan.baseline} across, {rival} up"
    scatter_caption = f"{questions} by {report.plan.primary}: {axes}. Numbers count questions; above the line {rival} is better."
    grey_note = " Grey points are the systems left out above." if omitted else ""
    recall, pace_figure = (
        _figure(recall_curves(report), recall_caption),
        _figure(pace(report), pace_caption + grey_note),
    )
    return concat([recall, pace_figure, _figure(scatter(report), scatter_caption)])


def _figure(shown_plot: Plot, caption: str) -> Markup:
    """Build a figure: a plot, its caption and its numbers, collapsed."""
    content = [shown_plot.svg, element("figcaption", caption)]
    if shown_plot.numbers:
        table = element("div", shown_plot.table(limit=_MAX_ROWS).html, class_="wide")
        content.append(collapsible("The numbers of this plot", table))
    return element("figure", *content)


def _failures_markup(report: Report, k: int) -> Markup:
    """List what each system missed.

    If the report has other parts too, the test split is not shown, so that nobody designs for it.
    """
    dataset = report.dataset.dev if "test" in report.parts and len(report.parts) > 1 else report.dataset
    failure_report = failures(dataset, report.runs, k)
    scope = " (the test split is not shown)" if dataset is not report.dataset else ""
    summary = f"What each system missed among its first {k}, question by question{scope}"
    return collapsible(summary, Markup(failure_report.html(_MAX_QUESTIONS)))


def _anchor(report: Report) -> str:
    return "data-" + "".join(character if character.isalnum() else "-" for character in report.dataset.name)


@check_arguments
@dataclass(frozen=True)
class Page:
    """The text of an HTML file. `save` writes it."""

    title: str
    text: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, creating its folder if necessary.

        Raises BadInput if it cannot be written. An existing file is then left unchanged.
        """
        return write_atomically(path, self.text, "the page")

    def __repr__(self) -> str:
        return f"<Page {self.title!r}, {len(self.text) / 1000:,.0f} kB: .save(path) writes it>"


@check_arguments
def html(
    what: Trace | Iterable[Event] | Report | Iterable[Report], *, forks: Iterable[Fork] = (), title: str = ""
) -> Page:
    """Build the page of a run or of recall reports.

    The graph of a run can be moved and stepped through, and its `forks` are shown next to it. Raises BadInput
    if `what` is empty, mixes runs and reports, or is a run without its beginning.
    """
    if isinstance(what, Trace):
        return _run_page(what, tuple(forks), title)
    inputs: list[Event | Report] = [what] if isinstance(what, Report) else list(what)
    reports = [item for item in inputs if isinstance(item, Report)]
    events = [item for item in inputs if isinstance(item, Event)]
    forks = tuple(forks)
    if forks and reports:
        raise BadInput("html() shows forks beside a run, and this is a report: leave them out")
    if not inputs or (reports and events) or len(reports) + len(events) < len(inputs):
        raise BadInput("html() takes a run (a trace or its events), or recall reports, and not a mixture")
    if events:
        return _run_page(Trace("", "", tuple(events)), forks, title)
    page_title = title or "The recall benchmark"
    return Page(page_title, recall_page(reports, title=page_title))


def _run_page(run: Trace, forks: tuple[Fork, ...], title: str) -> Page:
    run_stepper = stepper(run, forks=forks)
    page_title = title or run_stepper.question
    return Page(page_title, build_run_page(run, title=title, live={"Step through it": run_stepper.live.data}))
