"""The command line: ask, demo, extract, query, resume, show, verify, certify, memory, invest, bench, model,
doctor.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from kgot_lab import __version__
from kgot_lab.cli import options, question_setup, review, terminal  # noqa: F401  review adds commands to memories
from kgot_lab.cli.bench import bench
from kgot_lab.cli.experts import experts
from kgot_lab.cli.export import export, list_namespaces, make_slides, show_marks, write_pages
from kgot_lab.cli.invest import investments
from kgot_lab.cli.memory import certify_run, memories, question_memory
from kgot_lab.cli.options import argument, option
from kgot_lab.cli.questions import answer_questions
from kgot_lab.cli.resume import ResumeCommand, fork_run
from kgot_lab.cli.serve import serve_experts, serve_mcp
from kgot_lab.errors import (
    BadInput,
    LabError,
    ModelMissing,
    NotInstalled,
    OutOfMemory,
    is_out_of_memory,
    mask_secrets,
)
from kgot_lab.llm.keys import load_env
from kgot_lab.loop.limits import limit_names
from kgot_lab.text.cleaning import decode_argument, format_count, printable_line

HELP = "Grow a knowledge graph from documents to answer a question, and watch it grow."


class _CommandGroup(TyperGroup):
    """The group of commands. Its usage errors show no password in an address."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _refuse_repeats(self)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), "query"]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name != "query":
            return super().get_command(ctx, cmd_name)
        # only now: a command for each question needs all of them; importing a module puts its commands into the group
        from kgot_lab.cli.query import answer_commands, graph_commands  # noqa: F401
        from kgot_lab.cli.query.shared import queries

        group = typer.main.get_group(queries)
        group.name = cmd_name
        _refuse_repeats(group)
        return group

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            # an error of usage, whose class has no public name
            if isinstance(message := getattr(error, "message", None), str):
                error.message = mask_secrets(message.replace("Value error, ", ""))  # type: ignore[attr-defined]
            name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
            taken = [
                opt
                for each in getattr(getattr(error, "ctx", None), "command", self).params
                for opt in each.opts
            ]
            if "--set" in taken and name in limit_names():
                error.possibilities = [f"--set {name}=VALUE"]  # type: ignore[attr-defined]
            raise


_ONE_INPUT = ("documents", "graph", "memory", "user")


def _refuse_repeats(command: Any) -> None:
    """Have a command, or those of a group, raise BadInput for two values of an option that names the input.

    Of other options the last value counts, as is usual: repeating one changes it.
    """
    if commands := getattr(command, "commands", {}):
        for each in commands.values():
            _refuse_repeats(each)
        return
    parse_args = command.parse_args

    def parse_once(context: Any, arguments: list[str]) -> Any:
        *_, given = command.make_parser(context).parse_args(args=[*arguments])
        for each, times in Counter(given).items():
            if times > 1 and each.name in _ONE_INPUT and not each.multiple:
                raise BadInput(
                    f"{each.opts[0]} is given {times} times, and only one would be used: give it once"
                )
        return parse_args(context, arguments)

    command.parse_args = parse_once


app = typer.Typer(cls=_CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)


def main() -> None:
    """Run the command line.

    An error prints one line on standard error and exits with code 1. An interruption exits with 130.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an unsupported character must not end a run
    with warnings.catch_warnings(), _signals_as_interrupts():
        # without the line of code it comes from
        warnings.showwarning = lambda message, *_: terminal.say(f"note: {message}")
        try:
            load_env()
            _refuse_blank(sys.argv[1:])
            app()
        except LabError as error:
            if isinstance(error.__cause__, OSError):
                _redirect_if_closed(sys.stdout)
            terminal.say(f"error: {error}")
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(terminal.INTERRUPTED)
        except OSError as error:
            _redirect_if_closed(sys.stdout)
            terminal.say(f"error: {terminal.format_os_error(error)}")
            sys.exit(1)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            terminal.say(f"error: {OutOfMemory('this command')}")
            sys.exit(1)


def _refuse_blank(arguments: Sequence[str]) -> None:
    """Raise BadInput for a blank argument, as an unset variable of a shell leaves. As a path it would be this folder."""
    for before, text in zip(["kgot-lab", *arguments], arguments, strict=False):
        flag, equals, value = text.partition("=") if text.startswith("--") else (before, "=", text)
        if equals and not value.strip():
            raise BadInput(f"the value after {flag} is blank: give one, or leave it out")


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like one Ctrl-C.

    A second signal ends the program at once. The exit code tells which signal it was, by the convention of
    shells.
    """
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends at once
        received.append(number)
        raise KeyboardInterrupt

    previous = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)):
            # nohup has a program ignore what a closed terminal sends
            if signal.getsignal(number) is signal.SIG_DFL:
                previous[number] = signal.signal(number, stop)
    try:
        yield
    except SystemExit as exit_error:
        if received and exit_error.code == terminal.INTERRUPTED:
            raise SystemExit(128 + received[0]) from None
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _redirect_if_closed(stream: TextIO | None) -> None:
    """Redirect a stream that accepts no more output to the null device.

    Otherwise Python would report the error again at exit.
    """
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, stream.fileno())
        os.close(null_device)


