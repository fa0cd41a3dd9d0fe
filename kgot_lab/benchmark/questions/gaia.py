"""GAIA, fetched with the user's own token and kept in memory: its owners ask that it is not passed on, so
none of it is stored here.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.sets import Hub
from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.types import Json

_DATASET, _CONFIG, _SPLIT = "gaia-benchmark/GAIA", "2023_all", "validation"


def gaia(hub: Hub, files: Path) -> QuestionSet:
    """The validation questions of GAIA (Mialon et al. 2023); attached files are put into `files`, a folder
    for the time of the run.

    Raises BadInput where the hub does not give them, or gives rows of another form.
    """
    try:
        questions = [_question(row, hub, files) for row in hub.all_rows(_DATASET, _CONFIG, _SPLIT)]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"the rows of {_DATASET} have another form than they had: {type(error).__name__} at {error}"
        ) from None
    return QuestionSet([], questions, "gaia", "gaia", private=True)


def _question(row: Json, hub: Hub, files: Path) -> Question:
    about = row.get("Annotator Metadata") or {}
    attached = (_attached(row, hub, files),) if row.get("file_name") else ()
    steps = re.search(r"\d+", str(about.get("Number of steps", "")))
    return Question(
        id=str(row["task_id"]), text=row["Question"], answer=str(row["Final answer"]), level=f"level {row['Level']}", attachments=attached,
        steps=int(steps[0]) if steps else None, tools=_tools(str(about.get("Tools", ""))),
    )  # fmt: skip


def _attached(row: Json, hub: Hub, files: Path) -> Path:
    name = PurePosixPath(str(row["file_name"])).name  # of a path that leads elsewhere the name is left
    path = files / name
    if not path.exists():
        write_whole(
            path, hub.file(_DATASET, str(row.get("file_path") or f"2023/{_SPLIT}/{name}")), "the file"
        )
    return path


def _tools(listed: str) -> tuple[str, ...]:
    """The tools that a person listed, a line each, with or without numbers; "None" is none."""
    lines = (re.sub(r"^\s*(\d+[.)]|[-*])\s*", "", line).strip() for line in listed.splitlines())
    return tuple(line for line in lines if line and line.lower().rstrip(".") != "none")
