"""Set up a run: models with a shared budget, available tools, and a store with an optional initial graph."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.cli import terminal
from kgot_lab.errors import BadInput, UnknownName

if TYPE_CHECKING:
    from kgot_lab.cli.configuration import Configuration, StoreChoice, ToolChoice
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.llm.budget import Rate, Spending
    from kgot_lab.loop.events import Event, Started
    from kgot_lab.loop.limits import Limits
    from kgot_lab.stores.protocol import Store
    from kgot_lab.tools.offered import AtHand
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
    before = ledger(done)
    spending.charge(before.total, calls=len(before.entries))
    return spending


_BASIC_TOOLS = {"search", "read_attachment"}  # what a small model gets


def available_tools(
    at_hand: AtHand,
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

    chosen = configuration.tools
    wanted = named if named is not None else chosen.names if isinstance(chosen.names, tuple) else None
    plainly = wanted is None and limits is not None and limits.few_tools and chosen == type(chosen)()
    if plainly or (wanted is not None and set(wanted) <= _BASIC_TOOLS):
        plain = terminal.make_tools(
            at_hand.documents, [Path(file) for file in at_hand.attachments], follow=at_hand.follow
        )
        if wanted is None or set(wanted) <= {tool.name for tool in plain}:
            return [tool for tool in plain if wanted is None or tool.name in wanted]
    offered = terminal.call_with_notes(lambda: offered_tools(at_hand))
    found = {tool.name: tool for tool in offered.tools}
    if wanted is None:
        for each in offered.missing:
            terminal.say(f"note: not offered here: {each}")
        return list(found.values())
    reasons = {each.name: each.why for each in offered.missing}
    for name in wanted:
        if name not in found and name in reasons:
            raise BadInput(f"the tool {name} cannot work here: {reasons[name]}")
        if name not in found:
            raise UnknownName("tool", name, [*found, *reasons])
    return [found[name] for name in wanted]


def collect_tool_inputs(
    configuration: Configuration,
    documents: Sequence[Document],
    attached: Sequence[Path],
    llm: LLM,
    limits: Limits,
    spending: Spending,
) -> AtHand:
    """Collect what tools can be made from."""
    from kgot_lab.sandbox import Calculator
    from kgot_lab.tools.offered import AtHand
    from kgot_lab.tools.web.archives import Mirror

    chosen = configuration.tools
    check_engine(chosen)
    if chosen.mirror:
        Mirror(chosen.mirror)
    seeing = (
        terminal.connect_model(chosen.vision_model, spending, models=configuration.models)
        if chosen.vision_model
        else None
    )
    # opens its sandbox when it is first used
    calculator = Calculator(unsafe=configuration.store.unsafe, seconds=limits.python_seconds)
    return AtHand(
        documents, list(attached), llm=llm, vision=seeing, computer=calculator, web=chosen.web,
        mirror=chosen.mirror, engine=chosen.engine, unpack_into=Path(chosen.unpack_into) if chosen.unpack_into else None,
        speech=chosen.speech_model, spending=spending, follow=limits.reading == "paths",
    )  # fmt: skip


def initial_graph(choice: StoreChoice) -> PropertyGraph | None:
    """Load the initial graph of a run from its file or from a namespace of its server.

    Returns None for a graph that is used in place.
    """
    from kgot_lab.stores.opening import environment_login, open_store

    if choice.graph is None:
        return None
    if "://" not in choice.graph:
        return load_graph_file(choice.graph)
    if choice.at or choice.kind:
        raise BadInput(
            "--graph names the address of a graph and --store or --at another place: leave one out"
        )
    if not choice.namespace:
        raise BadInput(
            f"say which graph of the server: --namespace NAME; kgot-lab namespaces {choice.graph} lists them"
        )
    if choice.keep:
        return None
    with closing(
        open_store(choice.graph, namespace=choice.namespace, **environment_login(choice.graph))
    ) as kept:
        return kept.graph()


def open_run_store(choice: StoreChoice, graph: PropertyGraph | None) -> Store:
    """Open the store of a run, after all checks, since it may be emptied or filled as requested."""
    from kgot_lab.stores import empty_store

    if choice.graph is not None and "://" in choice.graph:
        if choice.keep:
            return empty_store(choice.graph, unsafe=choice.unsafe, namespace=choice.namespace, keep=True)
        choice = choice.model_copy(update={"namespace": None})
    if graph is not None and choice.keep:
        raise BadInput(
            "--graph FILE gives the graph to begin with, and --keep the one that is in the store: leave one out"
        )
    store = empty_store(
        choice.kind or "in_memory",
        choice.at,
        unsafe=choice.unsafe,
        namespace=choice.namespace,
        keep=choice.keep,
        wipe=choice.wipe,
    )
    print_namespace(store)
    return store if graph is None else _fill_store(graph, store)


def print_namespace(store: Store) -> None:
    """Say in which of a server's graphs a run grows its own."""
    if named := getattr(store, "namespace", ""):
        terminal.say(f"the graph grows in the namespace {named}")


