"""LightRAG, as its page "Programming with LightRAG Core" and its OpenAI-compatible example say."""

from functools import partial
from pathlib import Path

from lightrag import LightRAG, QueryParam
from lightrag.llm.openai import openai_complete_if_cache, openai_embed
from lightrag.utils import EmbeddingFunc
from protocol import serve


class System:
    def __init__(self, settings):
        self.settings, self.rag = settings, None

    async def open(self):
        given = self.settings
        address = {"base_url": given["url"], "api_key": given["key"]}
        embed = partial(openai_embed.func, model=given["embedder"], **address)
        self.rag = LightRAG(
            working_dir=given["folder"],
            llm_model_func=partial(openai_complete_if_cache, given["model"], **address),
            llm_model_name=given["model"],
            embedding_func=EmbeddingFunc(embedding_dim=given["dimension"], max_token_size=8192, func=embed),
            llm_model_max_async=1,
            max_parallel_insert=1,
            default_llm_timeout=given["seconds"],
        )
        await self.rag.initialize_storages()

    async def index(self, paths):
        await self.open()
        texts = [Path(path).read_text("utf-8") for path in paths]
        await self.rag.ainsert(texts, file_paths=paths)
        graph = await self.rag.chunk_entity_relation_graph.get_knowledge_graph("*", max_depth=1)
        return {"entities": len(graph.nodes), "relations": len(graph.edges)}

    async def ask(self, question):
        if self.rag is None:
            await self.open()
        share = self.settings["budget"] / 30000  # the default limits, scaled to the budget
        limits = QueryParam(
            mode="mix",
            max_entity_tokens=int(6000 * share),
            max_relation_tokens=int(8000 * share),
            max_total_tokens=self.settings["budget"],
            enable_rerank=False,
        )
        return await self.rag.aquery(question, param=limits)


serve(System)
