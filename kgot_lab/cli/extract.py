"""Grow a graph from documents on file and on screen: an extraction that begins, and one that goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli import output_files as saving
from kgot_lab.cli import question_setup as asking
from kgot_lab.cli import terminal
from kgot_lab.cli.resume import GoOn, regenerate_hint, resume_hint
from kgot_lab.errors import BadInput

if TYPE_CHECKING:
    from kgot_lab.cli.configuration import Configuration
    from kgot_lab.graph import PropertyGraph

_ANOTHER = (
    "holds another graph than this extraction made, which would be lost: name another file with --out FILE"
)
EXTRACTS = ("model", "models", "preset", "limits", "budget")  # what an extraction takes of a configuration


def extract_graph(
    documents: Path,
    configuration: Configuration,
    out: Path,
    trace: Path | None,
    again: Mapping[str, object],
    *,
    go_on: bool,
) -> None:
    """Write the facts of all documents into a graph file, every event on file; `again` is what the same
    command is given to go on.
    """
    from kgot_lab.loop.limits import forecast_of_texts
    from kgot_lab.loop.replay.extract import extract, left_to_read
    from kgot_lab.loop.replay.replay import started
    from kgot_lab.loop.trace import append, graph_after, load_run, made_by, record
    from kgot_lab.stores import InMemory
    from kgot_lab.stores.files import check_graph_file

    path, model = trace or terminal.new_trace(), configuration.model
    terminal.require_distinct_paths(trace=path, out=out, model=model)
    if out.exists() and not go_on:
        raise BadInput(f"{out} exists already: name another file with --out FILE")
    check_graph_file(out)
    terminal.check_new(None if go_on else path)
    done = load_run(path).events if go_on else ()
    if done and started(done).question:
        raise BadInput(
            f"{path} is the run of a question, not an extraction: kgot-lab resume {path} goes on with it"
        )
    going_on = GoOn("extract", documents, {**again, "trace": path, "resume": True})
    read = graph_after(done)
    place = saving.place_to_save(out, "--out", lambda there: "" if _holds(read, there) else _ANOTHER)
    limits = configuration.limits_for(terminal.own_name(model, configuration.models))
    passages = terminal.read_folder(documents)
    left = left_to_read(passages, limits, done)
    if done and not left:
        terminal.say("nothing is left to do: every document is read")
        with regenerate_hint(path, _elsewhere(going_on, place)):
            saving.keep_graph(read, done, place)
        return
    spending = asking.spending_of(configuration, done)
    llm = terminal.connect_model(model, spending, trace=path if go_on else None, models=configuration.models)
    asking.check_prices(configuration, llm)
    page = asking.print_configuration(configuration, limits)
    forecast = forecast_of_texts(limits, [each.text for each in left], rate=asking.rate_of(llm))
    terminal.say(f"estimate, for {'what is left of the' if done else 'all'} documents: {forecast}")
    with InMemory() as store:
        events = extract(passages, llm, store, limits, done=done)
        begun = time.perf_counter()
        kept = (
            append(events, path)
            if go_on
            else record(events, path, about={**made_by(llm), "configuration": page})
        )
        with resume_hint(path, going_on):
            for event in kept:
                terminal.show_event(event, begun)
        with regenerate_hint(path, _elsewhere(going_on, place)):
            saving.keep_graph(store.graph(), load_run(path).events, place)
        terminal.say(f"the run is in {path}")


def _elsewhere(going_on: GoOn, place: saving.SavedGraph) -> GoOn:
    """The command that goes on, into another file where something else came to the place."""
    return replace(going_on, options={**going_on.options, "out": place.another}) if place.taken else going_on


def _holds(graph: PropertyGraph, there: PropertyGraph) -> bool:
    """Whether all nodes and edges of a graph that is on file are in another."""
    edges = {edge.identity for edge in there.edges} - {edge.identity for edge in graph.edges}
    return not edges and set(there.ids) <= set(graph.ids)
