"""nano-graphrag, as its read-me and its examples of another model and of a local embedder say."""

from pathlib import Path

import numpy as np
from nano_graphrag import GraphRAG, QueryParam
from nano_graphrag._utils import compute_args_hash, wrap_embedding_func_with_attrs
from openai import AsyncOpenAI
from protocol import serve


class System:
    def __init__(self, settings):
        client = AsyncOpenAI(base_url=settings["url"], api_key=settings["key"], timeout=settings["seconds"])

        async def complete(prompt, system_prompt=None, history_messages=(), hashing_kv=None, **options):
            messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
            messages += [*history_messages, {"role": "user", "content": prompt}]
            key = compute_args_hash(settings["model"], messages)
            if hashing_kv is not None and (known := await hashing_kv.get_by_id(key)):
                return known["return"]
            reply = await client.chat.completions.create(
                model=settings["model"], messages=messages, **options
            )
            text = reply.choices[0].message.content
            if hashing_kv is not None:
                await hashing_kv.upsert({key: {"return": text, "model": settings["model"]}})
            return text

        @wrap_embedding_func_with_attrs(embedding_dim=settings["dimension"], max_token_size=256)
        async def embed(texts):
            reply = await client.embeddings.create(
                model=settings["embedder"], input=texts, encoding_format="float"
            )
            return np.array([row.embedding for row in reply.data])

        self.budget = settings["budget"]
        self.rag = GraphRAG(
            working_dir=settings["folder"],
            best_model_func=complete,
            cheap_model_func=complete,
            embedding_func=embed,
            best_model_max_async=1,
            cheap_model_max_async=1,
            best_model_max_token_size=settings["context"] // 2,
            cheap_model_max_token_size=settings["context"] // 2,
        )

    async def index(self, paths):
        await self.rag.ainsert([Path(path).read_text("utf-8") for path in paths])
        graph = self.rag.chunk_entity_relation_graph._graph
        return {"entities": graph.number_of_nodes(), "relations": graph.number_of_edges()}

    async def ask(self, question):
        share = self.budget / 12000  # the default limits, scaled to the budget
        limits = QueryParam(
            mode="local",
            local_max_token_for_text_unit=int(4000 * share),
            local_max_token_for_local_context=int(4800 * share),
            local_max_token_for_community_report=int(3200 * share),
        )
        return await self.rag.aquery(question, limits)


serve(System)
