"""The tables of the benchmark of stores, and whether its bars are reached: everything follows from the rows
of its results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_Row = Mapping[str, Any]
_EMBEDDED = ("in_memory", "cypher_embedded", "sparql_embedded", "sqlite")
MEASURED_STORES = (*_EMBEDDED, "cypher_server", "sparql_server", "postgres")
_FOLLOWS = ("in_memory", "sqlite", "postgres")  # the stores whose diffs must cost what the write does
_MEASURES = {
    "load": "load, s", "first": "first statement, s", "write": "write, ms", "apply": "apply, ms", "neighbours": "neighbours, ms",
    "within 1": "1 hop, ms", "within 2": "2 hops, ms", "within 3": "3 hops, ms", "path": "path, ms", "search": "search, ms",
    "render": "prompt, ms", "read": "read, ms", "graph": "graph(), s",
}  # fmt: skip
_FEW = 30  # repetitions below which a median is marked
_LOAD = {_EMBEDDED: 5.0, ("postgres",): 10.0}  # most seconds for WordNet
_HOPS = {"neighbours": 2.0, "within 1": 2.0, "within 3": 10.0}  # most milliseconds at 1,000 nodes
_TIMES = 2.0  # how many times as long a write may take in a graph of a hundred times the size

_LEGEND = (
    "Medians; in brackets, how many times as long as the raw driver's (networkx, arcadedb-embedded, pyoxigraph, sqlite3, neo4j, httpx,"
    f" psycopg) with the least code. A * marks fewer than {_FEW} repetitions. Memory is the most that the process had, with the graph that"
    " was loaded, + its worker's or server's."
)


def store_tables(rows: Sequence[_Row]) -> str:
    """A table in Markdown for each graph, smallest first."""
    rows = sorted(rows, key=_place)
    graphs = sorted({row["graph"] for row in rows}, key=lambda graph: (_edges(rows, graph), graph))
    return "\n\n".join([_LEGEND, _machines(rows), *(_block(rows, graph) for graph in graphs)]) + "\n"


def _machines(rows: Sequence[_Row]) -> str:
    """When and where the rows were measured."""
    commits: dict[str, dict[str, None]] = {}
    for row in rows:
        machine = row["machine"]
        where = f"{machine['cores']} cores, {machine['ram_gb']} GB, {machine['system']}, Python {machine['python']}"
        commits.setdefault(f"{row['date']}: {where}", {})[row["commit"] or "unknown"] = None
    return "\n".join(f"Measured {where}; commit {', '.join(some)}." for where, some in commits.items())


def _block(rows: Sequence[_Row], graph: str) -> str:
    """The table of one graph."""
    here = [row for row in rows if row["graph"] == graph]
    told = next((row["ours"] for row in here if "nodes" in row.get("ours", {})), {"nodes": 0, "edges": 0})
    name = "WordNet (WN18RR)" if graph == "wn18rr" else graph
    lines = [f"**{name}: {told['nodes']:,} nodes, {told['edges']:,} edges**", ""]
    walks = ("within 1", "within 2", "within 3", "path")  # only in earlier rows: stores no longer walk
    known = {measure for row in here for measure in row.get("ours", {})}
    measures = [each for each in _MEASURES if each in known or each not in walks]
    names = " | ".join(_MEASURES[measure] for measure in measures)
    lines += [f"| store | {names} | memory, MB |", "|---|" + "---:|" * (len(measures) + 1)]
    for row in here:
        lines.append(
            f"| {row['store']} | {' | '.join(_cell(row, measure) for measure in measures)} | {_memory(row)} |"
        )
    notes = [f"{row['store']}: {trouble}" for row in here for trouble in _troubles(row)]
    missing = dict.fromkeys(
        row["store"] for row in rows if row["store"] not in {each["store"] for each in here}
    )
    notes += [f"Not measured: {', '.join(missing)}."] if missing else []
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _cell(row: _Row, measure: str) -> str:
    """A figure and its ratio to the raw driver's, or why there is none."""
    ours, raw = row.get("ours", {}), _figure(row.get("raw", {}), measure)
    value = _figure(ours, measure)
    if value is None:
        return f"over {row['limit_s']:g} s" if "over" in ours and measure not in ours else "failed"
    few = "*" if ours[measure].get("n", _FEW) < _FEW else ""
    return f"{short(value)}{few}" + (f" ({short(value / raw)}×)" if raw else "")


