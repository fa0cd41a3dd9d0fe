"""Shared parts of the `query` commands: the graph, the output format, and exit codes."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.options import argument, group_parameters, option, set_signature, typer_parameter
from kgot_lab.errors import BadInput, require_amount, require_seconds
from kgot_lab.io.files import write_atomically
from kgot_lab.kgos.query.questions import QUESTIONS, GraphQuestion
from kgot_lab.text.cleaning import format_count

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.kgos.methods.formatting import MethodResult
    from kgot_lab.kgos.methods.search.multi_graph import MultiGraph
    from kgot_lab.kgos.query.search_embedder import SearchEmbedder

# exit codes besides 0, 1 for an error, 2 for wrong arguments and 130 for an interruption
NOTHING_FOUND, RULES_BROKEN, TIMED_OUT = (3, 4, 124)


class OutputFormat(StrEnum):
    """The form of an answer."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


_ENDINGS = {".json": OutputFormat.JSON, ".csv": OutputFormat.CSV, ".md": OutputFormat.MARKDOWN}


@dataclass
class QueriedGraph:
    """The graph that a command is about, opened when it is first needed."""

    where: str
    namespace: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)  # other graphs by name, for a search over several
    fresh: bool = False
    dry: bool = False
    quiet: bool = False
    all_files: bool = False
    dask: str | None = None  # the address of a scheduler whose workers read a folder
    embedder: str | None = None  # of searches

    @contextmanager
    def search_embedder(self) -> Iterator[SearchEmbedder]:
        """Yield the embedder of searches, which shows the vectors that it computes."""
        from kgot_lab.kgos.query.search_embedder import SearchEmbedder

        with ExitStack() as opened:
            bar = cache(lambda: opened.enter_context(terminal.progress_bar("vectors")))

            def show_vectors(done: int, total: int) -> None:
                if not self.quiet and total > 1:  # one is the query
                    bar()(done, total, "computing vectors, once")

            yield SearchEmbedder(self.embedder, show_vectors)

    def ask(self, question: GraphQuestion, arguments: Mapping[str, Any]) -> MethodResult:
        """Ask the graph a question, and say what a search goes by.

        A search ranks several graphs jointly, and lists a thing that two contain once; other questions see one graph.
        """
        graph = self.ranked_graphs if question.name == "search" else self.graph
        if not question.takes_embedder:
            return question.ask(graph, **arguments)
        with self.search_embedder() as by:
            embedder, note = by.select(graph)
            result = question.ask(graph, **arguments, embedder=embedder)
        self.say(note)
        return result

    def stop_if_dry(self, what: str) -> None:
        """Say what the command would do, and end it, if nothing is to be asked."""
        if self.dry:
            terminal.say(f"would {what}")
            raise typer.Exit

    @property
    def graph(self) -> PropertyGraph:
        """The graph, or all in one with the names of each before its ids."""
        from kgot_lab.kgos.methods.search.multi_graph import MultiGraph

        return self.ranked_graphs.graph if isinstance(self.ranked_graphs, MultiGraph) else self.ranked_graphs

    @cached_property
    def ranked_graphs(self) -> PropertyGraph | MultiGraph:
        """The graph, or several that are ranked together."""
        from kgot_lab.kgos.methods.search.multi_graph import MultiGraph

        if not self.beside:
            return self._open(self.where)
        if "graph" in self.beside:
            raise BadInput("--with graph=… : graph is the name of the one that is asked; give another")
        locations = {"graph": self.where, **self.beside}
        return MultiGraph.of({name: self._open(where) for name, where in locations.items()})

    def _open(self, where: str) -> PropertyGraph:
        from kgot_lab.io.dask_workers import dask_client
        from kgot_lab.kgos.query.graph_loading import load_graph

        path = Path(where).expanduser()
        if "://" not in where and not path.exists():
            return self._open_named(where)
        if not path.is_dir():
            return load_graph(where, namespace=self.namespace if "://" in where else None, say=self.say)
        options: dict[str, Any] = {"all_files": self.all_files, "say": self.say}
        options["cache"] = False if self.fresh else None
        with dask_client(self.dask) if self.dask else nullcontext() as client:
            if self.quiet:
                return load_graph(where, client=client, **options)
            with terminal.progress_bar("files") as progress:
                return load_graph(where, progress=progress, client=client, **options)

    @staticmethod
    def _open_named(name: str) -> PropertyGraph:
        """Open a graph by its name: a bundled one, or one that was uploaded in the page of experts."""
        from kgot_lab.cli.experts import uploads_location
        from kgot_lab.experts.graph_folder import GraphFolder
        from kgot_lab.experts.service import SHIPPED_GRAPHS
        from kgot_lab.experts.uploads import UploadFolder

        named = GraphFolder(None, SHIPPED_GRAPHS, UploadFolder(uploads_location(None)))
        if name not in named.names():
            names = ", ".join(named.names())
            what = "a folder, a document, a file with a graph, a trace, or a store's file or address"
            raise BadInput(f"there is no graph at {name}: name {what}, or one of {names}")
        return named.base_graph(name)

    def say(self, text: str) -> None:
        """Print a note on standard error, unless it is to be quiet."""
        if not self.quiet:
            terminal.say(text)


