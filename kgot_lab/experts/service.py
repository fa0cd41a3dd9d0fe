"""The service of experts that all protocols share.

It checks permissions and ownership. Two experts are shipped with the package.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.chat.consulting import Consultants, check_remote
from kgot_lab.experts.chat.prompting import Playbook, authored_playbooks
from kgot_lab.experts.chat.turn import ExpertTurn, TurnServices, chat_history
from kgot_lab.experts.expert import Expert, ExpertConfig, changed_config, expert_config, merge_patch
from kgot_lab.experts.graph_folder import GraphFolder, read_graph_in_worker
from kgot_lab.experts.repository import (
    AlreadyExists,
    ChatConversation,
    ChatMessage,
    ExpertTables,
    NotFound,
    StoredTrial,
)
from kgot_lab.experts.trials.verdict import TrialPlan, begin_trial, chosen_variant
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import BY_NAME
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import LLM, Json

LOCAL_OWNER = "local"
# with the name of another instance: the owner of its questions; no tenant's name has a colon
PEER_OWNER = "peer:"
_LONGEST_QUESTION = 20_000  # characters
_MOST_HISTORY = 200  # messages


@dataclass
class ExpertModels:
    """The models that experts may use, by name, each opened at first use, with a default."""

    makers: Mapping[str, Callable[[], LLM]]
    usual: str
    _opened: dict[str, LLM] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def named(self, name: str | None = None) -> LLM:
        """Return a model by its name, opened at first use.

        Raises UnknownName if there is none, and what opening it raises.
        """
        chosen = name or self.usual
        if chosen not in self.makers:
            raise UnknownName("model", chosen, self.makers)
        with self._lock:
            if chosen not in self._opened:
                self._opened[chosen] = self.makers[chosen]()
            return self._opened[chosen]


@dataclass
class ExpertService:
    """Experts, their graphs, their models and their conversations, for one server."""

    tables: ExpertTables
    graphs: GraphFolder
    models: ExpertModels
    playbooks: Mapping[str, Playbook] = field(default_factory=authored_playbooks)
    embedder: Embedder | None = None
    consultants: Consultants | None = None
    market: Path | str | None = None  # marketplace to import from: a folder or an address
    forgetting: Callable[[str], object] | None = None  # called with each conversation that is deleted

    # --- experts ---

    def experts(self, owner: str) -> list[dict[str, Json]]:
        """List all experts with the owner's number of conversations with each, and the time of the last."""
        active = self.tables.activity(owner)
        return [shown_expert(each, active.get(each.id)) for each in self.tables.experts()]

    def experts_page(
        self, owner: str, limit: int, after: str | None = None
    ) -> tuple[list[dict[str, Json]], bool]:
        """Return a page of experts in the form of `experts`, and whether there are more.

        The page begins behind the expert with the id `after`. Raises BadInput if there never was one.
        """
        found, more = self.tables.experts_after(after, limit)
        active = self.tables.activity(owner, [each.id for each in found])
        return [shown_expert(each, active.get(each.id)) for each in found], more

    def expert(self, id: str) -> Expert:
        """Return an expert by its id.

        Raises NotFound if there is none.
        """
        return self.tables.expert(id)

    def create(self, told: object, *, id: str = "") -> Expert:
        """Create an expert from JSON.

        Raises BadInput if the JSON is invalid, and UnknownName if a graph or a model does not exist here.
        """
        return self.add(expert_config(told), id=id)

    def add(self, config: ExpertConfig, *, id: str = "") -> Expert:
        """Create an expert from a configuration.

        Raises UnknownName if a graph, a model, a playbook or a peer does not exist here.
        """
        return self.tables.add_expert(self._checked(config), id=id)

    def update(self, id: str, change: object) -> Expert:
        """Apply a partial change to an expert (C-E2).

        Raises NotFound if there is no such expert, and BadInput or UnknownName if the change is invalid.
        """
        return self.tables.change_expert(id, lambda before: self._checked(changed_config(before, change)))

    def duplicate(self, id: str, new_name: str, overrides: object = None) -> Expert:
        """Copy an expert under another name, with some fields changed."""
        if overrides is not None and not isinstance(overrides, Mapping):
            raise BadInput("overrides of a copy are a JSON object with the fields that differ")
        change = merge_patch(dict(overrides or {}), {"name": new_name})
        return self.tables.add_expert(
            self._checked(changed_config(self.expert(id).config, change)), copy_of=id
        )

    def delete(self, id: str, *, conversations: bool = False) -> int:
        """Delete an expert, and return how many conversations were deleted with it.

        Raises NotFound if there is no such expert.
        """
        gone = self.tables.remove_expert(id, conversations=conversations)
        if self.forgetting is not None:
            for each in gone:
                self.forgetting(each)
        return len(gone)

    def begin_trial(self, id: str, a: object, b: object, plan: TrialPlan) -> StoredTrial:
        """Start a trial of two changes of an expert.

        Raises NotFound, BadInput, and UnknownName for what does not exist here.
        """
        return begin_trial(self.tables, id, a, b, plan, self._checked)

    def _checked(self, config: ExpertConfig) -> ExpertConfig:
        """Check that the graphs, models and playbooks of a configuration exist here, and return it."""
        names = self.graphs.names()
        for name in config.graphs:
            if name not in names:
                raise UnknownName("graph", name, names)
        for model in config.models.values():
            if model not in self.models.makers:
                raise UnknownName("model", model, self.models.makers)
        for skill in config.playbook_skills:
            if skill not in self.playbooks:
                raise UnknownName("playbook", skill, self.playbooks)
        check_remote(config.delegates_to, self.consultants)
        held = {
            name
            for graph in config.graphs
            for known in self.graphs.graph(graph).node_properties
            for name in known
        }
        goals = (name for goal in config.custom_goal_mappings.values() for name in goal.dimension_boosts)
        for name in (*config.dimension_filters, *goals):
            if name not in BY_NAME and name not in held:
                raise UnknownName("dimension", name, BY_NAME)
        self.graphs.expert_graphs(config)  # raises if edges between graphs are invalid
        return config

    # --- chat ---

    def ask(
        self,
        expert_id: str,
        owner: str,
        question: str,
        *,
        conversation_id: str | None = None,
        history: Iterable[tuple[str, str]] = (),
        model: str | None = None,
        wishes: str = "",
    ) -> ExpertTurn:
        """Store a question in its conversation, and return the turn that answers it.

        With `conversation_id`, the stored messages count, and `history` is ignored (C-E4). Otherwise the
        conversation with exactly this history is continued, or a new one begins. `wishes` are the client's
        instructions for the style of the answer. Raises NotFound, BadInput and UnknownName.
        """
        asked = _sound_text(question, "the question")
        expert = self.tables.expert(expert_id)
        known = self.graphs.expert_graphs(expert.config)
        llm = self.models.named(model or expert.models.get("chat"))
        said = _history(history)
        with self.tables.storage.changing():
            if conversation_id is not None:
                conversation = self.tables.conversation(conversation_id, expert_id, owner).id
            else:
                found = self.tables.continued(expert_id, owner, said)
                conversation = found or self.tables.begin(expert_id, owner, asked, said)
            before = chat_history(self.tables.messages(conversation))
            asked_as = self.tables.say(conversation, "user", asked).id
            trial = self.tables.running_trial(expert_id)
        choice = None
        if trial is not None:
            with suppress(
                BadInput
            ):  # the expert was changed so that the variant no longer fits: its own configuration answers, for neither variant
                variant = chosen_variant(expert.config, trial, conversation)
                known = self.graphs.expert_graphs(variant.config)
                llm = self.models.named(model or variant.config.models.get("chat"))
                choice = variant
        # a peer's question is not delegated further, since two instances could ask each other forever
        asked_by_peer = owner.startswith(PEER_OWNER)
        services = TurnServices(
            self.tables, self.playbooks, self.embedder, None if asked_by_peer else self.consultants
        )
        return ExpertTurn(
            services,
            expert,
            known,
            llm,
            owner,
            conversation,
            asked,
            before,
            wishes=wishes[:_LONGEST_QUESTION],
            choice=choice,
            asked_as=asked_as,
        )

    def conversations(
        self, expert: str, owner: str, *, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with an expert, the latest first, and their total number.

        Conversations that remain after the expert was deleted still belong to their owner. Raises NotFound if
        there is no such expert and no such conversation.
        """
        found, total = self.tables.conversations(expert, owner, limit=limit, offset=offset)
        if not total:
            self.tables.expert(expert)
        return found, total

    def conversation(
        self, id: str, expert: str, owner: str
    ) -> tuple[ChatConversation, tuple[ChatMessage, ...]]:
        """Return a conversation with all its messages.

        Raises NotFound if there is none.
        """
        with self.tables.storage.reading():
            return self.tables.conversation(id, expert, owner), self.tables.messages(id)

    def remove_conversation(self, id: str, expert: str, owner: str) -> None:
        """Remove a conversation, and what was recorded of it elsewhere.

        Raises NotFound if there is none.
        """
        self.tables.remove_conversation(id, expert, owner)
        if self.forgetting is not None:
            self.forgetting(id)


def shown_expert(expert: Expert, active: tuple[int, object] | None = None) -> dict[str, Json]:
    """Format an expert as an entry of a list."""
    count, last = active or (0, None)
    return {
        "id": expert.id,
        "name": expert.name,
        "description": expert.description,
        "kg_db_id": expert.graphs[0],
        "kg_db_ids": list(expert.graphs),
        "persona": {"name": expert.persona.name, "style": expert.persona.style},
        "created_at": expert.created_at,
        "conversation_count": count,
        "last_active": last,
    }


def _history(history: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Validate the history that a caller sends. The role model means assistant (C-E4)."""
    said = [
        ({"model": "assistant"}.get(role, role), _sound_text(text, "a message of the history", blank=True))
        for role, text in history
    ]
    if len(said) > _MOST_HISTORY:
        raise BadInput(f"a history has {_MOST_HISTORY} messages at most: leave out the first ones")
    if odd := [role for role, _ in said if role not in ("user", "assistant")]:
        raise BadInput(
            f"the role of a message is user or assistant (or model, which means the same), not {odd[0][:20]!r}"
        )
    return said


def _sound_text(text: str, what: str, *, blank: bool = False) -> str:
    if len(text) > _LONGEST_QUESTION:
        raise BadInput(f"{what} has {len(text):,} characters, and {_LONGEST_QUESTION:,} are the most")
    if not blank and not text.strip():
        raise BadInput(f"{what} is blank; ask something")
    if any(letter == "\x00" or 0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        raise BadInput(f"{what} has a letter that cannot be kept: a null, or half of a surrogate pair")
    return text


# The two shipped experts: on the curated graph, and on the code and documents of this package.

_FOLDER = Path(__file__).parent / "shipped"
_PACKAGE = Path(__file__).parents[1]


SHIPPED_GRAPHS: Mapping[str, Callable[[], PropertyGraph]] = {
    "cookbook": cookbook,
    "kgot_lab": lambda: read_graph_in_worker(_PACKAGE),
}


def shipped_configs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the shipped experts as JSON, each with its id."""
    for path in sorted(_FOLDER.glob("*.json")):
        yield f"expert_{path.stem}", json.loads(path.read_text(encoding="utf-8"))


def add_shipped_experts(service: ExpertService) -> tuple[str, ...]:
    """Store the shipped experts that were never stored before, and return their ids.

    A deleted one is not restored.
    """
    new = []
    for id, told in shipped_configs():
        try:
            service.expert(id)
        except NotFound:
            try:
                service.tables.add_expert(expert_config(told), id=id)  # its graph is loaded later
            except AlreadyExists:
                continue
            new.append(id)
    return tuple(new)
