"""Rows of the layers' tables as entries and chunks."""

from __future__ import annotations

from typing import Any

from kgot_lab.domains.npc.layers.models import Audience, Chunk, LogEntry
from kgot_lab.domains.npc.statements import WorldRow, json_of, unchecked, utc_time
from kgot_lab.stores.sql import json_text


def entry_of(row: WorldRow) -> LogEntry:
    """An entry from its row."""
    _, session, speaker, text, audience, at = row
    told = {"session_id": session, "text": text, "audience": _audience(audience), "at": utc_time(at)}
    return unchecked(LogEntry, **told, speaker_id=speaker and str(speaker))


def chunk_of(row: WorldRow) -> Chunk:
    """A chunk from what its row begins with."""
    id, entity, text, audience = row[:4]
    return unchecked(Chunk, entity_id=str(entity), text=text, audience=_audience(audience), id=str(id))


def audience_text(audience: Audience) -> str | None:
    """An audience as its column holds it."""
    return None if audience is None else json_text(list(audience), "an audience")


def _audience(value: Any) -> Audience:
    return None if value is None else tuple(json_of(value))
