"""The hot context of a character: who it is, what goes on around it and what it knows of the matter, in the
time that there is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kgot_lab.domains.npc.layers.memory import NpcMemory
from kgot_lab.domains.npc.layers.models import ContextResult, LogEntry
from kgot_lab.domains.npc.models import Entity, IdentitySnapshot
from kgot_lab.domains.npc.visibility import by_name
from kgot_lab.errors import require, require_amount


@dataclass(frozen=True)
class HotBudget:
    """How many seconds the assembly should take, and after how many it ends with what is ready."""

    target: float = 0.05
    limit: float = 0.15

    def __post_init__(self) -> None:
        require_amount(self.target, "target", some=True)
        require_amount(self.limit, "limit", some=True)


DEFAULT_BUDGET = HotBudget()
ASSEMBLING = "hot context"  # the name of a thread that does


@dataclass(frozen=True)
class NpcScene:
    """Where someone is, who else it sees to be there, and what it heard last, in its order."""

    places: tuple[Entity, ...]
    present: tuple[Entity, ...]
    heard: tuple[LogEntry, ...]


@dataclass(frozen=True)
class HotContext:
    """What was ready in time, None for what was not; and how many seconds it took, of how many it should
    have.
    """

    identity: IdentitySnapshot | None
    scene: NpcScene | None
    passages: tuple[ContextResult, ...] | None
    seconds: float
    budget: HotBudget

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts that were not ready at the limit."""
        return tuple(part for part in ("identity", "scene", "passages") if getattr(self, part) is None)

    @property
    def on_target(self) -> bool:
        """Whether all is there, and took no longer than it should."""
        return not self.missing and self.seconds <= self.budget.target


def hot_context(
    memory: NpcMemory,
    query: str,
    *,
    session_id: str = "",
    budget: HotBudget = DEFAULT_BUDGET,
    wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    clock: Callable[[], float] = time.perf_counter,
) -> HotContext:
    """Put together who someone is, the scene, with what it heard in a session or in all, and the texts near a
    question, in this order.

    At the limit of the budget what is ready is given. The part that was being read is read to its end, its
    result is dropped, and parts after it are not begun; until then the storage has that to do first.
    `wait(done, seconds)` waits for all of it. Raises what the parts raise before the limit.
    """
    require(memory, NpcMemory, "a hot context is of an NpcMemory, as WorldLayers(…).memory(npc_id) gives one")
    require(budget, HotBudget, "a budget is a HotBudget(target, limit)")
    parts: dict[str, Callable[[], Any]] = {
        "identity": memory.sight.identity_snapshot,
        "scene": lambda: _scene(memory, session_id),
        "passages": lambda: memory.query_with_context(query),
    }
    ready: dict[str, Any] = {}
    failed: list[BaseException] = []
    done, over = threading.Event(), threading.Event()

    def assemble() -> None:
        try:
            for name, part in parts.items():
                if not over.is_set():
                    ready[name] = part()
        except BaseException as error:
            failed.append(error)
        done.set()

    began = clock()
    threading.Thread(target=assemble, name=ASSEMBLING, daemon=True).start()
    wait(done, budget.limit)
    over.set()
    given, seconds = dict(ready), clock() - began
    if failed:
        raise failed[0]
    return HotContext(given.get("identity"), given.get("scene"), given.get("passages"), seconds, budget)


def _scene(memory: NpcMemory, session_id: str) -> NpcScene:
    seen = memory.sight.visible_subgraph()
    located = [(each.source_id, each.target_id) for each in seen.relationships if each.type == "LOCATED_AT"]
    places = {place for who, place in located if who == memory.npc_id}
    present = {who for who, place in located if place in places} - {memory.npc_id}
    here, others = ([each for each in seen.entities if each.id in ids] for ids in (places, present))
    return NpcScene(by_name(here), by_name(others), memory.log.last(session_id=session_id))
