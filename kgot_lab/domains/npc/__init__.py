"""A world of characters in tables: entities, relationships with provenance, and visibility."""

from kgot_lab.domains.npc.explanations import why_not
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.sessions import WorldReview, import_statements

__all__ = [
    "Entity", "Provenance", "Relationship", "VisibilityPolicy", "WorldReview", "import_statements", "open_world", "why_not",
]  # fmt: skip