@app.callback(invoke_without_command=True)
def _print_version(version: bool = option("print the version and stop", "--version", default=False)) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
@options.with_options
def ask(
    *,
    question: list[str] = argument("what to answer; several are answered in turn, by a model loaded once"),
    sources: options.ToolOptions,
    models: options.ModelOptions,
    limits: options.LimitOptions,
    graph: options.StoreOptions,
    results: options.RunOptions,
    answer_format: str | None = option("default (a short paragraph) or gaia (the bare answer)", "--format"),
) -> None:
    """Answer a question with a graph grown from your documents, or with an existing graph."""
    from kgot_lab.cli.answering import Outputs, answer_question
    from kgot_lab.cli.configuration import read_configuration

    questions = [decode_argument(text, "the question") for text in question]
    # words without a space between them are those of one question, except in Chinese or Japanese
    if len(questions) > 1 and not re.search(r"[\s\u2e80-\uffff]", "".join(questions)):
        raise BadInput('a question goes between quotation marks: kgot-lab ask "Who founded it?"')
    flags = options.configuration_flags(sources, models, limits, graph, results)
    configuration = read_configuration(limits.config).with_flags({**flags, "format": answer_format})
    one_file = (results.trace, results.html, configuration.store.save, configuration.store.at)
    if len(questions) > 1 and any(one_file):
        raise BadInput("--trace, --html, --save-graph and --at are of one question: ask one after the other")
    outputs = Outputs(results.trace, results.recording, results.html, results.as_json)
    for text in questions:
        with question_memory(configuration, text) as memory:
            answer_question(text, configuration, sources.attach or [], outputs, memory)


@app.command()
def find(
    question: str = argument("what to look for"),
    documents: Path = options.REQUIRED_DOCUMENTS,
    k: int = option("how many passages", "-k", default=5, min=1),
) -> None:
    """Find the passages of your documents that best match a question, without a model."""
    typer.echo(terminal.find_passages(decode_argument(question, "the question"), documents, k))


@app.command()
def demo(
    trace: Path | None = options.TRACE_FILE,
    is_replay: bool = option("show the recorded run, without the model", "--replay", default=False),
) -> None:
    """Run the demo question on the bundled HotpotQA passages with a live local model.

    Without a model, a recorded run is replayed.
    """
    from kgot_lab.benchmark.questions.sets import demo_questions, hotpotqa
    from kgot_lab.cli.answering import Outputs, QuestionTask, run_task
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.loop.limits import LOCAL
    from kgot_lab.loop.replay.replay import Resources
    from kgot_lab.stores import InMemory

    if is_replay and trace is not None:
        raise BadInput("--replay asks nothing and writes no trace: leave out --replay or --trace")
    if is_replay:
        return _replay_demo()
    terminal.check_new_trace(path := trace or terminal.new_trace_path())
    try:
        llm = terminal.local_model()
    except (ModelMissing, NotInstalled) as error:
        terminal.say(f"no live model: {error}\nReplaying a recorded run of the same model instead.\n")
        return _replay_demo()
    question = demo_questions()[0]
    live = Resources(terminal.make_tools(hotpotqa().documents, []), llm)
    task = QuestionTask(question.text, live, LOCAL, {"documents": terminal.DEMO_DOCUMENTS})
    html = path.with_suffix(".html")
    going_on = ResumeCommand("resume", path, {"html": html})
    run_task(task, InMemory(), going_on, Outputs(path, html=html), Configuration())
    typer.echo(f"gold answer: {question.answer}\n\nYour own: kgot-lab ask QUESTION --documents DIR")


@app.command()
@options.with_options
def extract(
    *,
    documents: Path = options.DOCUMENTS_FIRST,
    models: options.PlannerOptions,
    preset: str | None = options.PRESET,
    settings: list[str] | None = options.SET_LIMIT,
    out: Path = option("the graph, as a snapshot file (JSON lines)", default=Path("graph.jsonl")),
    trace: Path | None = options.TRACE_FILE,
    recording: Path | None = option(
        "keep the model's replies in this file (default: beside --out); those it holds are not asked for"
    ),
    config: Path | None = options.CONFIG_FILE,
) -> None:
    """Grow a graph from all facts of your documents, without a question.

    The same command goes on after a stop: no recorded reply is asked for again.
    """
    from kgot_lab.cli.answering import EXTRACTION_FIELDS, extract_graph
    from kgot_lab.cli.configuration import parse_limits, read_configuration

    page = question_setup.restrict_configuration("extract", read_configuration(config), EXTRACTION_FIELDS)
    flags = {"preset": preset, "documents": documents, "limits": parse_limits(settings or [])}
    configuration = page.with_flags({**options.configuration_flags(models), **flags})
    given = {**vars(models), "preset": preset, "set": settings, "out": out, "config": config}
    extract_graph(documents, configuration, out, trace, recording, given)


