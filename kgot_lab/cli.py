"""The command line: ask, demo, extract, resume, show, verify, model, doctor."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from kgot_lab import __version__
from kgot_lab.errors import BadInput, LabError, ModelMissing, NotInstalled, OverBudget

if TYPE_CHECKING:
    from kgot_lab.loop.events import Event
    from kgot_lab.loop.limits import Limits
    from kgot_lab.tools.tool import Tool
    from kgot_lab.types import LLM, Document

HELP = "Grow a knowledge graph from documents to answer a question, and watch it grow."
MODELS = "local, openai:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, openrouter:MODEL, or http://host/v1#MODEL"
RUNS = Path("runs")

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=HELP)
Model = Annotated[str, typer.Option("--model", help=MODELS)]
Preset = Annotated[str, typer.Option("--preset", help="limits: local (for small models), reference (the published defaults), or auto")]
TraceFile = Annotated[Path | None, typer.Option("--trace", help="where the run is written, event by event (default: runs/TIME.jsonl)")]
Documents = Annotated[Path | None, typer.Option("--documents", help="a folder with text, Markdown, HTML, PDF or Word files")]


def main() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 1, an interruption 130."""
    try:
        app()
    except LabError as error:
        _say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


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
    execution: Annotated[str | None, typer.Option("--execution-model", help="another model, to choose tools and write arithmetic")] = None,
    preset: Preset = "auto",
    answer_format: Annotated[str | None, typer.Option("--format", help="default (a short paragraph) or gaia (the bare answer)")] = None,
    attach: Annotated[list[Path] | None, typer.Option("--attach", help="a file that belongs to the question; repeat for more")] = None,
    trace: TraceFile = None,
    html: Annotated[Path | None, typer.Option("--html", help="write the run as one HTML page")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON; progress goes to standard error")] = False,
    max_calls: Annotated[int | None, typer.Option(help="stop before more model calls than this")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="stop before the model would have worked longer than this")] = None,
    max_dollars: Annotated[float | None, typer.Option(help="stop before more than this is spent")] = None,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="run the model's statements without a sandbox, with all your rights")] = False,
) -> None:
    """Answer a question with a graph grown from your documents."""
    from kgot_lab.llm.budget import Budget
    from kgot_lab.loop.replay import Live

    if not question.strip():
        raise BadInput("the question is empty; ask something")
    if documents is None and not attach:
        raise BadInput("there is nothing to take facts from: name a folder with --documents DIR or a file with --attach FILE")
    limits = _limits(preset, model, answer_format)
    attached = [_existing(path) for path in attach or []]
    passages = _read(documents) if documents is not None else []
    budget = Budget(calls=max_calls, seconds=max_seconds, dollars=max_dollars)
    planning = _connect(model, budget)
    live = Live(_tools(passages, planning, attached), planning, _connect(execution, budget) if execution else None)
    _answer(question, live, limits, trace or _new_trace(), attachments=attached, html=html, as_json=as_json, unsafe=unsafe)


@app.command()
def demo(
    more: Annotated[int, typer.Option("--more", help="how many further questions to ask (up to 2)", min=0, max=2)] = 0,
    replayed: Annotated[bool, typer.Option("--replay", help="show the recorded run, without the model")] = False,
) -> None:
    """Answer a question over the bundled HotpotQA passages with a live local model; without one, replay a recorded run."""
    from kgot_lab.evaluation.datasets import hotpotqa, split
    from kgot_lab.loop.limits import LOCAL
    from kgot_lab.loop.replay import Live
    from kgot_lab.tools.search import search

    if not replayed:
        try:
            llm = _local_model()
        except (ModelMissing, NotInstalled) as error:
            _say(f"no live model: {error}\nReplaying a recorded run of the same model instead.\n")
            replayed = True
    if replayed:
        _replay_demo()
        return
    data = hotpotqa()
    by_id = {question.id: question for question in data.questions}
    tool = search(data.documents, k=8)
    for id in _demo_questions(split()["develop"])[: 1 + more]:
        question = by_id[id]
        path = _new_trace()
        _answer(question.text, Live([tool], llm), LOCAL, path, html=path.with_suffix(".html"), documents=data.documents)
        typer.echo(f"gold answer: {question.answer}\n")
    if not more:
        typer.echo("Two more: kgot-lab demo --more 2. Your own: kgot-lab ask QUESTION --documents DIR")