def checked_output(context: typer.Context, output: Path | None) -> Path | None:
    """Return the output file, after checking that it does not overwrite the queried graph.

    Raises BadInput if it exists and is that graph or a part of it.
    """
    queried = context.find_object(QueriedGraph)
    if queried is None or output is None or not output.exists():
        return output
    for location in (queried.where, *queried.beside.values()):
        path = Path(location).expanduser()
        if "://" in location or not path.exists():
            continue
        if path.resolve() in (output.resolve(), *output.resolve().parents):
            is_what = "what is asked" if path.is_file() else f"a file of {location}, which is asked"
            raise BadInput(f"{output} is {is_what}: name another --output")
    return output


ANSWER_FILE = option("write the answer into this file", "--output", callback=checked_output)
_SHORT_FORMS = {f"as_{form}": form for form in (OutputFormat.JSON, OutputFormat.CSV, OutputFormat.MARKDOWN)}


@dataclass(frozen=True)
class FormatOptions:
    """In which form and how much of an answer is shown."""

    format: OutputFormat = option("table, json, csv or markdown", default=OutputFormat.TABLE)
    as_json: bool = option("the same as --format json", "--json", default=False)
    as_csv: bool = option("the same as --format csv", "--csv", default=False)
    as_markdown: bool = option("the same as --format markdown", "--markdown", default=False)
    output: Path | None = ANSWER_FILE
    explain: bool = option("show all columns, the score by retriever, and how it came about", default=False)
    verbose: bool = option("the same as --explain", default=False)
    quiet: bool = option("say nothing on standard error but errors", default=False)
    color: bool | None = option("colours in tables; by default on a terminal", "--color/--no-color")
    max_results: int | None = option("show at most so many rows", min=1)
    threshold: float | None = option("only rows with at least this score or risk")
    timeout: float | None = option(f"stop after so many seconds, with exit code {TIMED_OUT}", min=0.001)

    def __post_init__(self) -> None:
        """Resolve the short forms. Raises BadInput for two formats at once, and for another than that of the file."""
        forms = [form for name, form in _SHORT_FORMS.items() if getattr(self, name)]
        forms = list(dict.fromkeys([*forms, *([self.format] if self.format != OutputFormat.TABLE else [])]))
        if len(forms) > 1:
            raise BadInput(f"the answer has one form, not {' and '.join(forms)}")
        object.__setattr__(self, "format", forms[0] if forms else OutputFormat.TABLE)
        named = None if self.output is None else _ENDINGS.get(self.output.suffix.lower())
        if named not in (None, self.format):
            problem = f"{self.output} would hold a {self.format} by its form, and its name says {named}"
            raise BadInput(f"{problem}: give --format {named}, or name it otherwise")
        if self.threshold is not None:
            require_amount(self.threshold, "--threshold")
        object.__setattr__(self, "explain", self.explain or self.verbose)


def require_place(
    kind: Literal["a folder", "the address of a server"], places: Iterable[str], **flags: Any
) -> None:
    """Raise BadInput if an option is given that has an effect on one kind of place only, and none is of it."""
    is_there = any(
        "://" in place if kind[0] == "t" else Path(place).expanduser().is_dir() for place in places
    )
    for name in flags if not is_there else ():
        if flags[name]:
            raise BadInput(f"--{name} has an effect on {kind} only, and none is named: leave it out")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop the body after so many seconds. The command then exits with a code of its own."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise _TimedOut

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, require_seconds(seconds, "--timeout"))
    try:
        yield
    except _TimedOut:
        terminal.say(f"error: not done after {seconds:g} s; --timeout gives it longer")
        raise typer.Exit(TIMED_OUT) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class _TimedOut(BaseException):
    """A timeout. It is not an Exception, so that no error handler on the way catches it."""


