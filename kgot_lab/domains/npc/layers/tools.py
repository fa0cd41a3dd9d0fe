"""The tools by which an assistant reads what a character knows: entities, log and context."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.domains.npc.layers.memory import NpcMemory, hot_context
from kgot_lab.domains.npc.layers.models import LogEntry
from kgot_lab.domains.npc.visibility import query_entities, tool_failures
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import single_line
from kgot_lab.tools.tool import Result, TextTool

_LIMIT = 10  # seconds: an assistant waits longer than a game


def memory_tools(memory: NpcMemory) -> tuple[TextTool, ...]:
    """Create the tools `memory.query_entities`, `memory.log` and `memory.context`, which only read.

    What is hidden does not exist for them.
    """

    @tool_failures("memory.log")
    def log(words: str = "", session: str = "") -> Result:
        found = memory.log.search(words, session_id=session) if words else memory.log.last(session_id=session)
        if not found:
            raise BadInput("nothing that was heard fits; ask for less, or in other words")
        names = {entity.id: entity.name for entity in memory.sight.visible_subgraph().entities}
        return Result("\n".join(_format_entry(entry, names) for entry in found))

    @tool_failures("memory.context")
    def context(matter: str, session: str = "") -> Result:
        found = hot_context(memory, matter, session_id=session, limit=_LIMIT)
        late = (f"{part} was not ready in {_LIMIT} s" for part in found.missing)
        return Result("\n".join([found.text, *late]))

    session = {"session": "the name of a session: only what was heard in it"}
    about_log = "Tells what was heard last, a line each, or what was heard with some words."
    about_context = "Tells who one is, where, with whom, what was heard last, and what is known of a matter."
    return (
        query_entities(memory.sight),
        TextTool("memory.log", about_log, {}, log, may={"words": "words that are looked for", **session}),
        TextTool("memory.context", about_context, {"matter": "what it is about"}, context, may=session),
    )


def _format_entry(entry: LogEntry, names: Mapping[str, str]) -> str:
    speaker = names.get(entry.speaker_id, "somebody") if entry.speaker_id else "game master"
    return single_line(f"{entry.at:%Y-%m-%d %H:%M} {speaker}: {entry.text} [{entry.session_id}]")
