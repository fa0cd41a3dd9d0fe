"""The command line: ask, demo, extract, resume, show, verify, bench, model, doctor."""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from kgot_lab import __version__
from kgot_lab.cli import terminal
from kgot_lab.cli.bench import bench
from kgot_lab.cli.going_on import GoOn, finish, interruptible
from kgot_lab.cli.questions import answer_questions
from kgot_lab.cli.sharing import export, pages
from kgot_lab.errors import BadInput, LabError, ModelMissing, NotInstalled

if TYPE_CHECKING:
    from kgot_lab.loop.again.replay import Resources
    from kgot_lab.loop.limits import Limits
    from kgot_lab.stores.protocol import Store

HELP = "Grow a knowledge graph from documents to answer a question, and watch it grow."
MODELS = "local, openai:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, openrouter:MODEL, http://host/v1#MODEL, or recorded:FILE"

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)
Model = Annotated[str, typer.Option("--model", help=MODELS)]
Execution = Annotated[str | None, typer.Option("--execution-model", help="another model, to choose tools and write arithmetic")]
_Preset = Annotated[str, typer.Option("--preset", help="limits: local (for small models), reference (the published defaults), or auto")]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="where the run is written, event by event (default: runs/TIME.jsonl)")]
Documents = Annotated[Path | None, typer.Option("--documents", help="a folder with text, Markdown, HTML, PDF or Word files")]
Attach = Annotated[list[Path] | None, typer.Option("--attach", help="a file that belongs to the question; repeat for more")]
Html = Annotated[Path | None, typer.Option("--html", help="write the run as one HTML page")]
AsJson = Annotated[bool, typer.Option("--json", help="print the result as one JSON object; progress goes to standard error")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", help="stop before this command makes more calls of a model")]
MaxSeconds = Annotated[float | None, typer.Option("--max-seconds", help="stop before a model would have worked longer for this command")]
MaxDollars = Annotated[float | None, typer.Option("--max-dollars", help="stop before this command costs more")]
_TAPE = "keep the model's replies in this file; those it holds are not asked for"
Tape = Annotated[Path | None, typer.Option("--tape", help=_TAPE)]
_STORES = "in_memory (Python), cypher_embedded, sparql_embedded, cypher_server, sparql_server, or fused (three languages at once)"
StoreKind = Annotated[str | None, typer.Option("--store", help=f"where the graph grows: {_STORES}")]
AT = "where the store is: a server's URL (Neo4j's password is taken from KGOT_NEO4J_PASSWORD), or a file to keep the graph in"
At = Annotated[str | None, typer.Option("--at", help=AT)]
_ONE_MODEL = "a tape holds the replies of one model: leave out --tape or --execution-model; the trace keeps those of both"
Unsafe = Annotated[bool, typer.Option("--unsafe", help="run the model's statements without a sandbox, with all your rights")]


def main() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 1, an interruption 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a letter that a terminal does not have must not end a run
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: terminal.say(f"note: {message}")  # without the line of code it comes from
        try:
            app()
        except LabError as error:
            terminal.say(f"error: {error}")
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(terminal.INTERRUPTED)
        except OSError as error:
            if not _lost(sys.stdout):
                raise
            terminal.say(f"error: the output could not be written: {error.strerror or error}")
            sys.exit(1)


def _lost(stream: TextIO | None) -> bool:
    """Whether a stream takes nothing more; if so it leads nowhere from now on, or Python would complain again at its end."""
    if stream is None:
        return False
    try:
        stream.write("\n")
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        return True
    return False


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="print the version and stop")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="what to answer")],
    documents: Documents = None,
    model: Model = "local",
    execution: Execution = None,
    preset: _Preset = "auto",
    answer_format: Annotated[str | None, typer.Option("--format", help="default (a short paragraph) or gaia (the bare answer)")] = None,
    attach: Attach = None,
    trace: TraceFile = None,
    tape: Tape = None,
    html: Html = None,
    as_json: AsJson = False,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    max_dollars: MaxDollars = None,
    store: StoreKind = None,
    at: At = None,
    unsafe: Unsafe = False,
) -> None:
    """Answer a question with a graph grown from your documents."""
    from kgot_lab.loop.again.replay import Resources
    from kgot_lab.stores import empty_store

    if not question.strip():
        raise BadInput("the question is empty; ask something")
    if documents is None and not attach:
        raise BadInput("there is nothing to take facts from: name a folder with --documents DIR or a file with --attach FILE")
    if tape is not None and execution:
        raise BadInput(_ONE_MODEL)
    budget = terminal.budget_of(max_calls, max_seconds, max_dollars)
    limits = terminal.chosen_limits(preset, model, answer_format)
    path = trace or terminal.new_trace()
    terminal.check_apart(trace=path, html=html, tape=tape, at=at, attach=attach, model=model, execution_model=execution)
    terminal.check_page(html, documents)
    passages = terminal.read_folder(documents) if documents is not None else []
    tools = terminal.tools_with_notes(passages, attach or [])
    planning = terminal.connect_model(model, budget, tape)
    live = Resources(tools, planning, terminal.connect_model(execution, budget) if execution else None)
    options = {
        "documents": documents, "attach": attach, "execution_model": execution, "html": html, "json": as_json, "unsafe": unsafe,
        "model": model if model != "local" else None, "store": store, "at": at,
        "tape": tape, "max_calls": max_calls, "max_seconds": max_seconds, "max_dollars": max_dollars,
    }  # fmt: skip
    again = GoOn("resume", path, options)
    opened = empty_store(store or "in_memory", at, unsafe=unsafe)
    _answer(question, live, limits, path, again, attach=attach, html=html, as_json=as_json, store=opened)


