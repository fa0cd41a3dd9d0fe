"""The tool that asks a language model what it knows."""

from __future__ import annotations

from kgot_lab.errors import ToolFailed, require_count, require_parts
from kgot_lab.llm.structured import checked_reply
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import LLM, Message, Prompt


def ask_model(llm: LLM, *, name: str = "llm_query", max_tokens: int = 512) -> TextTool:
    """A tool that puts a plain question to a model; the result carries what it cost.

    The model's own LLMError passes through: a budget that is used up or a tape that does not fit must end the
    run, not become a fact.
    """

    require_parts(llm, ("name", "__call__"), "ask_model() takes a model, as connect(…) gives one")
    require_count(max_tokens, 1, "max_tokens")

    def run(query: str) -> Result:
        reply = checked_reply(llm, Prompt((Message("user", query),), max_tokens=max_tokens))
        if not reply.text.strip():
            raise ToolFailed(f"{name}: the model said nothing; ask in another way")
        return Result(reply.text.strip(), usage=(reply.usage,))

    description = "Asks a language model what it knows, without looking anything up. It may be wrong."
    return TextTool(name, description, {"query": "a complete question"}, run)