@app.command()
@options.with_options
def resume(
    *,
    trace: Path = argument("the trace of a run that was stopped"),
    sources: options.SourceOptions,
    models: options.ResumedModelOptions,
    store: options.LocationOptions,
    results: options.ResultOptions,
) -> None:
    """Resume a stopped run without repeating recorded replies. Options that are not given are those of the
    run.

    An interrupted tool starts over, and so do the model calls inside it. What they cost before the stop
    counts.
    """
    from kgot_lab.cli.answering import Outputs, resume_run
    from kgot_lab.cli.configuration import traced_configuration

    flags = options.configuration_flags(sources, models, store, results)
    run, _ = terminal.load_question_run(trace)
    configuration = traced_configuration(run.about).with_flags(flags)
    outputs = Outputs(trace, results.recording, results.html, results.as_json)
    given = options.options_by_flag(sources, models, store, results)
    with question_memory(configuration, run.question) as memory:
        resume_run(trace, configuration, given, outputs, memory)


@app.command()
def show(
    trace: Path = argument("the trace of a run"),
    html: Path | None = options.HTML,
    costs: bool = option("show what each role cost", "--ledger", default=False),
) -> None:
    """Show a recorded run again: no model, no sandbox."""
    from kgot_lab.loop.state import ledger
    from kgot_lab.loop.trace import load_run

    terminal.require_distinct_paths(trace=trace, html=html)
    terminal.check_page_path(html)
    run = load_run(trace)
    for event in run.events:
        terminal.show_event(event)
    if costs:
        typer.echo(repr(ledger(run.events, run.run)))
    if run.unfinished:
        terminal.say(f"{run.unfinished} kgot-lab resume {trace} goes on with it")
    terminal.write_page(run.events, html)


@app.command()
def verify(trace: Path = argument("the trace of a run")) -> None:
    """Execute a recorded run again on its recorded replies and tool results, and report the first difference."""
    from kgot_lab.loop.replay.replay import verify as verify_run

    run, start = terminal.load_question_run(trace)
    with closing(terminal.open_replay_store(start)) as store:
        difference = verify_run(run.events, store)
    if difference is not None:
        raise LabError(str(difference))
    notes = " ".join(filter(None, (run.unfinished, run.unverifiable)))
    typer.echo(". ".join(filter(None, (f"{format_count(len(run.events), 'event')}, all identical", notes))))


app.add_typer(experts, name="experts")
app.add_typer(memories, name="memory")
app.add_typer(investments, name="invest")

app.command()(bench)
app.command("certify")(certify_run)
app.command("mcp")(serve_mcp)
app.command("serve")(serve_experts)
app.command("fork")(fork_run)
app.command("namespaces")(list_namespaces)
app.command("questions")(answer_questions)
app.command()(export)
app.command("pages")(write_pages)
app.command("marks")(show_marks)
app.command("slides")(make_slides)


@app.command()
def model() -> None:
    """Fetch the local model's file, once, and check it."""
    typer.echo(f"the model is at {terminal.ensure_model()}")


@app.command()
def doctor(
    file: Path | None = argument("a log, SQLite file, trace, recording, ledger or graph file", default=None),
    salvage: bool = option("keep the intact part of a damaged log or graph", "--salvage", default=False),
    backup: Path | None = option(
        "copy an intact SQLite file to this new file, while others may write", "--backup", default=None
    ),
) -> None:
    """Test each component and say how to get what is missing, or check whether a given file is intact."""
    if salvage and backup is not None:
        raise BadInput("a file is salvaged or backed up: give --salvage or --backup")
    if file is not None:
        return _examine_file(file, salvage=salvage, backup=backup)
    if salvage or backup is not None:
        raise BadInput("say which file to salvage or to back up, such as kgot-lab doctor --salvage FILE")
    from kgot_lab.diagnostics.components import check_components

    findings = []
    for finding in check_components():
        findings.append(finding)
        typer.echo(str(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise typer.Exit(1)


def _examine_file(file: Path, *, salvage: bool, backup: Path | None) -> None:
    from kgot_lab.diagnostics.file_check import back_up_file, check_file, salvage_file

    health = check_file(file) if backup is None else back_up_file(file, backup)
    if salvage and not health.whole:
        salvaged = salvage_file(file)
        typer.echo(printable_line(f"{salvaged.summary}; the damaged file is kept as {salvaged.damaged_copy}"))
        health = check_file(file)
    typer.echo(printable_line(str(health)))
    if not health.whole:
        raise typer.Exit(1)


def _replay_demo() -> None:
    from kgot_lab.io.files import bundled_path
    from kgot_lab.loop.trace import load_run

    path = bundled_path("traces/hotpotqa_demo.jsonl")
    run = load_run(path)
    terminal.say(f"recorded {run.created} from {run.about.get('model', 'the local model')}\n")
    for event in run.events:
        terminal.show_event(event)
    terminal.show_answer(run.events, path)
    try:
        terminal.write_page(run.events, terminal.RUNS / "demo.html")
    except BadInput as error:  # this page was not requested
        terminal.say(f"note: {error}")
