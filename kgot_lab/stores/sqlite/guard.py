"""Which actions a statement may take in an SQLite file."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from kgot_lab.stores.sqlite.damage import FORGETTING, SUMMING
from kgot_lab.stores.sqlite.tables import RECORDERS

_TRIGGERS = {"words_come", "words_go", "words_change", "fact_comes", *RECORDERS, *SUMMING, *FORGETTING}
# where the full-text index keeps itself
_SHADOWS = {f"words_{part}" for part in ("data", "idx", "content", "docsize", "config")}
_READABLE = {
    "nodes",
    "edges",
    "facts",
    "words",
    "json_each",
    "json_tree",
    "sqlite_master",
    "recording",
    "waiting",
    "sums",
} | _SHADOWS
_FUNCTIONS = set(
    # Not here, since no time limit would stop them: instr, replace, trim and json_patch, whose time is length
    # times length.
    "abs avg bm25 ceil ceiling char checksum coalesce count cume_dist date datetime dense_rank exp first_value floor glob group_concat hex"
    " highlight ifnull iif json json_array json_array_length json_extract json_group_array json_group_object json_insert json_object"
    " json_quote json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood likely ln"
    " log log10 log2 lower match max merged min mod nth_value ntile nullif percent_rank pow power quote rank round row_number sign"
    " snippet sqrt strftime substr substring sum time total trunc typeof unicode unixepoch unlikely upper -> ->>".split()
)


@dataclass
class Guard:
    """Says which actions a statement may take; SQLite asks while it prepares one. `refused` is the last that
    it may not.
    """

    writes: bool
    awake: bool = True
    refused: str = ""

    def __call__(
        self, action: int, one: str | None, two: str | None, database: str | None, source: str | None
    ) -> int:
        if (
            not self.awake
            or _may(action, one or "", two or "")
            or (self.writes and _may_write(action, one or "", two, source))
        ):
            return sqlite3.SQLITE_OK
        self.refused = " ".join(filter(None, (_ACTIONS.get(action, f"action {action}"), one, two)))
        return sqlite3.SQLITE_DENY


def _may(action: int, one: str, two: str) -> bool:
    match action:
        case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
            return True
        case sqlite3.SQLITE_READ:
            return one in _READABLE or not two  # without a column it may be the name of a CTE
        case sqlite3.SQLITE_FUNCTION:
            return two.lower() in _FUNCTIONS
        case sqlite3.SQLITE_PRAGMA:
            return (one, two) == ("data_version", "")  # the full-text index asks for it
        case sqlite3.SQLITE_UPDATE:
            # asked when a virtual table is first used; to statements SQLite itself refuses it
            return one == "sqlite_master"
    return False


def _may_write(action: int, table: str, column: str | None, source: str | None) -> bool:
    match action:
        case sqlite3.SQLITE_INSERT:
            return source in _TRIGGERS or table in ("nodes", "edges", "facts")
        case sqlite3.SQLITE_UPDATE:
            return source in _TRIGGERS or (table in ("nodes", "edges") and column != "number")
        case sqlite3.SQLITE_DELETE:
            return source in _TRIGGERS or table in ("nodes", "edges")
    return False


_ACTIONS = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in "ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_TABLE CREATE_TRIGGER CREATE_VIEW CREATE_VTABLE DELETE"
    " DETACH DROP_INDEX DROP_TABLE DROP_TRIGGER DROP_VIEW FUNCTION INSERT PRAGMA READ REINDEX SAVEPOINT TRANSACTION UPDATE".split()
}
