"""fast-graphrag, as its read-me says, with the services that it has for other OpenAI-compatible models."""

from pathlib import Path

import fast_graphrag._llm._llm_openai as service
from fast_graphrag import GraphRAG, QueryParam
from fast_graphrag._llm import OpenAIEmbeddingService, OpenAILLMService
from protocol import serve

DOMAIN = "Analyse these articles. Identify people, places, organizations, works, events, dates and terms, and how they are related."
QUERIES = ["Who directed the film?", "When was the mother of the king born?", "Why did the prices rise?"]
TYPES = ["Person", "Place", "Organization", "Work", "Event", "Date", "Concept"]


class System:
    def __init__(self, settings):
        service.TIMEOUT_SECONDS = settings["seconds"]  # 180 in the package, too short for this computer
        address = {"base_url": settings["url"], "api_key": settings["key"], "max_requests_concurrent": 1}
        self.budget = settings["budget"]
        self.rag = GraphRAG(
            working_dir=settings["folder"],
            domain=DOMAIN,
            example_queries="\n".join(QUERIES),
            entity_types=TYPES,
            config=GraphRAG.Config(
                llm_service=OpenAILLMService(model=settings["model"], **address),
                embedding_service=OpenAIEmbeddingService(
                    model=settings["embedder"], embedding_dim=settings["dimension"], **address
                ),
            ),
        )

    async def index(self, paths):
        texts = [Path(path).read_text("utf-8") for path in paths]
        entities, relations, chunks = await self.rag.async_insert(texts, show_progress=False)
        return {"entities": entities, "relations": relations, "chunks": chunks}

    async def ask(self, question):
        share = self.budget / 16000  # the default limits, scaled to the budget
        limits = QueryParam(
            entities_max_tokens=int(4000 * share),
            relations_max_tokens=int(3000 * share),
            chunks_max_tokens=int(9000 * share),
        )
        await self.rag.state_manager.query_start()
        try:
            return (await self.rag.async_query(question, limits)).response
        finally:
            await self.rag.state_manager.query_done()


serve(System)