def print_result(result: MethodResult, shape: FormatOptions, *, verdict: bool = False) -> None:
    """Print a result in its format.

    If it has no row, and an empty result is no verdict, the reason is printed and the exit code says so.
    """
    from kgot_lab.kgos.methods.formatting import CALLS_NOTE
    from kgot_lab.kgos.methods.goals import Capability

    columns, rows = visible_rows(result, shape)
    text = format_result(result, columns, rows, shape)
    bold = 2 if rows and shape.format == OutputFormat.TABLE else 0
    write_answer(text, shape.output, bold=bold, color=shape.color)
    if shape.format != OutputFormat.JSON and not shape.quiet and not shape.explain:
        for line in result.why:
            if not rows or line.startswith(CALLS_NOTE):
                terminal.say(line)
    if not rows and result.rows():
        terminal.say(
            f"none of {format_count(len(result.rows()), 'row')} reaches --threshold {shape.threshold:g}"
        )
    if not rows and not verdict and not (isinstance(result, Capability) and result.status != "unknown"):
        raise typer.Exit(NOTHING_FOUND)


def visible_rows(result: MethodResult, shape: FormatOptions) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows to show.

    The partial scores of a search are left out without --explain, except in JSON. Raises BadInput if
    --threshold is given and there is no score.
    """
    columns, rows = list(result.COLUMNS), [tuple(row) for row in result.rows()]
    if shape.threshold is not None:
        scored = [name for name in ("score", "risk", "priority") if name in columns]
        if not scored:
            raise BadInput(f"this answer has no score for --threshold; its columns are {', '.join(columns)}")
        position = columns.index(scored[0])
        rows = [row for row in rows if row[position] >= shape.threshold]
    rows = rows[: shape.max_results]
    partial_scores = ("embedding", "text", "graph", "intent", "path", "sources")
    if not shape.explain and set(partial_scores) <= set(columns) and shape.format != OutputFormat.JSON:
        positions = [position for position, name in enumerate(columns) if name not in partial_scores]
        columns = [columns[position] for position in positions]
        rows = [tuple(row[position] for position in positions) for row in rows]
    return columns, rows


def format_result(
    result: MethodResult, columns: Sequence[str], rows: Sequence[tuple[Any, ...]], shape: FormatOptions
) -> str:
    """Format a result in the chosen output format."""
    from kgot_lab.evaluation.tables import Cell, Grid

    if shape.format == OutputFormat.JSON:
        page = result_to_json(result, columns, rows)
        return json.dumps(page, ensure_ascii=False, indent=1, default=to_jsonable)
    if shape.format == OutputFormat.CSV:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(columns)
        table.writerows([[_format_cell(value, short=False) for value in row] for row in rows])
        return text.getvalue().rstrip("\n")
    short = shape.format == OutputFormat.TABLE and not shape.explain
    cells = tuple(tuple(Cell(_format_cell(value, short=short)) for value in row) for row in rows)
    grid = Grid(result.title, tuple(columns), cells, words=True)
    body = grid.markdown if shape.format == OutputFormat.MARKDOWN else grid.text if rows else result.title
    bullet = "- " if shape.format == OutputFormat.MARKDOWN else "  "
    reasons = [f"{bullet}{line}" for line in result.why] if shape.explain else []
    return "\n".join([body, *([""] if reasons and shape.format == OutputFormat.MARKDOWN else []), *reasons])


def result_to_json(
    result: MethodResult, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> dict[str, Any]:
    """Return a result as one object: its title, a record for each row, and the reasons."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"title": result.title, "rows": records, "why": list(result.why)}


def write_answer(text: str, output: Path | None, *, bold: int = 0, color: bool | None = None) -> None:
    """Write a text to a file, or to standard output with its first lines bold if colour is on."""
    from kgot_lab.text.cleaning import printable_line

    if output is None:
        lines = list(map(printable_line, text.split("\n")))
        if color is None and os.environ.get("NO_COLOR"):
            color = False
        head = (typer.style(line, bold=True, fg="cyan") for line in lines[:bold])
        typer.echo("\n".join([*head, *lines[bold:]]), color=color)
    else:
        write_atomically(output, text + "\n", "the answer")


def check_new_graph_file(output: Path, *, of_any: bool = True) -> None:
    """Raise BadInput if a graph, or any graph, cannot be written to a file, or the file is there already."""
    from kgot_lab.stores.files import check_graph_file

    check_graph_file(output, of_any=of_any)
    if output.exists():
        raise BadInput(f"{output} is there already, and would be lost: name another file")


