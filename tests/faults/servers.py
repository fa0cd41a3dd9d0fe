"""Faulty servers of models: whatever one does, there is a reply that can be used, or one clear error, in time
and in little memory.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator

from support.faulty_server import FAULTS, PATIENT, Pieces, any_fault, faulty_server
from support.waiting import AMPLE

from faults.counting import Counts, forget_peak, peak_mb
from kgot_lab.embedding.api import API
from kgot_lab.errors import LLMError
from kgot_lab.llm.openai_compatible import OpenAICompatible, RetryPolicy, server_at
from kgot_lab.types import Message, Prompt

HELLO = Prompt((Message("user", "Hello?"),), max_tokens=50)
TIMEOUT = 1.0  # seconds that a server has for an answer
_MOST_MB = 400  # of this process, more than before


def fault_of(play: Callable[[], Pieces]) -> str:
    """What is wrong with how this process takes what a server does; "" if nothing is."""
    forget_peak()
    before, begun = peak_mb(), time.monotonic()
    with faulty_server(play) as address:
        preset, model = server_at(f"{address}#m")
        patience = RetryPolicy(attempts=1, timeout=TIMEOUT, first_wait=0.0, empty=1)
        llm = OpenAICompatible(preset, model, patience=patience)
        told = _told(llm) or _told_of_vectors(address)
        llm.close()
    if told:
        return told
    if time.monotonic() - begun > 2 * TIMEOUT + AMPLE:
        return f"takes {time.monotonic() - begun:.0f} s"
    more = peak_mb() - before
    return f"takes {more:.0f} MB" if more > _MOST_MB else ""


def _told(llm: OpenAICompatible) -> str:
    try:
        reply = llm(HELLO)
    except LLMError as error:
        return "" if len(str(error)) < 2_000 else f"an error of {len(str(error))} characters"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    usage = reply.usage
    numbers = (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cost)
    sound = isinstance(reply.text, str) and all(math.isfinite(number) and number >= 0 for number in numbers)
    return "" if sound else f"a usage of {numbers}"


def _told_of_vectors(address: str) -> str:
    embedder = API(f"{address}#m", timeout=TIMEOUT, retries=0)
    try:
        embedder.embed(["a text"])
    except LLMError:
        return ""
    except BaseException as error:
        return f"vectors: {type(error).__name__}: {str(error)[:200]}"
    finally:
        embedder.close()
    return ""


def cases(chance: random.Random, *, patient: bool = True) -> Iterator[tuple[str, Callable[[], Pieces]]]:
    """Each fault by itself in some order, then several at once without end; `patient` ones keep a client
    waiting to the end.
    """
    single = [each for each in FAULTS.items() if patient or each[0].removeprefix("way: ") not in PATIENT]
    chance.shuffle(single)
    yield from single
    while True:
        yield any_fault(chance)


def run(seconds: float, seed: int) -> Counts:
    """Faulty servers for so long."""
    end, count, faults = time.monotonic() + seconds, 0, dict[str, str]()
    for name, play in cases(random.Random(seed)):
        if time.monotonic() > end:
            break
        count += 1
        if wrong := fault_of(play):
            faults.setdefault(wrong[:80], name)
    return Counts(count, faults)
