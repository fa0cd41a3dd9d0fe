"""Play: an invented town, what its author says of who knows what, and an evening of play that is heard into
it.
"""

from benchmarks.competence.extracting import SimulatedExtractor
from benchmarks.competence.simulated import Competence
from benchmarks.npc.evening import fact_outcomes, replay_evening, said_in, world_at
from benchmarks.npc.leaks import document_leak
from benchmarks.npc.written import settled, written_evening, written_town

__all__ = [
    "Competence",
    "SimulatedExtractor",
    "document_leak",
    "fact_outcomes",
    "replay_evening",
    "said_in",
    "settled",
    "world_at",
    "written_evening",
    "written_town",
]