_CELL_WIDTH = 80


def _format_cell(value: object, *, short: bool) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        value = ", ".join(map(str, value))
    text = "" if value is None else str(value)
    text = " ".join(text.split()) if short else text
    return text if not short or len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 1]}…"


def to_jsonable(value: object) -> object:
    """Convert a value that JSON cannot represent, such as a NumPy number or a set."""
    if hasattr(value, "item"):
        return value.item()
    return list(value) if isinstance(value, set | frozenset) else str(value)


# The group `query`: one command per question, with its arguments and the shared options.

queries = typer.Typer(
    help="Ask a graph: a file of any supported format, a store's address, or a folder of code and texts, which is read first.",
    no_args_is_help=True,
    subcommand_metavar="QUESTION [ARGS]...",
)


@dataclass(frozen=True)
class ReadingOptions:
    """How a folder is read."""

    fresh: bool = option("read all files of a folder again", "--no-cache", default=False)
    all_files: bool = option("read build output and files in .gitignore too", default=False)
    dask: str | None = option("the address of a Dask scheduler, whose workers read the folder")


@queries.callback()
@options.with_options
def select_graph(
    context: typer.Context,
    *,
    graph: str = argument(
        "a graph's file, a store's address, SQLite, a document, a folder of code, texts and tables, or a name (cookbook)"
    ),
    namespace: str | None = option("which graph of a server"),
    beside: list[str] | None = option("ask another graph too: NAME=GRAPH; repeat for more", "--with"),
    reading: ReadingOptions,
    embedder: str | None = options.SEARCH_EMBEDDER,
    dry: bool = option("only say what would be asked", "--dry-run", default=False),
) -> None:
    """Query a graph.

    Exit codes: 0 found, 1 error, 2 wrong arguments, 3 nothing found, 4 rules broken, 124 timed out, 130
    interrupted.
    """
    other_graphs: dict[str, str] = {}
    for assignment in beside or ():
        name, _, location = assignment.partition("=")
        if not location or not re.fullmatch(r"\w[\w.-]*", name):
            raise BadInput(
                f"--with is NAME=GRAPH, with a name of letters, digits, . and -, not {assignment!r}"
            )
        if name in other_graphs:
            raise BadInput(f"--with names {name} twice: each graph has a name of its own")
        other_graphs[name] = location
    places = (graph, *other_graphs.values())
    if context.invoked_subcommand not in ("compare", "whats-new", "import-graph"):  # which read another graph
        flags = {"no-cache": reading.fresh, "all-files": reading.all_files, "dask": reading.dask}
        require_place("a folder", places, **flags)
        require_place("the address of a server", places, namespace=namespace)
    context.obj = QueriedGraph(graph, namespace, other_graphs, dry=dry, embedder=embedder, **asdict(reading))


def build_command(question: GraphQuestion) -> Callable[..., None]:
    """Build the command of a graph question, with the question's parameters and the shared options."""

    def run(**values: Any) -> None:
        context: typer.Context = values.pop("context")
        queried: QueriedGraph = context.obj
        shape = FormatOptions(**{item.name: values.pop(item.name) for item in fields(FormatOptions)})
        arguments = {parameter.name: values[parameter.name] for parameter in question.parameters}
        arguments |= {name: None for name, value in arguments.items() if value == []}
        given = {name: value for name, value in arguments.items() if value not in (None, [], False)}
        settings = ", ".join(f"{name} = {value!r}" for name, value in given.items())
        asked = f"{question.name} of {queried.where}{settings and f' with {settings}'}"
        queried.stop_if_dry(f"ask {asked}: {question.help}")
        queried.quiet = shape.quiet
        with time_limit(shape.timeout):
            result = queried.ask(question, arguments)
        print_result(result, shape)

    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for parameter in question.parameters:
        required = parameter.default is inspect.Parameter.empty
        info = argument(parameter.help) if required else option(parameter.help, default=parameter.default)
        parameters.append(typer_parameter(parameter.name, parameter.type, info))
    return set_signature(run, [*parameters, *group_parameters(FormatOptions)], question.name, question.help)


_PANELS: Mapping[str, str] = {
    "discovery": "Overview",
    "intent": "Goals",
    "exploration": "Traversal",
    "analysis": "Dependencies and impact",
    "ranking": "Similarity and ranking",
    "dimensions": "Dimensions",
}
for _question in QUESTIONS.values():
    queries.command(_question.name, rich_help_panel=_PANELS[_question.group])(build_command(_question))