@app.command()
def extract(
    documents: Annotated[Path, typer.Argument(help="a folder with text, Markdown, HTML, PDF or Word files")],
    model: Model = "local",
    preset: Preset = "auto",
    out: Annotated[Path, typer.Option("--out", help="the graph, as a snapshot file (JSON lines)")] = Path("graph.jsonl"),
    trace: TraceFile = None,
    go_on: Annotated[bool, typer.Option("--resume", help="go on with the extraction in the trace file")] = False,
) -> None:
    """Grow a graph from all facts of your documents, without a question."""
    from kgot_lab.loop.extract import extract as extracting
    from kgot_lab.loop.trace import append, load, record
    from kgot_lab.snapshots import write_snapshot
    from kgot_lab.stores import InMemory

    passages = _read(documents)
    if go_on and trace is None:
        raise BadInput("--resume needs the trace file of the extraction that was stopped: --trace FILE")
    path = trace or _new_trace()
    done = load(path).events if go_on else ()
    with InMemory() as store:
        events = extracting(passages, _connect(model), store, _limits(preset, model), done=done)
        begun = time.perf_counter()
        kept = append(events, path) if go_on else record(events, path)
        for event in _interruptible(kept, path, f"kgot-lab extract {documents} --resume --trace {path}"):
            _show(event, begun)
        write_snapshot(store.graph(), out, variant="networkx")
        _say(f"{store.graph()!r} written to {out}; the run is in {path}")


@app.command()
def resume(
    trace: Annotated[Path, typer.Argument(help="the trace of a run that was stopped")],
    documents: Documents = None,
    model: Annotated[str | None, typer.Option("--model", help="by default the model of the run")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="write the run as one HTML page")] = None,
) -> None:
    """Go on with a run where it was stopped: nothing that was answered is asked again."""
    from kgot_lab.loop.replay import Live, started
    from kgot_lab.loop.replay import resume as resuming
    from kgot_lab.loop.trace import load
    from kgot_lab.stores import InMemory

    begun = started(load(trace).events)
    planning = _connect(model or begun.planning)
    execution = planning if begun.execution == begun.planning else _connect(begun.execution)
    tools = _tools(_read(documents) if documents else [], planning, [Path(path) for path in begun.attachments])
    missing = sorted(set(begun.tools) - {tool.name for tool in tools})
    if missing:
        raise BadInput(f"the run used {', '.join(missing)}: name its documents again with --documents DIR")
    with InMemory() as store:
        _finish(resuming(trace, store, Live(tools, planning, execution)), trace, f"kgot-lab resume {trace}", html)


@app.command()
def show(
    trace: Annotated[Path, typer.Argument(help="a run on file")],
    html: Annotated[Path | None, typer.Option("--html", help="write the run as one HTML page")] = None,
    costs: Annotated[bool, typer.Option("--ledger", help="show what each role cost")] = False,
) -> None:
    """Show a recorded run again: no model, no sandbox."""
    from kgot_lab.loop.ledger import ledger
    from kgot_lab.loop.trace import load

    run = load(trace)
    for event in run.events:
        _show(event)
    if costs:
        typer.echo(repr(ledger(run.events, run.run)))
    _page(run.events, html)


@app.command()
def verify(trace: Annotated[Path, typer.Argument(help="a run on file")]) -> None:
    """Execute a recorded run again on its recorded replies and tool results, and name the first difference."""
    from kgot_lab.loop.replay import verify as verifying
    from kgot_lab.loop.trace import load
    from kgot_lab.stores import InMemory

    run = load(trace)
    with InMemory() as store:
        difference = verifying(run.events, store)
    if difference is not None:
        raise LabError(str(difference))
    typer.echo(f"{len(run.events)} events, every one the same")