def print_store_differences(store: Store, choice: StoreChoice, events: Sequence[Event]) -> None:
    """Report if a store that outlives a run ends with another graph than the run's writes give."""
    from kgot_lab.loop.trace import graph_after, not_following, parted_at

    place = getattr(store, "namespace", "") or choice.at
    parted = parted_at(events) if place else None
    if parted is not None:
        terminal.say(f"note: {place} holds something else than this run wrote: {not_following(parted)}")
    elif place and store.graph() != graph_after(events):
        terminal.say(
            f"note: {place} holds something else than this run wrote, which its trace has: another command writes there too"
        )


def _fill_store(graph: PropertyGraph, store: Store) -> Store:
    """Load a graph into an empty store and return the store. The store is closed on failure."""
    try:
        if store.schema().nodes:
            raise BadInput(
                "the store holds a graph already: --graph gives the graph to begin with, so leave --keep out"
            )
        store.apply(store.graph().diff(graph))
    except BaseException:
        store.close()
        raise
    return store


def load_graph_file(where: str) -> PropertyGraph:
    """Read the graph in a file without changing the file.

    The file is a snapshot, GraphML, Turtle, a trace, the file of a store, or SQLite. Raises BadInput.
    """
    from kgot_lab.kgos.query.graph_loading import is_store_file, read_store_file
    from kgot_lab.loop.evidence import sourced
    from kgot_lab.loop.trace import graph_after, is_trace, load_run
    from kgot_lab.stores.files import read_named_graph

    path = Path(where)
    if not path.is_file():
        raise BadInput(
            f"there is no graph at {where}: name a snapshot, a GraphML or Turtle file, a trace, a store's file, or an address"
        )
    if is_trace(path):
        events = load_run(path).events
        return sourced(graph_after(events), events)
    read = read_store_file(path) if is_store_file(path) else read_named_graph(path)
    if read.note:
        terminal.say(f"note: {where}: {read.note}")
    return read.graph


def check_engine(chosen: ToolChoice) -> None:
    """Check that the selected search engine can be used when web access is on.

    Raises UnknownName, BadInput, NotInstalled.
    """
    from kgot_lab.tools.web.engines import check_engine_name, web_engine

    check_engine_name(chosen.engine)
    if chosen.engine and chosen.web and not chosen.mirror:
        web_engine(os.environ, chosen.engine)


def restrict_configuration(
    command: str, configuration: Configuration, fields: Collection[str]
) -> Configuration:
    """Return the configuration with only the fields that a command uses, and print a note on the others."""
    used, left = configuration.only(fields)
    if left:
        terminal.say(f"note: kgot-lab {command} does not use {', '.join(left)} of the configuration")
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
            how = "in a file of models (--models), below its name: price: {prompt: …, completion: …} in US dollars a million tokens"
            raise BadInput(
                f"the price of {llm.name} is not known, so --max-dollars cannot be kept: give it {how}, or limit calls or seconds"
            )


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


def tools_of_resumed_run(at_hand: AtHand, configuration: Configuration, begun: Started) -> list[Tool]:
    """Return the tools of a resumed run.

    Raises BadInput if one of them cannot work, saying which options to give again.
    """
    try:
        return available_tools(at_hand, configuration, named=list(begun.tools))
    except BadInput as error:
        files = (
            f" and its files ({', '.join(begun.attachments)}) with --attach FILE" if begun.attachments else ""
        )
        named = f"the run used {', '.join(sorted(begun.tools))}: name its documents again with --documents DIR{files}"
        raise BadInput(f"{named} ({error})") from error
