"""Set up a run: models with a shared budget, available tools, and a store with an optional initial graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli import terminal
from kgot_lab.errors import BadInput, require_known

if TYPE_CHECKING:
    from kgot_lab.cli.configuration import Configuration, StoreChoice, ToolChoice
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.llm.budget import Rate, Spending
    from kgot_lab.loop.events import Event, Started
    from kgot_lab.loop.limits import Limits
    from kgot_lab.stores.protocol import Store
    from kgot_lab.tools.offered import ToolResources
    from kgot_lab.tools.tool import Tool
    from kgot_lab.types import LLM, Document


def shared_spending(configuration: Configuration, done: Iterable[Event] = ()) -> Spending:
    """Return the shared account of all models of a command.

    Calls of a resumed run count, since a budget applies to the whole run.
    """
    from kgot_lab.llm.budget import Spending
    from kgot_lab.loop.state import ledger

    budget = configuration.budget
    spending = Spending(terminal.make_budget(budget.calls, budget.seconds, budget.dollars))
    earlier = ledger(done)
    spending.charge(earlier.total, calls=len(earlier.entries))
    return spending


_BASIC_TOOLS = {"search", "read_attachment"}  # what a small model gets


def available_tools(
    at_hand: ToolResources,
    configuration: Configuration,
    limits: Limits | None = None,
    *,
    named: Collection[str] | None = None,
) -> list[Tool]:
    """Return the tools of a run.

    These are the ones of a resumed run (`named`), the ones named in the configuration, or all that its preset
    is made for. A small model gets the search and the attached files. Any other model gets all tools that
    work with what is available. A tool that was requested by name and cannot work raises BadInput with the
    reason. For others the reasons are printed.
    """
    from kgot_lab.tools.offered import offered_tools

    tool_choice = configuration.tools
    chosen = tool_choice.names if isinstance(tool_choice.names, tuple) else None
    requested = chosen if named is None else named
    few_tools = limits is not None and limits.few_tools
    is_basic = requested is None and few_tools and tool_choice == type(tool_choice)()
    if is_basic or (requested is not None and set(requested) <= _BASIC_TOOLS):
        files = list(map(Path, at_hand.attachments))
        basic = terminal.make_tools(at_hand.documents, files, k=at_hand.passages)
        if requested is None or set(requested) <= {tool.name for tool in basic}:
            return [tool for tool in basic if requested is None or tool.name in requested]
    offered = terminal.call_with_notes(lambda: offered_tools(at_hand))
    found = {tool.name: tool for tool in offered.tools}
    if requested is None:
        for missing_tool in offered.missing:
            terminal.say(f"note: not offered here: {missing_tool}")
        return list(found.values())
    reasons = {missing_tool.name: missing_tool.why for missing_tool in offered.missing}
    for name in requested:
        if name not in found and name in reasons:
            raise BadInput(f"the tool {name} cannot work here: {reasons[name]}")
        require_known("tool", [*found, *reasons], name)
    return [found[name] for name in requested]


def collect_tool_inputs(
    configuration: Configuration,
    documents: Sequence[Document],
    attached: Sequence[Path],
    llm: LLM,
    limits: Limits,
    spending: Spending,
) -> ToolResources:
    """Collect what tools can be made from."""
    from kgot_lab.sandbox import Calculator
    from kgot_lab.tools.offered import ToolResources
    from kgot_lab.tools.web.archives import Mirror

    tool_choice = configuration.tools
    check_engine(tool_choice)
    if tool_choice.mirror:
        Mirror(tool_choice.mirror)
    vision = None
    if tool_choice.vision_model:
        vision = terminal.connect_model(tool_choice.vision_model, spending, models=configuration.models)
    # opens its sandbox when it is first used
    calculator = Calculator(unsafe=configuration.store.unsafe, seconds=limits.tools.python_seconds)
    return ToolResources(
        documents, list(attached), llm=llm, vision=vision, computer=calculator, web=tool_choice.web,
        mirror=tool_choice.mirror, engine=tool_choice.engine, unpack_into=Path(tool_choice.unpack_into) if tool_choice.unpack_into else None,
        speech=tool_choice.speech_model, spending=spending, passages=limits.search_passages,
    )  # fmt: skip


def initial_graph(choice: StoreChoice) -> PropertyGraph | None:
    """Load the initial graph of a run from its file or from a namespace of its server.

    Returns None for a graph that is used in place.
    """
    from kgot_lab.kgos.query.graph_loading import load_graph
    from kgot_lab.stores.opening import environment_login, open_store

    if choice.graph is None:
        return None
    if "://" not in choice.graph:
        return load_graph(choice.graph, say=terminal.say)
    if choice.at or choice.kind:
        raise BadInput("--graph names the address of a graph, and --store or --at another: leave one out")
    if not choice.namespace:
        raise BadInput(f"name the graph with --namespace NAME: kgot-lab namespaces {choice.graph} lists them")
    if choice.keep:
        return None
    login = environment_login(choice.graph)
    with closing(open_store(choice.graph, namespace=choice.namespace, **login)) as stored:
        return stored.graph()


def open_run_store(choice: StoreChoice, graph: PropertyGraph | None) -> Store:
    """Open the store of a run, after all checks, since it may be emptied or filled as requested."""
    from kgot_lab.stores import empty_store

    if choice.graph is not None and "://" in choice.graph:
        if choice.keep:
            return empty_store(choice.graph, unsafe=choice.unsafe, namespace=choice.namespace, keep=True)
        choice = choice.model_copy(update={"namespace": None})
    if graph is not None and choice.keep:
        raise BadInput("a run begins with --graph FILE, or --keep the graph in the store: leave one out")
    kind, options = choice.kind or "in_memory", {"keep": choice.keep, "wipe": choice.wipe}
    store = empty_store(kind, choice.at, unsafe=choice.unsafe, namespace=choice.namespace, **options)
    print_namespace(store)
    return store if graph is None else _fill_store(graph, store)


def print_namespace(store: Store) -> None:
    """Say in which of a server's graphs a run grows its own."""
    if namespace := getattr(store, "namespace", ""):
        terminal.say(f"the graph grows in the namespace {namespace}")