@app.command()
def model() -> None:
    """Fetch the local model's file, once, and check it."""
    _say(f"the model is at {_fetched()}")


@app.command()
def doctor() -> None:
    """Try each piece for real, and say how to get what is missing."""
    from kgot_lab.doctor import examine

    findings = []
    for finding in examine():
        findings.append(finding)
        typer.echo(str(finding))
    if any(finding.needed and not finding.works for finding in findings):
        raise typer.Exit(1)


# --- what the commands share ----------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _limits(preset: str, model: str, answer_format: str | None = None) -> Limits:
    from kgot_lab.loop.limits import preset as named

    limits = named(("local" if model.split(":")[0] in {"local", "ollama"} else "reference") if preset == "auto" else preset)
    if answer_format not in {None, "default", "gaia"}:
        raise BadInput(f"--format is default or gaia, not {answer_format!r}")
    return limits.but(answer_format=answer_format) if answer_format and answer_format != limits.answer_format else limits


def _connect(spec: str, budget: object = None) -> LLM:
    from kgot_lab.llm import connect
    from kgot_lab.llm.budget import Budget, Budgeted

    if spec.split(":")[0] == "local" and ":" not in spec:
        _fetched()
    llm = connect("local" if spec.startswith("local:") and not Path(spec.partition(":")[2]).exists() else spec)
    return Budgeted(llm, budget) if isinstance(budget, Budget) and budget != Budget() else llm


def _local_model() -> LLM:
    from kgot_lab.llm import connect

    _fetched()
    return connect("local")


