"""Random statements: an engine in the sandbox and one on a server, and a model in a few lines, agree on rows
and graphs, or all refuse.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning
from support.bolt_server import BoltServer
from support.oxigraph_server import OxigraphServer

from faults.counting import Counts
from faults.grammar import ACTS, CYPHER, SPARQL, Act, Statement
from kgot_lab.errors import QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Edge, Node

_SECONDS = 20.0  # a statement has on a server, so that a busy computer is no difference
_CASES = 25  # before the clock is looked at
# what one of two may refuse without a reason in the language
_LEFT_OUT = ("keeps several graphs apart", "took longer", "bytes", "characters")


class Fault(Exception):
    """Two stores disagree, or one breaks; the name says how, in general."""

    def __init__(self, name: str, shown: str):
        super().__init__(name)
        self.name, self.shown = name, shown


def run(seconds: float, seed: int) -> Counts:
    """Random statements for so many seconds, against servers of their own."""
    chance, cases, faults = random.Random(seed), 0, dict[str, str]()
    with opened() as stores:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for check, strategy in checks(stores):
                done, fault = searched(check, strategy, chance.randrange(2**32), _CASES)
                cases += done
                if fault is not None:
                    faults[fault.name] = min(faults.get(fault.name, fault.shown), fault.shown, key=len)
    return Counts(cases, faults)


@contextmanager
def opened(*, servers: bool = True) -> Iterator[Mapping[str, Store]]:
    """The stores that statements are tried in, by kind, with servers of their own."""
    with ExitStack() as stack:
        kinds = ("in_memory", "cypher_embedded", "sparql_embedded")
        stores: dict[str, Store] = {kind: open_store(kind) for kind in kinds}
        if servers:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            (folder / "bolt").mkdir()
            (folder / "oxigraph").mkdir()
            bolt, oxigraph = BoltServer(folder / "bolt"), OxigraphServer(folder / "oxigraph")
            stack.callback(bolt.kill)
            stack.callback(oxigraph.kill)
            stores |= served(bolt, oxigraph, "fire")
        for store in stores.values():
            stack.callback(store.close)
        yield stores


def served(bolt: BoltServer, oxigraph: OxigraphServer, name: str) -> dict[str, Store]:
    """The stores of two servers, in a namespace of that name."""
    login = {"user": bolt.user, "password": bolt.password, "database": bolt.database("fire")}
    return {
        "cypher_server": open_store("cypher_server", at=bolt.uri, namespace=name, seconds=_SECONDS, **login),
        "sparql_server": open_store("sparql_server", at=oxigraph.query_url, namespace=name, seconds=_SECONDS),
    }


def checks(stores: Mapping[str, Store]) -> list[tuple[Callable[[Any], None], st.SearchStrategy[Any]]]:
    """What is tried with these stores, and with what cases; each raises Fault."""
    found: list[tuple[Callable[[Any], None], st.SearchStrategy[Any]]] = []
    for language, grammar in (("cypher", CYPHER), ("sparql", SPARQL)):
        pair = [stores[kind] for kind in (f"{language}_embedded", f"{language}_server") if kind in stores]
        found.append((lambda case, pair=pair: agree(case, pair), st.lists(grammar, min_size=1, max_size=5)))
    tellers = [store for kind, store in stores.items() if not kind.startswith("sparql")]
    acts = st.lists(ACTS.filter(lambda act: not act.forgets), min_size=1, max_size=5)
    found.append((lambda case: as_the_model(case, [*stores.values()]), acts))
    found.append((lambda case: as_the_model(case, tellers), st.lists(ACTS, min_size=1, max_size=5)))
    return found


def searched(
    check: Callable[[Any], None], strategy: st.SearchStrategy[Any], seed: int, cases: int
) -> tuple[int, Fault | None]:
    """How many cases were tried, and the smallest that fails, if one does."""
    done = 0

    @seeded(seed)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(strategy)
    def tried(case: Any) -> None:
        nonlocal done
        done += 1
        check(case)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # that a grammar takes long to print
        try:
            tried()
        except Fault as fault:
            return done, fault
    return done, None


# --- what must hold ---


def agree(case: Sequence[Statement], stores: Sequence[Store]) -> None:
    """Raise Fault unless stores of one language give the same rows and come to the same graph, and reads
    leave it as it is.
    """
    for store in stores:
        _empty(store)
    for number, statement in enumerate(case):
        shown = json.dumps(
            [each.text if len(each.text) < 500 else f"{each.text[:500]}…" for each in case[: number + 1]],
            ensure_ascii=False,
        )
        before = stores[0].graph()
        outcomes = [_outcome(store, statement, shown) for store in stores]
        texts = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if any(reason in text for text in texts for reason in _LEFT_OUT):
            return
        if len({isinstance(outcome, str) for outcome in outcomes}) > 1:
            said = next(outcome for outcome in outcomes if isinstance(outcome, str))
            raise Fault(f"{_language(stores)}: one refuses, one does not ({said[:60]})", shown)
        graphs = [store.graph() for store in stores]
        if any(graph != graphs[0] for graph in graphs):
            raise Fault(f"{_language(stores)}: two graphs", f"{shown}: {graphs[0].diff(graphs[1])!r}")
        if not statement.writes and graphs[0] != before:
            raise Fault(f"{_language(stores)}: a read wrote", shown)
        if not isinstance(outcomes[0], str) and any(outcome != outcomes[0] for outcome in outcomes):
            raise Fault(f"{_language(stores)}: different rows", f"{shown}: {str(outcomes)[:500]}")


def as_the_model(case: Sequence[Act], stores: Sequence[Store]) -> None:
    """Raise Fault unless facts that are told and forgotten in each language leave the graph that they say."""
    for store in stores:
        _empty(store)
    nodes, edges = dict[str, None](), dict[tuple[str, str, str], dict[str, Any]]()
    for act in case:
        ends = (act.fact.subject, act.fact.relation, act.fact.object)
        if act.forgets:
            edges.pop(ends, None)
        else:
            nodes |= dict.fromkeys((ends[0], ends[2]))
            edges[ends] = {**edges.get(ends, {}), act.name: act.value}
        wanted = PropertyGraph.of(map(Node, nodes), (Edge(*ends, told) for ends, told in edges.items()))
        for store in stores:
            outcome = _outcome(store, Statement(act.said(store.dialect), True), repr(case))
            if isinstance(outcome, str):
                raise Fault(f"{store.dialect.name}: refused ({outcome[:60]})", repr(case))
            if store.graph() != wanted:
                difference = f"{case!r}: {wanted.diff(store.graph())!r}"
                raise Fault(f"{store.dialect.name}: not as the model says", difference)


def _outcome(store: Store, statement: Statement, shown: str) -> str | list[str]:
    """The rows of a read in a fixed order, nothing for a write, or why it was refused; raises Fault for
    anything else.
    """
    before = store.graph() if statement.writes else None
    try:
        found = store.write(statement.text) if statement.writes else store.read(statement.text)
    except QueryFailed as error:
        if before is not None and store.graph() != before:
            raise Fault(f"{store.dialect.name}: refused, and changed the graph", shown) from None
        return error.reason
    except Exception as error:
        raise Fault(f"{type(store).__name__}: {type(error).__name__}: {str(error)[:60]}", shown) from error
    if before is not None:
        if before.apply(found) != store.graph():
            raise Fault(f"{type(store).__name__}: the diff is not what changed", shown)
        return []
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


def _empty(store: Store) -> None:
    graph = store.graph()
    if len(graph):
        store.apply(graph.diff(graph.of()))


def _language(stores: Sequence[Store]) -> str:
    return stores[0].dialect.name
