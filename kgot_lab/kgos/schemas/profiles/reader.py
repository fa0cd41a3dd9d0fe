"""The graph in an SQLite file of another program, whatever its tables are called, and what in the file could
not be read.
"""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import BadInput, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.io.sqlite_snapshot import private_copy
from kgot_lab.kgos.schemas.foreign_files import graph_of_tables, table_columns
from kgot_lab.kgos.schemas.profiles import Profile, profile_of
from kgot_lab.kgos.schemas.rules import RuleReport, Unread, check_rules
from kgot_lab.kgos.schemas.vocabularies import VOCABULARIES
from kgot_lab.text.counted import counted

_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class ForeignGraph:
    """The graph in a file of another program, the profile of its tables, and the rows that are not in the
    graph as they stand.
    """

    graph: PropertyGraph
    profile: Profile
    unread: tuple[Unread, ...] = ()

    @property
    def vocabulary(self) -> Vocabulary:
        """The types that a file of this profile is expected to have."""
        return VOCABULARIES[self.profile.name]

    def check(self, vocabulary: Vocabulary | None = None) -> RuleReport:
        """What breaks the twelve rules, rows of the file included."""
        return check_rules(self.graph, vocabulary or self.vocabulary, unread=self.unread)

    def __repr__(self) -> str:
        told = [f"<{self.profile}: {self.graph}>"]
        if self.unread:
            told.append(f"{counted(len(self.unread), 'row')} of the file not in the graph as they stand:")
            told += [f"  {each}" for each in self.unread[:_SHOWN]]
            told += [f"  … {len(self.unread) - _SHOWN:,} more"] * (len(self.unread) > _SHOWN)
        return "\n".join(told)


def read_foreign(path: Path | str, *, profile: str = "") -> ForeignGraph:
    """The graph in an SQLite file, with the profile that its tables have, or the one that is asked for.

    The file is copied and the copy is read: nothing is written beside the file or in it, and what a log
    beside it holds is read too. Raises BadInput for what is no SQLite file and, listing what was probed, for
    one without a graph; UnknownName for a profile that there is not; StoreUnavailable for a file that cannot
    be copied.
    """
    require(path, (str, Path), "what is read is the path of an SQLite file")
    path = Path(path)
    with private_copy(path) as copied:
        try:
            with closing(sqlite3.connect(copied.path, isolation_level=None)) as connection:
                connection.execute("PRAGMA trusted_schema = OFF")  # what the file's own definitions may call
                found = profile_of(connection, path, profile)
                with _uncollected():
                    graph, unread = graph_of_tables(
                        found, table_columns(connection, found.nodes), table_columns(connection, found.edges)
                    )
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{path}: SQLite cannot read it: {error}; give a whole SQLite file") from None
    return ForeignGraph(graph, found, unread)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nothing that is made meanwhile lies in a circle: looking for circles among 284,178 dictionaries takes a
    quarter of the time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
