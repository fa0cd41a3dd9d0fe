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

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, UnknownName, require_known
from kgot_lab.experts.chat.consulting import Consultants, require_known_peers
from kgot_lab.experts.chat.prompting import USUAL_OPTIONS, AnswerOptions, Playbook, authored_playbooks
from kgot_lab.experts.chat.turn import ExpertTurn, TurnServices, chat_history
from kgot_lab.experts.expert import Expert, ExpertConfig, changed_config, expert_config, merge_patch
from kgot_lab.experts.graph_folder import GraphFolder, read_graph_in_worker
from kgot_lab.experts.repository import (
    ALL_EXPERTS,
    AlreadyExists,
    ChatConversation,
    ChatMessage,
    ExpertTables,
    StoredTrial,
)
from kgot_lab.experts.trials.verdict import TrialPlan, begin_trial, choose_variant
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS_BY_NAME
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.memory.user_memory import Memory
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import LLM, Json

LOCAL_OWNER = "local"
# with the name of another instance: the owner of its questions; no tenant's name has a colon
PEER_OWNER_PREFIX = "peer:"
_MAX_QUESTION_LENGTH = 20_000  # characters
_MAX_HISTORY = 200  # messages


@check_arguments
@dataclass
class ExpertModels:
    """The models that experts may use, by name, each opened at first use, with a default."""

    makers: Mapping[str, Callable[[], LLM]]
    usual: str
    _open: dict[str, LLM] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open_model(self, name: str | None = None) -> LLM:
        """Return a model by its name, opened at first use.

        Raises UnknownName if there is none, and what opening it raises.
        """
        model = name or self.usual
        require_known("model", self.makers, model)
        with self._lock:
            if model not in self._open:
                self._open[model] = self.makers[model]()
            return self._open[model]