def _fetched() -> Path:
    """The local model's file, fetched with a progress bar when it is not there."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from kgot_lab.llm.fetch import fetch_model
    from kgot_lab.llm.model_file import find_model

    try:
        return find_model()
    except ModelMissing:
        _say("Fetching the local model, 1.1 GB, once (Ctrl-C stops; the next time it goes on from there).")
    from rich.console import Console

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("model", total=None)
        return fetch_model(say=lambda there, total: progress.update(task, completed=there, total=total))


def _read(folder: Path) -> list[Document]:
    from kgot_lab.retrieval.documents import read_documents

    library = read_documents(folder)
    for remark in (*library.skipped, *library.doubtful):
        _say(f"note: {remark.path}: {remark.reason}")
    return list(library.documents)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise BadInput(f"cannot attach {path}: there is no such file")
    return path


def _tools(passages: list[Document], planning: LLM, attached: list[Path]) -> list[Tool]:
    """Search when there are documents, the attached files when there are some."""
    from kgot_lab.tools.attachment import read_attachment
    from kgot_lab.tools.search import search

    tools: list[Tool] = []
    if passages:
        tools.append(search(passages, k=min(8, len(passages))))
    if attached:
        tools.append(read_attachment(attached))
    return tools


def _new_trace() -> Path:
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    number = next(number for number in range(1000) if not (RUNS / f"{stamp}_{number}.jsonl").exists())
    return RUNS / f"{stamp}_{number}.jsonl"


def _answer(
    question: str,
    live: object,
    limits: Limits,
    path: Path,
    *,
    attachments: list[Path] | None = None,
    html: Path | None = None,
    as_json: bool = False,
    unsafe: bool = False,
    documents: list[Document] | None = None,
) -> None:
    from kgot_lab.loop.forecast import forecast
    from kgot_lab.loop.replay import Live
    from kgot_lab.loop.trace import record
    from kgot_lab.loop.walk import think
    from kgot_lab.sandbox import open_sandbox
    from kgot_lab.stores import InMemory

    assert isinstance(live, Live) and live.planning is not None
    if live.planning.name.startswith("local"):
        _say(f"estimate, for 2 turns: {forecast(limits, steps=2)}")
    with InMemory(open_sandbox(unsafe=unsafe)) as store:
        names = [path.name for path in attachments or []]
        events = think(question, live.planning, store, live.tools, limits, execution=live.execution, attachments=names)
        _finish(record(events, path), path, f"kgot-lab resume {path} --documents DIR", html, as_json=as_json)


def _finish(events: Iterator[Event], path: Path, again: str, html: Path | None, *, as_json: bool = False) -> None:
    """Show events as they happen, then the answer with what it rests on."""
    seen: list[Event] = []
    begun = time.perf_counter()
    for event in _interruptible(events, path, again):
        seen.append(event)
        _show(event, begun, to_stderr=as_json)
    _conclude(seen, path, as_json)
    _page(seen, html)


def _conclude(seen: list[Event], path: Path, as_json: bool) -> None:
    from kgot_lab.loop.events import Answered, Started, ToolReturned
    from kgot_lab.loop.ledger import ledger

    final = next(event for event in reversed(seen) if isinstance(event, Answered))
    begun = next(event for event in seen if isinstance(event, Started))
    found = {document.id: document for event in seen if isinstance(event, ToolReturned) for document in event.sources}
    passages = [found[id] for id in final.passages if id in found]
    costs = ledger(seen)
    if as_json:
        result = {
            "question": begun.question, "answer": final.text, "forced": final.forced, "evidence": list(final.evidence),
            "passages": [{"id": document.id, "title": document.title} for document in passages],
            "preset": begun.preset, "model": begun.planning, "calls": len(costs.entries),
            "prompt_tokens": costs.total.prompt_tokens, "completion_tokens": costs.total.completion_tokens,
            "seconds": round(costs.total.seconds, 1), "dollars": costs.total.cost, "trace": str(path),
        }  # fmt: skip
        typer.echo(json.dumps(result, ensure_ascii=False))
        return
    typer.echo(f"\nAnswer: {final.text}" + ("   (a guess: no read gave rows)" if final.forced else ""))
    taken_from = [f"{document.title or document.id} [{document.id}]" for document in passages]
    for title, items in (("It rests on these facts of the graph", final.evidence), ("taken from", taken_from)):
        if items:
            typer.echo(f"{title}:\n" + "\n".join(f"  {item}" for item in items))
    total = costs.total
    spent = f"{total.prompt_tokens} + {total.completion_tokens} tokens, {total.seconds:.0f} s, ${total.cost:.4f}"
    typer.echo(f"{len(costs.entries)} model calls, {spent}; run: {path}")


def _interruptible(events: Iterator[Event], path: Path, again: str) -> Iterator[Event]:
    """The events; when someone presses Ctrl-C or the budget is used up, say where the run is kept and how to go on."""
    try:
        yield from events
    except KeyboardInterrupt:
        _say(f"\nstopped; everything so far is in {path}. Go on with: {again}")
        raise
    except OverBudget as error:
        _fail(f"{error}\nEverything so far is in {path}. Go on with: {again}")


def _fail(text: str) -> NoReturn:
    raise LabError(text)


def _show(event: Event, begun: float | None = None, *, to_stderr: bool = False) -> None:
    from kgot_lab.viz.lines import line

    clock = f"{time.perf_counter() - begun:6.1f} s  " if begun is not None else ""
    typer.echo(clock + line(event).replace("\n", "\n" + " " * len(clock)), err=to_stderr)


def _page(events: object, html: Path | None) -> None:
    if html is None:
        return
    from kgot_lab.viz import page

    html.parent.mkdir(parents=True, exist_ok=True)
    html.write_text(page(events, title="A KGoT run"), encoding="utf-8")  # type: ignore[arg-type]
    _say(f"page: {html}")


def _replay_demo() -> None:
    from kgot_lab.bundled import bundled
    from kgot_lab.loop.trace import load

    path = bundled("tapes/hotpotqa_demo.jsonl")
    run = load(path)
    _say(f"recorded {run.created} from {run.about.get('model', 'the local model')}\n")
    for event in run.events:
        _show(event)
    _conclude(list(run.events), path, as_json=False)
    _page(run.events, RUNS / "demo.html")


def _demo_questions(develop: tuple[str, ...]) -> list[str]:
    """The questions of the demo: of those that prompts were developed on, so that no measured question is shown off."""
    return [develop[number] for number in (1, 7, 4)]
