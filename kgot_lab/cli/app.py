"""The command line: ask, demo, extract, resume, show, verify, bench, model, doctor."""

from __future__ import annotations

import io
import os
import sys
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import Annotated, TextIO

import typer

from kgot_lab import __version__
from kgot_lab.cli import asking, terminal
from kgot_lab.cli.answering import Outputs, QuestionTask, answer_question, go_on, walked
from kgot_lab.cli.bench import bench
from kgot_lab.cli.forking import fork_run
from kgot_lab.cli.going_on import GoOn, interruptible
from kgot_lab.cli.questions import answer_questions
from kgot_lab.cli.sharing import export, list_namespaces, pages
from kgot_lab.errors import BadInput, LabError, ModelMissing, NotInstalled
from kgot_lab.llm.env_file import load_env
from kgot_lab.text.harmless import harmless

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
Namespace = Annotated[str | None, typer.Option("--namespace", help="which graph of a server; by default a new one")]
ModelsFile = Annotated[Path | None, typer.Option("--models", help="a YAML file of models, to be named by --model")]
Web = Annotated[bool, typer.Option("--web", help="tools may ask the web")]
MirrorFolder = Annotated[Path | None, typer.Option("--mirror", help="a folder of pages that stands in for the web")]
_GRAPH = "a graph to begin with: a snapshot, GraphML, Turtle, a trace, a store's file, or the address of a server with --namespace"
_PRESETS = "limits: local (for small models), reference (the published defaults), or auto"
Unsafe = Annotated[bool, typer.Option("--unsafe", help="run the model's statements without a sandbox, with all your rights")]


def main() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 1, an interruption 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a letter that a terminal does not have must not end a run
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: terminal.say(f"note: {message}")  # without the line of code it comes from
        try:
            load_env()
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
    model: Annotated[str | None, typer.Option("--model", help=f"by default local; {MODELS}")] = None,
    execution: Execution = None,
    models: ModelsFile = None,
    preset: Annotated[str | None, typer.Option("--preset", help=_PRESETS)] = None,
    answer_format: Annotated[str | None, typer.Option("--format", help="default (a short paragraph) or gaia (the bare answer)")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="INSERT turns at most")] = None,
    votes: Annotated[int | None, typer.Option("--votes", help="ballots a turn")] = None,
    repairs: Annotated[int | None, typer.Option("--repairs", help="mended versions of one failing statement")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="of everything but ballots")] = None,
    vote_temperature: Annotated[float | None, typer.Option("--vote-temperature", help="of ballots and samples")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="another limit: NAME=VALUE, as in reply_tokens.vote=500")] = None,
    attach: Attach = None,
    tools: Annotated[list[str] | None, typer.Option("--tool", help="a tool by name; repeat for more; all for all that work here")] = None,
    web: Web = False,
    mirror: MirrorFolder = None,
    vision: Annotated[str | None, typer.Option("--vision-model", help="a model that answers questions about images")] = None,
    graph: Annotated[str | None, typer.Option("--graph", help=_GRAPH)] = None,
    save_graph: Annotated[Path | None, typer.Option("--save-graph", help="a file for the graph as it is in the end")] = None,
    snapshots: Annotated[Path | None, typer.Option("--snapshots", help="a folder for the graph after every write")] = None,
    trace: TraceFile = None,
    tape: Tape = None,
    html: Html = None,
    as_json: AsJson = False,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    max_dollars: MaxDollars = None,
    store: StoreKind = None,
    at: At = None,
    namespace: Namespace = None,
    keep: Annotated[bool, typer.Option("--keep", help="begin with the graph that is in the store, and add to it")] = False,
    wipe: Annotated[bool, typer.Option("--wipe", help="empty the store, or its namespace, first")] = False,
    unsafe: Unsafe = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="a page of YAML with any of these; what is given here overrides it")
    ] = None,
) -> None:
    """Answer a question with a graph grown from your documents, or with one that is there."""
    from kgot_lab.cli.configuration import limits_given, read_configuration

    if not question.strip():
        raise BadInput("the question is empty; ask something")
    single = {"steps": steps, "votes": votes, "repairs": repairs, "temperature": temperature, "vote_temperature": vote_temperature}
    terminal.budget_of(max_calls, max_seconds, max_dollars)
    configuration = read_configuration(config).with_flags({
        "documents": _text(documents), "model": model, "execution_model": execution, "models": _text(models), "preset": preset,
        "format": answer_format, "limits": limits_given(settings or [], single), "snapshots": _text(snapshots),
        "tools.names": _named(tools), "tools.web": web, "tools.mirror": _text(mirror), "tools.vision_model": vision,
        "store.kind": store, "store.at": at, "store.namespace": namespace, "store.keep": keep, "store.wipe": wipe, "store.unsafe": unsafe,
        "store.graph": graph, "store.save": _text(save_graph),
        "budget.calls": max_calls, "budget.seconds": max_seconds, "budget.dollars": max_dollars,
    })  # fmt: skip
    answer_question(question, configuration, attach or [], Outputs(trace, tape, html, as_json))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _named(tools: list[str] | None) -> object:
    return "all" if tools == ["all"] else tuple(tools) if tools else None