@check_arguments
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
    # what an owner said, by name; prompts recall it, and nothing is added to it
    memory_of: Callable[[str], Memory] | None = None
    forgetting: Callable[[str], object] | None = None  # called with each conversation that is deleted
    loading: set[str] = field(default_factory=set)  # graphs that are read before the first question

    # --- experts ---

    def experts(
        self, owner: str, limit: int = ALL_EXPERTS, after: str | None = None
    ) -> tuple[list[dict[str, Json]], bool]:
        """List experts, or a page of them, and whether there are more.

        Each has the owner's number of conversations with it, and the time of the last. A page begins behind the
        expert with the id `after`. Raises BadInput if there never was one.
        """
        page, more = self.tables.experts_page(after, limit)
        activity = self.tables.activity(owner)
        return [expert_summary(expert, activity.get(expert.id)) for expert in page], more

    def expert(self, id: str) -> Expert:
        """Return an expert by its id.

        Raises NotFound if there is none.
        """
        return self.tables.expert(id)

    def create(self, data: object, *, id: str = "") -> Expert:
        """Create an expert from JSON.

        Raises BadInput if the JSON is invalid, and UnknownName if a graph or a model does not exist here.
        """
        return self.add(expert_config(data), id=id)

    def add(self, config: ExpertConfig, *, id: str = "") -> Expert:
        """Create an expert from a configuration.

        Raises UnknownName if a graph, a model, a playbook or a peer does not exist here.
        """
        return self.tables.add_expert(self._validate_config(config), id=id)

    def update(self, id: str, change: object) -> Expert:
        """Apply a partial change to an expert.

        Raises NotFound if there is no such expert, and BadInput or UnknownName if the change is invalid.
        """
        return self.tables.change_expert(
            id, lambda before: self._validate_config(changed_config(before, change))
        )

    def duplicate(self, id: str, new_name: str, overrides: object = None) -> Expert:
        """Copy an expert under another name, with some fields changed."""
        if overrides is not None and not isinstance(overrides, Mapping):
            raise BadInput("overrides of a copy are a JSON object with the fields that differ")
        change = merge_patch(dict(overrides or {}), {"name": new_name})
        config = self._validate_config(changed_config(self.expert(id).config, change))
        return self.tables.add_expert(config, copy_of=id)

    def delete(self, id: str, *, conversations: bool = False) -> int:
        """Delete an expert, and return how many conversations were deleted with it.

        Raises NotFound if there is no such expert.
        """
        deleted = self.tables.remove_expert(id, conversations=conversations)
        if self.forgetting is not None:
            for conversation in deleted:
                self.forgetting(conversation)
        return len(deleted)

    def begin_trial(self, id: str, a: object, b: object, plan: TrialPlan) -> StoredTrial:
        """Start a trial of two changes of an expert.

        Raises NotFound, BadInput, and UnknownName for what does not exist here.
        """
        return begin_trial(self.tables, id, a, b, plan, self._validate_config)

    def _validate_config(self, config: ExpertConfig) -> ExpertConfig:
        """Check that the graphs, models and playbooks of a configuration exist here, and return it."""
        require_known("graph", self.graphs.names(), *config.graphs)
        require_known("model", self.models.makers, *config.models.values())
        require_known("playbook", self.playbooks, *config.playbook_skills)
        require_known_peers(config.delegates_to, self.consultants)
        rows = (row for graph in config.graphs for row in self.graphs.graph(graph).node_properties)
        node_dimensions = {name for row in rows for name in row}
        goals = config.custom_goal_mappings.values()
        goal_dimensions = (name for goal in goals for name in goal.dimension_boosts)
        for name in (*config.dimension_filters, *goal_dimensions):
            if name not in DIMENSIONS_BY_NAME and name not in node_dimensions:
                raise UnknownName("dimension", name, DIMENSIONS_BY_NAME)
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
        options: AnswerOptions = USUAL_OPTIONS,
    ) -> ExpertTurn:
        """Store a question in its conversation, and return the turn that answers it.

        With `conversation_id`, the stored messages count, and `history` is ignored. Otherwise the
        conversation with exactly this history is continued, or a new one begins. `options` are what the
        client asks of the answer. Raises NotFound, BadInput and UnknownName.
        """
        text = _validate_text(question, "the question")
        expert = self.tables.expert(expert_id)
        known = self.graphs.expert_graphs(expert.config)
        llm = self.models.open_model(model or expert.models.get("chat"))
        earlier = _validate_history(history)
        with self.tables.storage.changing():
            if conversation_id is not None:
                conversation = self.tables.conversation(conversation_id, expert_id, owner).id
            else:
                found = self.tables.find_conversation(expert_id, owner, earlier)
                conversation = found or self.tables.begin_conversation(expert_id, owner, text, earlier)
            messages = chat_history(self.tables.messages(conversation))
            message_id = self.tables.add_message(conversation, "user", text).id
            trial = self.tables.running_trial(expert_id)
        choice = None
        if trial is not None:
            # the expert was changed so that the variant no longer fits: its own configuration answers, for neither
            with suppress(BadInput):
                variant = choose_variant(expert.config, trial, conversation)
                known = self.graphs.expert_graphs(variant.config)
                llm = self.models.open_model(model or variant.config.models.get("chat"))
                choice = variant
        # a peer's question is not delegated further, since two instances could ask each other forever
        is_peer = owner.startswith(PEER_OWNER_PREFIX)
        consultants = None if is_peer else self.consultants
        memory = self.memory_of(owner) if self.memory_of is not None and not is_peer else None
        services = TurnServices(self.tables, self.playbooks, self.embedder, consultants, memory)
        asked = services, expert, known, llm, owner, conversation, text, messages
        return ExpertTurn(*asked, options=options, choice=choice, asked_as=message_id)

    def conversations(
        self, expert: str, owner: str, *, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with an expert, the latest first, and their total number.

        Conversations that remain after the expert was deleted still belong to their owner. Raises NotFound if
        there is no such expert and no such conversation.
        """
        page, total = self.tables.conversations(expert, owner, limit=limit, offset=offset)
        if not total:
            self.tables.expert(expert)
        return page, total

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


def expert_summary(expert: Expert, activity: tuple[int, object] | None = None) -> dict[str, Json]:
    """Format an expert as an entry of a list."""
    count, last = activity or (0, None)
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


def _validate_history(history: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Validate the history that a caller sends. The role model means assistant."""
    messages = [
        ({"model": "assistant"}.get(role, role), _validate_text(text, "a message of the history", blank=True))
        for role, text in history
    ]
    if len(messages) > _MAX_HISTORY:
        raise BadInput(f"a history has {_MAX_HISTORY} messages at most: leave out the first ones")
    if unknown_roles := [role for role, _ in messages if role not in ("user", "assistant")]:
        raise BadInput(f"the role of a message is user, assistant or model, not {unknown_roles[0][:20]!r}")
    return messages


def _validate_text(text: str, label: str, *, blank: bool = False) -> str:
    checked_text(text, label, blank=blank)
    if len(text) > _MAX_QUESTION_LENGTH:
        raise BadInput(f"{label} has {len(text):,} characters, and {_MAX_QUESTION_LENGTH:,} are the most")
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
    added = []
    for id, config in shipped_configs():
        with suppress(AlreadyExists):
            service.tables.add_expert(expert_config(config), id=id)  # its graph is loaded later
            added.append(id)
    return tuple(added)
