"""From a chat to the graph and back: an expert fails, somebody says what is missing, a person approves it,
and the expert finds it.
"""

from __future__ import annotations

from support.held_graph import HeldGraph
from support.simulated_learning import SimulatedLearner

from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.learning.extracting import learn_from_message
from kgot_lab.experts.learning.gaps import gap_report, questions_of
from kgot_lab.experts.learning.ledger import ProposalSource, open_proposals
from kgot_lab.experts.learning.reviewing import GraphReviewer
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.llm.recorded import Scripted

MISSING = "Where does prompt weaving help?"
SAYS = "Prompt weaving is a technique. Prompt weaving requires Embedding model."


def test_what_a_chat_lacked_is_learnt_and_then_found():
    held, ledger = HeldGraph(cookbook()), open_proposals()
    model = Scripted(lambda _: "The graph does not say what prompt weaving is.")
    service = ExpertService(
        open_experts(),
        GraphFolder(more={"cookbook": held.graph}),
        ExpertModels({"m": lambda: model}, "m"),
        {},
    )
    expert = service.create({"name": "Guide", "kg_db_id": "cookbook", "persona": {"name": "Guide"}})
    first = service.ask(expert.id, "ada", MISSING)
    list(first.events())
    list(service.ask(expert.id, "ada", SAYS, conversation_id=first.conversation).events())
    known = service.graphs.graph("cookbook")
    report = gap_report(
        known, questions_of(service.tables, expert.id, "ada", "cookbook"), config=expert.search_config()
    )
    assert report.failed == 2 and report.gaps[0].asked.failures == ("does not know",)
    assert "weaving" in report.regions[0].words and report.regions[0].edges
    assert questions_of(service.tables, expert.id, "eve", "cookbook") == ()
    _, messages = service.conversation(first.conversation, expert.id, "ada")
    for each in messages:
        if each.role == "user":
            said = ProposalSource(each.id, first.conversation, "ada")
            learn_from_message(
                ledger, SimulatedLearner(), known, name="cookbook", text=each.content, said=said
            )
    (waiting,) = ledger.queue("cookbook")
    assert service.graphs.known_to(expert.config).digest and "technique:prompt_weaving" not in held.graph()
    GraphReviewer(ledger, held, "cookbook", "Grace").accept(waiting.proposal.id)
    again = ExpertService(service.tables, GraphFolder(more={"cookbook": held.graph}), service.models, {})
    turn = again.ask(expert.id, "ada", MISSING)
    sources = next(each for each in turn.events() if type(each).__name__ == "SourcesEvent")
    assert "technique:prompt_weaving" in {node.id for node in sources.nodes}
    service.tables.close()
    ledger.close()