@app.command()
def demo(
    more: Annotated[int, typer.Option("--more", help="how many further questions to ask (up to 2)", min=0, max=2)] = 0,
    replayed: Annotated[bool, typer.Option("--replay", help="show the recorded run, without the model")] = False,
) -> None:
    """Answer a question over the bundled HotpotQA passages with a live local model; without one, replay a recorded run."""
    from kgot_lab.experiments.questions.hotpotqa import demo_questions, hotpotqa
    from kgot_lab.loop.again.replay import Resources
    from kgot_lab.loop.limits import LOCAL
    from kgot_lab.stores import InMemory

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
        again = GoOn("resume", path, {"html": html})
        walked(QuestionTask(question.text, live, LOCAL, {"documents": terminal.DEMO}), InMemory(), again, Outputs(path, html=html))
        typer.echo(f"gold answer: {question.answer}\n")
    if not more:
        typer.echo("Two more: kgot-lab demo --more 2. Your own: kgot-lab ask QUESTION --documents DIR")


@app.command()
def extract(
    documents: Annotated[Path, typer.Argument(help="a folder with text, Markdown, HTML, PDF or Word files")],
    model: Model = "local",
    models: ModelsFile = None,
    preset: _Preset = "auto",
    out: Annotated[Path, typer.Option("--out", help="the graph, as a snapshot file (JSON lines)")] = Path("graph.jsonl"),
    trace: TraceFile = None,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    max_dollars: MaxDollars = None,
    go_on: Annotated[bool, typer.Option("--resume", help="go on with the extraction in the trace file")] = False,
) -> None:
    """Grow a graph from all facts of your documents, without a question."""
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.graph.snapshots import read_snapshot, write_snapshot
    from kgot_lab.loop.again.replay import started
    from kgot_lab.loop.events import Asked
    from kgot_lab.loop.extract import extract as extracting
    from kgot_lab.loop.forecast import forecast_of_texts
    from kgot_lab.loop.trace import append, load_run, record
    from kgot_lab.stores import InMemory

    if go_on and trace is None:
        raise BadInput("--resume needs the trace file of the extraction that was stopped: --trace FILE")
    budget = {"budget.calls": max_calls, "budget.seconds": max_seconds, "budget.dollars": max_dollars}
    configuration = Configuration().with_flags({"model": model, "models": _text(models), "preset": preset, **budget})
    path = trace or terminal.new_trace()
    terminal.check_apart(trace=path, out=out, model=model)
    if out.exists() and not go_on:
        raise BadInput(f"{out} exists already: name another file with --out FILE")
    if out.exists():
        read_snapshot(out)  # what is no graph is not written over
    terminal.check_writable(out)
    terminal.check_new(None if go_on else path)
    limits = configuration.limits_for(terminal.own_name(model, configuration.models))
    done = load_run(path).events if go_on else ()
    if done and started(done).question:
        raise BadInput(f"{path} is the run of a question, not an extraction: kgot-lab resume {path} goes on with it")
    passages = terminal.read_folder(documents)
    given = {
        "model": model if model != "local" else None, "models": models, "preset": preset if preset != "auto" else None, "out": out,
        "trace": path, "max_calls": max_calls, "max_seconds": max_seconds, "max_dollars": max_dollars,
    }  # fmt: skip
    spending = asking.spending_of(configuration)
    llm = terminal.connect_model(model, spending, trace=path if go_on else None, models=configuration.models)
    terminal.say(f"estimate, for all documents: {forecast_of_texts(limits, [each.text for each in passages], rate=asking.rate_of(llm))}")
    with InMemory() as store:
        events = extracting(passages, llm, store, limits, done=done)
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
    models: ModelsFile = None,
    attach: Attach = None,
    web: Web = False,
    mirror: MirrorFolder = None,
    tape: Tape = None,
    html: Html = None,
    as_json: AsJson = False,
    max_calls: MaxCalls = None,
    max_seconds: MaxSeconds = None,
    max_dollars: MaxDollars = None,
    store: StoreKind = None,
    at: At = None,
    namespace: Namespace = None,
    unsafe: Unsafe = False,
) -> None:
    """Go on with a run where it was stopped: nothing that was answered is asked again. What is not given is as the run began."""
    from kgot_lab.cli.configuration import configuration_of

    terminal.budget_of(max_calls, max_seconds, max_dollars)
    run, _ = terminal.run_of(trace)
    configuration = configuration_of(run.about).with_flags({
        "documents": _text(documents), "models": _text(models), "tools.web": web, "tools.mirror": _text(mirror),
        "store.kind": store, "store.at": at, "store.namespace": namespace, "store.unsafe": unsafe,
        "budget.calls": max_calls, "budget.seconds": max_seconds, "budget.dollars": max_dollars,
    })  # fmt: skip
    go_on(trace, configuration, attach or [], Outputs(trace, tape, html, as_json), model=model, execution=execution)


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
    if not run.finished and run.question:
        terminal.say(f"this run was stopped before its answer: kgot-lab resume {trace} goes on with it")
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
    typer.echo(f"{len(run.events)} events, every one the same" + ("" if run.finished else "; the run was stopped before its answer"))