def _figure(part: _Row, measure: str) -> float | None:
    """A measure's median in milliseconds, or its seconds; None where it was not measured."""
    found = part.get(measure, {})
    value: float | None = found.get("ms", found.get("s"))
    return value


def _memory(row: _Row) -> str:
    """The process's memory and that of its worker or server."""
    ours = row.get("ours", {})
    told = ours.get("memory", {})
    others = ours.get("server_mb") or told.get("others_mb")
    own = f"{told['process_mb']:.0f}" if "process_mb" in told else "?"
    return f"{own} + {others:.0f}" if others else own


def _troubles(row: _Row) -> list[str]:
    """What went wrong, in words."""
    found = [row["error"]] if "error" in row else []
    for who, name in (("ours", "the store"), ("raw", "the raw driver")):
        part = row.get(who, {})
        found += [f"{name} was over {row['limit_s']:g} s while at {part['over']}"] if "over" in part else []
        found += [f"{name} broke at {part['error']}"] if "error" in part else []
        failed = {
            measure: each["error"]
            for measure, each in part.items()
            if isinstance(each, Mapping) and "error" in each
        }
        found += [f"{name}, {measure}: {why}" for measure, why in failed.items()]
    return found


def short(number: float) -> str:
    """A number with two or three digits that count."""
    return (
        f"{number:,.0f}"
        if number >= 100
        else f"{number:.3g}"
        if number >= 10
        else f"{number:.2g}"
        if number >= 0.001
        else "<0.001"
    )


def _place(row: _Row) -> int:
    return MEASURED_STORES.index(str(row["store"]))


def _edges(rows: Sequence[_Row], graph: str) -> int:
    return max(int(row.get("ours", {}).get("edges", 0)) for row in rows if row["graph"] == graph)


# --- bars ---


def store_bars(rows: Sequence[_Row]) -> str:
    """What was aimed at, which stores reached it and which did not; stores that nothing was asked of are
    reported.
    """
    lines = ["| aim | reached | not reached | reported |", "|---|---|---|---|"]
    for kinds, most in _LOAD.items():
        found = {store: _loaded(row) for store, row in _by_store(rows, "wn18rr").items() if store in kinds}
        lines.append(
            _bar(f"WordNet loaded, and its first statement run, in under {most:g} s", found, most, "s")
        )
    for measure, most in _HOPS.items():
        found = {
            store: _figure(row.get("ours", {}), measure) for store, row in _by_store(rows, "2300").items()
        }
        lines.append(
            _bar(
                f"1,000 nodes: {_MEASURES[measure].removesuffix(', ms')} in under {most:g} ms",
                found,
                most,
                "ms",
            )
        )
    for measure, name in (
        ("write", "a statement that writes a triple"),
        ("apply", "a triple applied as a diff"),
    ):
        aim = f"{name} takes under {_TIMES:g} times as long at 100k edges as at 1k"
        lines.append(_bar(aim, _growth(rows, measure), _TIMES, "times", asked=_FOLLOWS))
    return "\n".join(lines)


def _loaded(row: _Row) -> float | None:
    """The seconds of a load, with those of the first statement, at which an engine in the sandbox is given
    the graph.
    """
    load, first = (_figure(row.get("ours", {}), measure) for measure in ("load", "first"))
    return None if load is None or first is None else load + first


def _growth(rows: Sequence[_Row], measure: str) -> dict[str, float | None]:
    """How many times as long something takes each store in a graph of 100,000 edges as in one of 1,000."""
    small, large = _by_store(rows, "1k"), _by_store(rows, "100k")
    pairs = {
        store: [_figure(part[store].get("ours", {}), measure) for part in (small, large)]
        for store in small
        if store in large
    }
    return {store: after / before if before and after else None for store, (before, after) in pairs.items()}


def _by_store(rows: Sequence[_Row], graph: str) -> dict[str, _Row]:
    return {row["store"]: row for row in sorted(rows, key=_place) if row["graph"] == graph}


def _bar(
    aim: str,
    found: Mapping[str, float | None],
    most: float,
    unit: str,
    *,
    asked: Collection[str] = MEASURED_STORES,
) -> str:
    cells: dict[str, list[str]] = {"reached": [], "not reached": [], "reported": []}
    for store, value in found.items():
        verdict = (
            "reported"
            if store not in asked
            else "reached"
            if value is not None and value < most
            else "not reached"
        )
        cells[verdict].append(f"{store} {'none' if value is None else f'{short(value)} {unit}'}")
    return f"| {aim} | {' | '.join(', '.join(cell) for cell in cells.values())} |"
