"""Play: an invented town, what its author says of who knows what, and an evening of play that is heard into
it.
"""

from kgot_lab.experiments.competence.extracting import SimulatedExtractor
from kgot_lab.experiments.competence.simulated import Competence
from kgot_lab.experiments.town.evening import fact_outcomes, replay_evening, said_in, world_at
from kgot_lab.experiments.town.leaks import document_leak
from kgot_lab.experiments.town.written import settled, written_evening, written_town

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
