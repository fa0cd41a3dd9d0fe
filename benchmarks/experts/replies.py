"""What a model replied to a question, with its graph or without, as it lies on file: a line of JSON each, on
the disk once it is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from kgot_lab.errors import BadInput
from kgot_lab.types import Json

Arm = Literal["graph", "plain"]
ARMS: tuple[Arm, ...] = ("graph", "plain")
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class KeptReply:
    """A reply of one arm, with the ids of the nodes it cites and of what it was told.

    `text` is as the model's words were told on, false citations marked. `setting` is a hash of the expert,
    its graph and playbooks, `prompt` that of all it was asked with; seconds are wall time of the model.
    """

    id: str
    arm: Arm
    question: str
    model: str
    text: str
    cited: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    told: tuple[str, ...] = ()  # nodes that were found, ends of edges, limitations
    limitations: tuple[str, ...] = ()
    intent: str = ""
    playbooks: tuple[str, ...] = ()
    setting: str = ""
    prompt: str = ""
    tokens: tuple[int, int] = (0, 0)
    seconds: float = 0.0


def kept_replies(path: Path) -> list[KeptReply]:
    """The replies on file, none where there is no file; a last line that a kill cut off is left out. Raises
    BadInput for another file.
    """
    return whole_lines(path, _reply)


def keep_reply(path: Path, reply: KeptReply) -> None:
    """Add a reply to a file, which is made if it is not there."""
    add_line(path, asdict(reply))


def whole_lines(path: Path, made: Callable[[Any], _Row]) -> list[_Row]:
    """What is made of each line of a file of JSON; none where there is no file, and none of a last line that
    was not written to its end.

    Raises BadInput where a line is not what it is to be.
    """
    if not path.exists():
        return []
    try:
        return [made(json.loads(line)) for line in path.read_bytes().split(b"\n")[:-1]]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(
            f"{path.name} does not hold replies ({error}): restore a copy, or put it away"
        ) from None


def add_line(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line of JSON to a file, which is made if it is not there, behind its last whole line; it is on
    the disk then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        whole = path.read_bytes()
        if whole and not whole.endswith(b"\n"):
            file.truncate(whole.rfind(b"\n") + 1)
        file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _reply(row: Mapping[str, Json]) -> KeptReply:
    if not isinstance(row, Mapping):
        raise TypeError("a line is no object")
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    reply = KeptReply(**{**row, **lists})
    if reply.arm not in ARMS:
        raise ValueError(f"no arm is called {reply.arm!r}")
    return reply