@app.command()
def demo(
    more: Annotated[int, typer.Option("--more", help="how many further questions to ask (up to 2)", min=0, max=2)] = 0,
    replayed: Annotated[bool, typer.Option("--replay", help="show the recorded run, without the model")] = False,
) -> None:
    """Answer a question over the bundled HotpotQA passages with a live local model; without one, replay a recorded run."""
    from kgot_lab.experiments.questions.hotpotqa import demo_questions, hotpotqa
    from kgot_lab.loop.again.replay import Resources
    from kgot_lab.loop.limits import LOCAL

    if replayed and more:
        raise BadInput("--replay shows the one run that is recorded, and --more asks a live model: leave out one of them")
    if not replayed:
        try:
            llm = terminal.local_model()
        except (ModelMissing, NotInstalled) as error:
            terminal.say(f"no live model: {error}\nReplaying a recorded run of the same model instead.\n")
            replayed = True
    if replayed:
        if more:
            terminal.say("note: there is one recorded run, so --more asks for nothing here")
        _replay_demo()
        return
    live = Resources(terminal.tools_with_notes(hotpotqa().documents, []), llm)
    for question in demo_questions()[: 1 + more]:
        path = terminal.new_trace()
        html = path.with_suffix(".html")
        _answer(question.text, live, LOCAL, path, GoOn("resume", path, {"html": html}), html=html, bundled=True)
        typer.echo(f"gold answer: {question.answer}\n")
    if not more:
        typer.echo("Two more: kgot-lab demo --more 2. Your own: kgot-lab ask QUESTION --documents DIR")


