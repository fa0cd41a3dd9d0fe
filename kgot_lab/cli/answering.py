"""Answer a question with output to file and screen, for new and resumed runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kgot_lab.api.approve import approve
from kgot_lab.cli import memory as remembering
from kgot_lab.cli import output_files, question_setup, terminal
from kgot_lab.cli.configuration import Configuration, StoreChoice, traced_configuration
from kgot_lab.cli.output_files import SavedGraph
from kgot_lab.cli.resume import ResumeCommand, command_line, regenerate_hint, resume_hint, show_run
from kgot_lab.errors import BadInput
from kgot_lab.loop.approval import Approve
from kgot_lab.loop.certificate import certificate_of_run
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Event
from kgot_lab.loop.extract import extract
from kgot_lab.loop.limits import Limits, forecast_extraction
from kgot_lab.loop.persistence import MemorySession
from kgot_lab.loop.replay.forks import edited_index
from kgot_lab.loop.replay.replay import Resources, recorded_limits, resume
from kgot_lab.loop.trace import load_run, model_metadata, record
from kgot_lab.stores import InMemory, reopen_store
from kgot_lab.stores.files import check_graph_file
from kgot_lab.stores.opening import resolve_location
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Json

_ONE_MODEL_PER_RECORDING = (
    "a recording holds the replies of one model: leave out --recording or --execution-model; the trace keeps "
    "those of both"
)


@dataclass(frozen=True)
class Outputs:
    """The outputs of a run: trace, recording of replies, HTML page, saved graph, and the result as text or JSON."""

    trace: Path | None = None
    recording: Path | None = None
    html: Path | None = None
    as_json: bool = False
    saved: SavedGraph | None = None


@dataclass(frozen=True)
class QuestionTask:
    """A question with its resources, its limits, and the head of its trace."""

    question: str
    live: Resources
    limits: Limits
    about: Mapping[str, Json] = field(default_factory=dict)
    attached: Sequence[Path] = ()


def answer_question(
    question: str,
    configuration: Configuration,
    attached: Sequence[Path],
    outputs: Outputs,
    memory: MemorySession | None,
) -> None:
    """Answer a question by a configuration. Everything that can be rejected is, before a model is called."""
    documents = Path(configuration.documents) if configuration.documents else None
    choice, tool_choice = configuration.store, configuration.tools
    if choice.kind is not None:
        resolve_location(choice.kind, choice.at)
    has_graph = choice.graph is not None or choice.keep or (memory is not None and memory.begun.facts > 0)
    if not (documents or attached or has_graph or tool_choice.adds_tools):
        sources = "name a folder with --documents DIR or a file with --attach FILE"
        alternatives = "begin with a graph (--graph FILE, or --memory FILE where facts hold in it), or allow more tools (--web, --tool NAME)"
        raise BadInput(f"there is nothing to take facts from: {sources}, {alternatives}")
    if outputs.recording is not None and configuration.execution_model:
        raise BadInput(_ONE_MODEL_PER_RECORDING)
    path = outputs.trace or terminal.new_trace_path()
    save_path = Path(choice.save) if choice.save else None
    terminal.require_distinct_paths(
        trace=path, html=outputs.html, recording=outputs.recording, at=choice.at, attach=list(attached), model=configuration.model,
        execution_model=configuration.execution_model, graph=choice.graph, memory=configuration.memory,
        save_graph=save_path if choice.graph is None or save_path != Path(choice.graph) else None,
    )  # fmt: skip
    terminal.check_page_path(outputs.html, documents)
    terminal.check_new_trace(path)
    target = output_files.save_target(choice)
    output_files.check_snapshots(configuration.snapshots, begins=True)
    spending = question_setup.shared_spending(configuration)
    name = terminal.actual_model_name(configuration.model, configuration.models)
    limits = configuration.limits_for(name, with_tools=bool(attached))
    limits = limits.learning() if memory and not memory.looks_only else limits
    passages = terminal.read_folder(documents) if documents else []
    graph = question_setup.initial_graph(choice)
    registry = configuration.models
    planning = terminal.connect_model(configuration.model, spending, outputs.recording, models=registry)
    executor = configuration.execution_model
    execution = terminal.connect_model(executor, spending, models=registry) if executor else None
    inputs = question_setup.collect_tool_inputs(configuration, passages, attached, planning, limits, spending)
    question_setup.check_prices(configuration, planning, execution, inputs.vision)
    # nothing to fetch with: the graph is asked as it is
    graph_only = has_graph and not (documents or attached) and tool_choice == type(tool_choice)()
    if graph_only and graph is not None and not len(graph):
        raise BadInput(f"the graph in {choice.graph} is empty: name another, or documents (--documents DIR)")
    tools = [] if graph_only else question_setup.available_tools(inputs, configuration, limits)
    if memory is not None:
        tools, graph = memory.tools(tools), memory.begun.graph if memory.begun.facts else None
        remembering.print_initial_graph(memory, configuration.memory)
    store = question_setup.open_run_store(choice, graph)
    if namespace := getattr(store, "namespace", None):
        configuration = configuration.with_flags({"store.namespace": namespace})
    yaml_text = question_setup.print_configuration(configuration, limits)
    question_setup.print_forecast(planning, limits)
    live = Resources(tools, planning, execution, approve=_approval(configuration.run.approve))
    task = QuestionTask(question, live, limits, {"configuration": yaml_text}, attached)
    resume_command = ResumeCommand("resume", path, _resume_options(configuration, attached, outputs))
    outputs = Outputs(path, html=outputs.html, as_json=outputs.as_json, saved=target)
    run_task(task, store, resume_command, outputs, configuration, memory)


def _resume_options(
    configuration: Configuration, attached: Sequence[Path], outputs: Outputs
) -> dict[str, object]:
    """Return the options of the `resume` command that the configuration in the trace does not hold, and those
    that an error may advise to change.
    """
    model = configuration.model
    return {
        "attach": list(attached) or None, "execution_model": configuration.execution_model, "html": outputs.html, "json": outputs.as_json,
        "model": model if model != "local" else None, "recording": outputs.recording, **_budget_options(configuration),
    }  # fmt: skip


def _budget_options(configuration: Configuration) -> dict[str, object]:
    return {f"max_{name}": limit for name, limit in configuration.budget.model_dump().items()}


def _approval(is_wanted: bool) -> Approve | None:
    """Return what asks on the terminal, if a run is to be approved. Raises BadInput without a terminal."""
    if not is_wanted:
        return None
    if not sys.stdin.isatty():
        raise BadInput("--approve asks on the terminal, and this command has none to read answers from")

    return approve


def run_task(
    task: QuestionTask,
    store: Store,
    resume_command: ResumeCommand,
    outputs: Outputs,
    configuration: Configuration,
    memory: MemorySession | None = None,
) -> None:
    """Run the loop with its events on file and on screen, and close the store at the end."""
    assert task.live.planning is not None and outputs.trace is not None
    chosen = configuration.run
    with closing(store) as opened:
        events = think(
            task.question, task.live.planning, opened, task.live.tools, task.limits, execution=task.live.execution,
            attachments=[file.name for file in task.attached], approve=task.live.approve, prompts=chosen.prompts, parallel=chosen.parallel,
            mode=chosen.mode,
        )  # fmt: skip
        metadata = {**model_metadata(task.live.planning), **task.about}
        recorded = record(events, outputs.trace, metadata=metadata)
        recorded = output_files.with_snapshots(recorded, configuration.snapshots, outputs.trace)
        shown = show_run(recorded, outputs, resume_command, memory=memory, certify=configuration.certify)
        _save_final_graph(opened, configuration.store, outputs, shown)


def _save_final_graph(store: Store, choice: StoreChoice, outputs: Outputs, events: Sequence[Event]) -> None:
    """Save the graph if requested, and report if the store holds another graph than the run made."""
    target = outputs.saved
    if target is not None and outputs.trace is not None:
        free_path = target.free_path if target.is_changed else None
        with regenerate_hint(outputs.trace, command_line("resume", outputs.trace, save_graph=free_path)):
            output_files.save_graph(store.graph(), events, target)
    question_setup.print_store_differences(store, choice, events)


_OUTPUT_OPTIONS = ("html", "json", "save_graph", "snapshots", "certify")  # which a finished run has too


def resume_run(
    trace: Path,
    configuration: Configuration,
    given: Mapping[str, Any],
    outputs: Outputs,
    memory: MemorySession | None,
) -> None:
    """Resume a recorded run, with the models it names unless others are `given` as options of the command."""
    run, begun = terminal.load_question_run(trace)
    attached, model, execution = given["attach"] or [], given["model"], given["execution_model"]
    choice = configuration.store
    documents = Path(configuration.documents) if configuration.documents else None
    terminal.require_distinct_paths(
        trace=trace, html=outputs.html, recording=outputs.recording, at=choice.at, attach=list(attached), model=model, execution_model=execution,
        save_graph=choice.save,
    )  # fmt: skip
    terminal.check_page_path(outputs.html, documents)
    # events before a fork were paid for by its original run
    spending = question_setup.shared_spending(configuration, run.events[max(edited_index(run), 0) :])
    if run.finished:
        asking = (name for name in given if name not in _OUTPUT_OPTIONS and given[name] not in (None, False))
        unused = " and ".join(f"--{name.replace('_', '-')}" for name in asking)
        terminal.say(f"this run has its answer; nothing is left to do{unused and f', and {unused} not used'}")
        certificate = certificate_of_run(run) if configuration.certify else None
        learnt = None if memory is None else memory.learn(run)
        terminal.show_answer(run.events, trace, outputs.as_json, learnt, certificate)
        terminal.write_page(run.events, outputs.html, certificate)
        output_files.check_snapshots(configuration.snapshots, begins=False)
        for _ in output_files.with_snapshots(run.events, configuration.snapshots, trace):
            pass
        if choice.save:
            is_named = choice.save != traced_configuration(run.about).store.save
            output_files.rewrite_graph(run.events, Path(choice.save), is_named=is_named)
        return
    # then the head of the trace says how the models were named
    has_configuration = "configuration" in run.about
    executor = execution or (begun.execution if begun.execution != begun.planning else None)
    if has_configuration:
        executor = execution or configuration.execution_model
    if outputs.recording is not None and executor:
        raise BadInput(_ONE_MODEL_PER_RECORDING)
    connect = terminal.connect_model if model or has_configuration else terminal.reconnect_model
    name = model or (configuration.model if has_configuration else begun.planning)
    planning = connect(name, spending, outputs.recording, trace=trace, models=configuration.models)
    reconnect = partial(terminal.reconnect_model, option="--execution-model")
    connect = terminal.connect_model if execution or has_configuration else reconnect
    registry = configuration.models
    execution_llm = connect(executor, spending, trace=trace, models=registry) if executor else None
    resume_command = ResumeCommand("resume", trace, {**given, **_budget_options(configuration)})
    limits, passages = recorded_limits(begun), terminal.run_documents(run, documents)
    inputs = question_setup.collect_tool_inputs(configuration, passages, attached, planning, limits, spending)
    question_setup.check_prices(configuration, planning, execution_llm, inputs.vision)
    tools = question_setup.tools_of_resumed_run(inputs, configuration, begun)
    tools = tools if memory is None else memory.tools(tools)
    saved = output_files.resumed_save_target(choice, begun.start)
    output_files.check_snapshots(configuration.snapshots, begins=False)
    location = (choice.kind, choice.at) if choice.kind else (choice.at, None) if choice.at else None
    if location is None:
        opened = terminal.open_replay_store(begun, choice.unsafe)
    else:
        opened = reopen_store(*location, unsafe=choice.unsafe, namespace=choice.namespace)
    with closing(opened) as store:
        question_setup.print_namespace(store)
        try:
            approve = _approval(bool(begun.custom.get("approves")))
            live = Resources(tools, planning, execution_llm, approve=approve)
            events = terminal.call_with_notes(lambda: resume(trace, store, live))
        except BadInput as error:
            if location is None or not store.schema().nodes:
                raise
            elsewhere = "--namespace NEW" if getattr(store, "namespace", "") else "--at ANOTHER"
            advice = f"{elsewhere} goes on with the run elsewhere, and leaves this graph as it is"
            raise BadInput(f"{error}. {advice}") from error
        recorded = output_files.with_snapshots(events, configuration.snapshots, trace)
        outputs = replace(outputs, trace=trace, saved=saved)
        shown = show_run(recorded, outputs, resume_command, memory=memory, certify=configuration.certify)
        _save_final_graph(store, choice, outputs, shown)


# Grow a graph from documents with output to file and screen.


# what an extraction takes of a configuration
EXTRACTION_FIELDS = ("model", "models", "preset", "limits", "budget")


def extract_graph(
    documents: Path,
    configuration: Configuration,
    out: Path,
    trace: Path | None,
    recording: Path | None,
    given: Mapping[str, object],
) -> None:
    """Write the facts of all documents into a graph file, with every event on file.

    Replies that the recording holds, by default the one beside `out`, are not asked for again: the same command goes
    on after a stop. `given` holds its options.
    """
    path, recording = trace or terminal.new_trace_path(), recording or out.with_suffix(".replies.jsonl")
    model = configuration.model
    terminal.require_distinct_paths(trace=path, out=out, model=model, recording=recording)
    if out.exists():
        raise BadInput(f"{out} exists already: name another file with --out FILE")
    check_graph_file(out)
    terminal.check_writable(out)
    terminal.check_new_trace(path)
    name = terminal.actual_model_name(model, configuration.models)
    limits = configuration.limits_for(name, with_tools=True)  # the model writes the graph
    passages = terminal.read_folder(documents)
    spending = question_setup.shared_spending(configuration)
    llm = terminal.connect_model(model, spending, recording, models=configuration.models)
    question_setup.check_prices(configuration, llm)
    yaml_text = question_setup.print_configuration(configuration, limits)
    texts = [document.text for document in passages]
    forecast = forecast_extraction(limits, texts, rate=question_setup.model_rate(llm))
    terminal.say(f"estimate, for all documents: {forecast}")
    resume_command = ResumeCommand("extract", documents, {**given, "recording": recording})
    with InMemory() as store:
        started_at = time.perf_counter()
        metadata = {**model_metadata(llm), "configuration": yaml_text}
        with resume_hint(path, resume_command):
            for event in record(extract(passages, llm, store, limits), path, metadata=metadata):
                terminal.show_event(event, started_at)
        with regenerate_hint(
            path,
            replace(resume_command, options={**resume_command.options, "out": SavedGraph(out).free_path}),
        ):
            output_files.save_graph(store.graph(), load_run(path).events, SavedGraph(out))
        terminal.say(f"the run is in {path}")
