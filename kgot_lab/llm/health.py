"""Short checks that a model works here, for `kgot-lab doctor`."""

from __future__ import annotations

import time

from kgot_lab.llm.local import Local
from kgot_lab.types import Message, Prompt


def probe_local(llm: Local | None = None) -> str:
    """One line about the local model after it answered; raises ModelMissing, NotInstalled or LLMError with
    what to do.
    """
    local = llm or Local()
    started = time.perf_counter()
    local.count_tokens("loads the model")
    loaded = time.perf_counter() - started
    asked = Prompt(
        (Message("user", f"Count from one to twenty in words.{' Take your time.' * 16}"),), max_tokens=1
    )
    reading = local(asked).usage
    writing = local(
        Prompt(asked.messages, max_tokens=25)
    ).usage  # the same prompt, so that nearly all the time goes into writing
    if llm is None:
        local.close()
    return (
        f"{local.name} answers on {local.threads} threads: loaded in {loaded:.1f} s, "
        f"reads {reading.prompt_tokens / reading.seconds:.0f} and writes {writing.completion_tokens / writing.seconds:.0f} tokens a second"
    )