@app.command()
def extract(
    documents: Annotated[Path, typer.Argument(help="a folder with text, Markdown, HTML, PDF or Word files")],
    model: Model = "local",
    preset: _Preset = "auto",
    out: Annotated[Path, typer.Option("--out", help="the graph, as a snapshot file (JSON lines)")] = Path("graph.jsonl"),
    trace: TraceFile = None,
    go_on: Annotated[bool, typer.Option("--resume", help="go on with the extraction in the trace file")] = False,
) -> None:
    """Grow a graph from all facts of your documents, without a question."""
    from kgot_lab.graph.snapshots import read_snapshot, write_snapshot
    from kgot_lab.loop.again.replay import started
    from kgot_lab.loop.events import Asked
    from kgot_lab.loop.extract import extract as extracting
    from kgot_lab.loop.trace import append, load_run, record
    from kgot_lab.stores import InMemory

    if go_on and trace is None:
        raise BadInput("--resume needs the trace file of the extraction that was stopped: --trace FILE")
    path = trace or terminal.new_trace()
    terminal.check_apart(trace=path, out=out, model=model)
    if out.exists() and not go_on:
        raise BadInput(f"{out} exists already: name another file with --out FILE")
    if out.exists():
        read_snapshot(out)  # what is no graph is not written over
    terminal.check_writable(out)
    limits = terminal.chosen_limits(preset, model)
    done = load_run(path).events if go_on else ()
    if done and started(done).question:
        raise BadInput(f"{path} is the run of a question, not an extraction: kgot-lab resume {path} goes on with it")
    passages = terminal.read_folder(documents)
    given = {"model": model if model != "local" else None, "preset": preset if preset != "auto" else None, "out": out, "trace": path}
    with InMemory() as store:
        events = extracting(passages, terminal.connect_model(model, trace=path if go_on else None), store, limits, done=done)
        begun = time.perf_counter()
        kept = append(events, path) if go_on else record(events, path)
        asked = sum(isinstance(event, Asked) for event in done)
        for event in interruptible(kept, path, GoOn("extract", documents, {"resume": True, **given}), asked=asked):
            terminal.show_event(event, begun)
        write_snapshot(store.graph(), out, variant="networkx")
        terminal.say(f"{store.graph()} written to {out}; the run is in {path}")


@app.command()
def resume(
    trace: Annotated[Path, typer.Argument(help="the trace of a run that was stopped")],
    documents: Documents = None,
    model: Annotated[str | None, typer.Option("--model", help=f"by default the model of the run; {MODELS}")] = None,
    execution: Execution = None,
    attach: Attach = None,
    tape: Tape = None,
    html: Html = None,
    as_json: AsJson = False,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    max_dollars: MaxDollars = None,
    store: StoreKind = None,
    at: At = None,
    unsafe: Unsafe = False,
) -> None:
    """Go on with a run where it was stopped: nothing that was answered is asked again."""
    from kgot_lab.loop.again.replay import Resources
    from kgot_lab.loop.again.replay import resume as resuming
    from kgot_lab.loop.events import Asked
    from kgot_lab.loop.trace import graph_after
    from kgot_lab.stores import empty_store

    run, begun = terminal.run_of(trace)
    budget = terminal.budget_of(max_calls, max_seconds, max_dollars)
    terminal.check_apart(trace=trace, html=html, tape=tape, at=at, attach=attach, model=model, execution_model=execution)
    terminal.check_page(html, documents)
    used = {
        "model": model, "execution_model": execution, "tape": tape, "store": store, "at": at,
        "max_calls": max_calls, "max_seconds": max_seconds, "max_dollars": max_dollars,
    }  # fmt: skip
    if run.finished:
        idle = " and ".join(f"--{option.replace('_', '-')}" for option, given in used.items() if given is not None)
        terminal.say(f"this run has its answer; nothing is left to do{idle and f', and {idle} not used'}")
        terminal.show_end(run.events, trace, as_json=as_json)
        terminal.write_page(run.events, html)
        return
    tools = terminal.tools_with_notes(terminal.documents_of(run, documents), attach or [])
    if missing := set(begun.tools) - {tool.name for tool in tools}:
        files = f" and its files ({', '.join(begun.attachments)}) with --attach FILE" if begun.attachments else ""
        raise BadInput(f"the run used {', '.join(sorted(missing))}: name its documents again with --documents DIR{files}")
    other = execution or (begun.execution if begun.execution != begun.planning else None)
    if tape is not None and other:
        raise BadInput(_ONE_MODEL)
    connect = terminal.connect_model if model else terminal.connect_again
    planning = connect(model or begun.planning, budget, tape, trace=trace)
    connect = terminal.connect_model if execution else terminal.connect_again
    live = Resources(tools, planning, connect(other, budget, trace=trace) if other else None)
    again = GoOn("resume", trace, {"documents": documents, "attach": attach, "html": html, "json": as_json, "unsafe": unsafe, **used})
    grown, asked = graph_after(run.events), sum(isinstance(event, Asked) for event in run.events)
    with closing(empty_store(store, at, unsafe=unsafe, holding=grown) if store else terminal.store_of(begun, unsafe)) as opened:
        finish(resuming(trace, opened, live), trace, again, asked=asked, html=html, as_json=as_json)


