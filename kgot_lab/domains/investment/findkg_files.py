"""The files of FinDKG as it is published: numbered entities with types, numbered relations, weeks, and rows
of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from kgot_lab.domains.investment.findkg import FinRow
from kgot_lab.errors import BadInput
from kgot_lab.io.text_files import read_regular, utf8_text

# In the order of the numbers in its entity2id.txt, where none of them is named: told by the entities that
# have each.
_TYPE_NUMBERS = (
    "PERSON", "GPE", "COMP", "EVENT", "FIN INST", "ORG", "ORG/GOV", "ORG/REG", "CONCEPT", "ECON IND", "PRODUCT", "SECTOR",
)  # fmt: skip
_FIRST_WEEK = date(
    2018, 1, 7
)  # of the published data, whose smaller folder has no time2id.txt and numbers weeks as the larger one


def read_findkg(folder: Path | str, split: str = "train") -> tuple[FinRow, ...]:
    """The rows of a split (train, valid, test) of a folder in FinDKG's form: entity2id.txt, relation2id.txt,
    the split, and time2id.txt.

    A week is known by the day that time2id.txt gives; without that file weeks are counted from 7 January
    2018, as in the published data. Raises BadInput for another file that is not there, and for a line that is
    none.
    """
    folder = Path(folder)
    entities = {cells[1]: (cells[0], _type(cells)) for cells in _lines(folder / "entity2id.txt", "\t", 4)}
    relations = {cells[1]: cells[0] for cells in _lines(folder / "relation2id.txt", "\t", 2)}
    weeks = folder / "time2id.txt"
    days = {cells[0]: cells[1] for cells in _lines(weeks, ",", 2)} if weeks.exists() else None
    rows = []
    for head, relation, tail, week, *_ in _lines(folder / f"{split}.txt", "\t", 4):
        try:
            day = days[week] if days else (_FIRST_WEEK + timedelta(weeks=int(week))).isoformat()
            rows.append(FinRow(*entities[head], relations[relation], *entities[tail], day))
        except (KeyError, ValueError, OverflowError) as error:
            raise BadInput(
                f"a row of {split}.txt has {error.args[0]!r:.60}, which its folder does not explain"
            ) from None
    return tuple(rows)


def _lines(path: Path, sign: str, least: int) -> Iterator[list[str]]:
    try:
        text = utf8_text(read_regular(path), path)
    except OSError as error:
        raise BadInput(
            f"FinDKG's {path.name} cannot be read in {path.parent}: {error.strerror or error}"
        ) from None
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.split(sign)
        if len(cells) < least:
            raise BadInput(f"line {number} of {path.name} has {len(cells)} cells, and needs {least}")
        yield cells


def _type(cells: list[str]) -> str:
    if not cells[3].isdecimal() or int(cells[3]) >= len(_TYPE_NUMBERS):
        raise BadInput(
            f"an entity of FinDKG has a type from 0 to {len(_TYPE_NUMBERS) - 1}, not {cells[3]!r:.40}"
        )
    return _TYPE_NUMBERS[int(cells[3])]