app.command()(bench)
app.command("fork")(fork_run)
app.command("namespaces")(list_namespaces)
app.command("questions")(answer_questions)
app.command()(export)
app.command()(pages)


@app.command()
def model() -> None:
    """Fetch the local model's file, once, and check it."""
    typer.echo(f"the model is at {terminal.fetched_model()}")


@app.command()
def doctor(
    file: Annotated[Path | None, typer.Argument(help="a log, SQLite graph, trace, tape, ledger, graph file or cache of vectors")] = None,
    salvage: Annotated[bool, typer.Option("--salvage", help="keep what is whole of a damaged log or SQLite graph")] = False,
) -> None:
    """Try each piece for real, and say how to get what is missing; or, given a file of ours, say whether it is whole."""
    if file is not None:
        return _examine_file(file, salvage=salvage)
    if salvage:
        raise BadInput("say which file to salvage: kgot-lab doctor --salvage FILE")
    from kgot_lab.examine.pieces import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        typer.echo(str(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise typer.Exit(1)


def _examine_file(file: Path, *, salvage: bool) -> None:
    from kgot_lab.examine.own_files import examine_file, salvage_file

    health = examine_file(file)
    if salvage and not health.whole:
        typer.echo(f"the damaged file is kept as {salvage_file(file)}")
        health = examine_file(file)
    typer.echo(harmless(str(health)))
    if not health.whole:
        raise typer.Exit(1)


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