def print_store_differences(store: Store, choice: StoreChoice, events: Sequence[Event]) -> None:
    """Report if a store that outlives a run ends with another graph than the run's writes give."""
    from kgot_lab.loop.trace import first_inconsistent_write, graph_after, inconsistency_message

    location = getattr(store, "namespace", "") or choice.at
    diverged = first_inconsistent_write(events) if location else None
    if diverged is not None:
        problem = inconsistency_message(diverged)
        terminal.say(f"note: {location} holds something else than this run wrote: {problem}")
    elif location and store.graph() != graph_after(events):
        terminal.say(f"note: {location} holds something else than this run wrote: another command writes too")


def _fill_store(graph: PropertyGraph, store: Store) -> Store:
    """Load a graph into an empty store and return the store. The store is closed on failure."""
    try:
        if store.schema().nodes:
            raise BadInput("the store holds a graph already, and a run begins with --graph: leave --keep out")
        store.apply(store.graph().diff(graph))
    except BaseException:
        store.close()
        raise
    return store


def check_engine(tool_choice: ToolChoice) -> None:
    """Check that the selected search engine can be used when web access is on.

    Raises UnknownName, BadInput, NotInstalled.
    """
    from kgot_lab.tools.web.engines import check_engine_name, web_engine

    check_engine_name(tool_choice.engine)
    if tool_choice.engine and tool_choice.web and not tool_choice.mirror:
        web_engine(os.environ, tool_choice.engine)


def restrict_configuration(
    command: str, configuration: Configuration, fields: Collection[str]
) -> Configuration:
    """Return the configuration with only the fields that a command uses, and print a note on the others."""
    used, unused = configuration.only(fields)
    if unused:
        terminal.say(f"note: kgot-lab {command} does not use {', '.join(unused)} of the configuration")
    return used


def print_configuration(configuration: Configuration, limits: Limits) -> str:
    """Print the configuration as YAML and return it."""
    page = configuration.to_yaml(limits)
    terminal.say("".join(f"  {line}\n" for line in ["# configuration", *page.splitlines()]).rstrip())
    return page


def check_prices(configuration: Configuration, *models: LLM | None) -> None:
    """Raise BadInput if dollars are limited and the price of a model is unknown, before any call."""
    from kgot_lab.llm.budget import requested_price

    for llm in models if configuration.budget.dollars is not None else ():
        if llm is not None and requested_price(llm) is None:
            problem = f"the price of {llm.name} is not known, so --max-dollars cannot be kept"
            advice = "in a file of models (--models), below its name: price: {prompt: …, completion: …} in US dollars a million tokens"
            raise BadInput(f"{problem}: give it {advice}, or limit calls or seconds")


def print_forecast(llm: LLM, limits: Limits) -> None:
    """Print the estimate for a run of two turns, before any call, if it takes much time or money."""
    from kgot_lab.llm.presets import FREE
    from kgot_lab.loop.limits import forecast

    rate = model_rate(llm)
    if rate.price != FREE or llm.name.startswith("local"):
        terminal.say(f"estimate, for 2 turns: {forecast(limits, steps=2, rate=rate)}")


def model_rate(llm: LLM) -> Rate:
    """Return the known speed and price of a model."""
    from kgot_lab.llm.budget import Rate, requested_price

    return Rate(price=requested_price(llm))


def tools_of_resumed_run(at_hand: ToolResources, configuration: Configuration, start: Started) -> list[Tool]:
    """Return the tools of a resumed run.

    Raises BadInput if one of them cannot work, saying which options to give again.
    """
    try:
        return available_tools(at_hand, configuration, named=list(start.tools))
    except BadInput as error:
        files = ""
        if start.attachments:
            files = f" and its files ({', '.join(start.attachments)}) with --attach FILE"
        advice = f"the run used {', '.join(sorted(start.tools))}: name its documents again with --documents DIR{files}"
        raise BadInput(f"{advice} ({error})") from error