@app.command()
def show(
    trace: Annotated[Path, typer.Argument(help="a run on file")],
    html: Html = None,
    costs: Annotated[bool, typer.Option("--ledger", help="show what each role cost")] = False,
) -> None:
    """Show a recorded run again: no model, no sandbox."""
    from kgot_lab.loop.ledger import ledger
    from kgot_lab.loop.trace import load_run

    terminal.check_apart(trace=trace, html=html)
    terminal.check_page(html)
    run = load_run(trace)
    for event in run.events:
        terminal.show_event(event)
    if costs:
        typer.echo(repr(ledger(run.events, run.run)))
    terminal.write_page(run.events, html)


@app.command()
def verify(trace: Annotated[Path, typer.Argument(help="a run on file")]) -> None:
    """Execute a recorded run again on its recorded replies and tool results, and name the first difference."""
    from kgot_lab.loop.again.replay import verify as verifying

    run, begun = terminal.run_of(trace)
    with closing(terminal.store_of(begun)) as store:
        difference = verifying(run.events, store)
    if difference is not None:
        raise LabError(str(difference))
    typer.echo(f"{len(run.events)} events, every one the same")


app.command()(bench)
app.command("questions")(answer_questions)
app.command()(export)
app.command()(pages)


@app.command()
def model() -> None:
    """Fetch the local model's file, once, and check it."""
    typer.echo(f"the model is at {terminal.fetched_model()}")


@app.command()
def doctor() -> None:
    """Try each piece for real, and say how to get what is missing."""
    from kgot_lab.examine.pieces import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        typer.echo(str(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise typer.Exit(1)


def _answer(
    question: str,
    live: Resources,
    limits: Limits,
    path: Path,
    again: GoOn,
    *,
    attach: list[Path] | None = None,
    html: Path | None = None,
    as_json: bool = False,
    store: Store | None = None,
    bundled: bool = False,
) -> None:
    """Walk the loop, on file and on screen."""
    from kgot_lab.loop.forecast import forecast
    from kgot_lab.loop.trace import made_by, record
    from kgot_lab.loop.walk import think
    from kgot_lab.stores import InMemory

    assert live.planning is not None
    if live.planning.name.startswith("local"):
        terminal.say(f"estimate, for 2 turns: {forecast(limits, steps=2)}")
    with closing(store or InMemory()) as opened:
        names = [file.name for file in attach or []]
        events = think(question, live.planning, opened, live.tools, limits, execution=live.execution, attachments=names)
        about = {**made_by(live.planning), **({"documents": terminal.DEMO} if bundled else {})}
        kept = record(events, path, about=about)
        finish(kept, path, again, html=html, as_json=as_json)


def _replay_demo() -> None:
    from kgot_lab.bundled import bundled
    from kgot_lab.loop.trace import load_run

    path = bundled("traces/hotpotqa_demo.jsonl")
    run = load_run(path)
    terminal.say(f"recorded {run.created} from {run.about.get('model', 'the local model')}\n")
    for event in run.events:
        terminal.show_event(event)
    terminal.show_end(run.events, path)
    try:
        terminal.write_page(run.events, terminal.RUNS / "demo.html")
    except BadInput as error:  # nobody asked for this page
        terminal.say(f"note: {error}")
