"""The game master's review: what a session said that was not sure enough to be accepted at once, and what is
decided of it.

The decision is kept on the row of support of that session, and stays when the session is heard again. The
ledger of memory is not used: an inferred claim there holds only as long as the premises that it names, and
what is heard in a session names none.
"""

from __future__ import annotations

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import BOTH_WAYS, Relationship, RelationshipStanding
from kgot_lab.domains.npc.statements import row_key, support_of
from kgot_lab.domains.npc.world import NpcWorld, put_decision
from kgot_lab.errors import require


class WorldReview:
    """What waits in a world, and the decisions on it."""

    def __init__(self, world: NpcWorld) -> None:
        require(world, NpcWorld, "what is reviewed is an NpcWorld")
        self.world = world

    def queue(self) -> tuple[Relationship, ...]:
        """What waits, each as one session said it, the surest first; what holds both ways stands here once."""
        waiting = []
        for row in self.world.storage.rows(statements.SUPPORT_QUEUED):
            source, target, type = row_key(row)
            said, standing = support_of(row)
            if type not in BOTH_WAYS or source <= target:
                waiting.append(Relationship(source, target, type, {}, said, standing))
        return tuple(
            sorted(
                waiting, key=lambda each: (-each.provenance.confidence, each.key, each.provenance.session_id)
            )
        )

    def accept(self, relationship: Relationship) -> None:
        """Confirm what the session of its provenance says; raises BadInput where it says no such thing."""
        self._decide(relationship, "accepted")

    def reject(self, relationship: Relationship) -> None:
        """Refuse it: nobody is told of the relationship unless another session's word for it is accepted.
        Raises BadInput.
        """
        self._decide(relationship, "rejected")

    def _decide(self, relationship: Relationship, decided: RelationshipStanding) -> None:
        require(relationship, Relationship, "what is decided on is a Relationship, as queue() gives it")
        with self.world.storage.changing():
            put_decision(self.world.storage, relationship, decided, self.world.now())
