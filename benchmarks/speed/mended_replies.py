"""Second requests that repairing a reply saves, where a server does not hold a model to a schema.

python -m benchmarks.speed.mended_replies

The prompts are those on the bundled traces of whole runs. The local model answers each without its schema, as a
model does on a server that has no structured output. Counted are the replies that are JSON of the shape as they
stand, those that are read after repairing (each would have been a second request), and those that are asked again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from benchmarks.requirements import require_local_model
from kgot_lab.errors import BadReply
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.local import Local
from kgot_lab.llm.structured import parse
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Asked
from kgot_lab.loop.trace import load_run
from kgot_lab.types import Prompt

SHAPES = {
    frozenset(shape.model_fields): shape
    for shape in vars(prompts).values()
    if isinstance(shape, type) and issubclass(shape, BaseModel) and shape is not BaseModel
}


def recorded_prompts() -> list[tuple[Prompt, type[BaseModel]]]:
    """Return every distinct prompt on the bundled traces that asks for JSON, with the shape of its reply."""
    found: dict[str, tuple[Prompt, type[BaseModel]]] = {}
    for path in sorted(bundled_path("traces").glob("*.jsonl")):
        for event in load_run(path).events:
            if isinstance(event, Asked) and event.prompt.schema:
                shape = SHAPES.get(frozenset(event.prompt.schema.get("properties", ())))
                if shape is not None:
                    found.setdefault(event.prompt.messages[-1].text, (event.prompt, shape))
    return list(found.values())


def how_read(text: str, shape: type[BaseModel]) -> str:
    """Return how a reply is read: "as it stands", "repaired" or "asked again"."""
    try:
        shape.model_validate(json.loads(text))
        return "as it stands"
    except (ValueError, ValidationError):
        pass
    try:
        parse(text, shape)
        return "repaired"
    except BadReply:
        return "asked again"


def main() -> None:
    """Ask, count and print."""
    require_local_model()
    model, counts = Local(), Counter[str]()
    for prompt, shape in recorded_prompts():
        counts[how_read(model(replace(prompt, schema=None)).text, shape)] += 1
        print(f"\r{counts.total()} prompts", end="", flush=True)
    failed = counts["repaired"] + counts["asked again"]
    print(f"\r{counts.total()} replies of {model.name}: {dict(counts)}")
    print(f"second requests: {counts['asked again']} with repairing, {failed} without")


if __name__ == "__main__":
    main()
