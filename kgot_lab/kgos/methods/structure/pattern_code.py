"""From patterns to the code that is built after them, and back (KG-OS, the pattern mapper)."""

from __future__ import annotations

from kgot_lab.errors import UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import TableFound
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.counted import counted

PATTERNS = ("pattern", "design_pattern", "architectural_pattern", "anti_pattern")
_EDGE = "pattern_instance_of"


def pattern_to_code(graph: PropertyGraph, pattern: str = "", *, source_file: str = "") -> TableFound:
    """Where each pattern is followed, or one of them: the code, its file and line, and what shows it.

    With `source_file` only what is in files whose path ends so, or in a folder of this name. Raises
    UnknownName for a strange pattern.
    """
    index = index_of(graph)
    patterns = sorted(
        {row for label in PATTERNS for row in index.of_label.get(label, ())}, key=lambda row: graph.ids[row]
    )
    if pattern:
        named = [
            row
            for row in patterns
            if pattern.casefold() in (graph.ids[row].casefold(), index.names[row].casefold())
        ]
        if not named:
            raise UnknownName("pattern", pattern, [graph.ids[row] for row in patterns])
        patterns = named
    rows, followed = [], set()
    for row in patterns:
        for edge in graph.neighbours(graph.ids[row], "in", (_EDGE,)):
            at = graph.row(edge.source)
            held = graph.node_properties[at]
            file = str(held.get("file", ""))
            if source_file and not (
                file.endswith(source_file) or file.startswith(source_file.rstrip("/") + "/")
            ):
                continue
            followed.add(row)
            place = f"{file}:{held.get('line', '')}".strip(":")
            rows.append(
                (
                    graph.ids[row],
                    index.names[row],
                    edge.source,
                    index.kinds[at],
                    place,
                    str(edge.properties.get("why", "")),
                )
            )
    rows.sort(key=lambda each: (each[0], each[4], each[2]))
    why = [f"{len(followed)} of {counted(len(patterns), 'pattern')} are followed in the code"]
    if missing := [graph.ids[row] for row in patterns if row not in followed]:
        why.append(
            f"nothing follows {', '.join(missing[:10])}"
            + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        )
    if not patterns:
        why = ["the graph holds no pattern"]
    about = tuple(dict.fromkeys(each for row in rows for each in (row[0], row[2])))
    return TableFound(
        f"code after patterns: {counted(len(rows), 'place')}",
        ("pattern", "name", "code", "type", "place", "why"),
        tuple(rows),
        tuple(why),
        about,
    )
