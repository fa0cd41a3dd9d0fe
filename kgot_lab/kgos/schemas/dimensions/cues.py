"""Words that speak for the low and the high end of a dimension, where a text that names the matter says
something about it.

The document gives one of these, `pricing_tier` from "cost" and "price"; the others are ours, written before
they were compared with any rating. A dimension of quality (how well code is written, how much is overlooked)
has none: praise in a description is no measure. A dash stands where no usual word speaks for the low end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kgot_lab.text.words import named_words, stem

_TABLE = """
    latency_sensitivity | offline, overnight, background, later | latency, real-time, live, interactive, instant, quick, immediate
    throughput_requirement | occasional, single | throughput, traffic, volume, flood, thousands, millions
    pricing_tier | free, cheap, cheaper, inexpensive, saves | cost, price, expensive, fee, paid, premium
    token_efficiency | verbose, more tokens, extra tokens, long | fewer tokens, compress, shorten, compact, concise
    batch_suitability | live, interactive, conversation, real-time | batch, bulk, offline, overnight
    cache_effectiveness | unique, fresh | cache, cached, reuse, repeated, identical
    rate_limit_sensitivity | - | rate limit, quota, throttle, throttling
    compute_intensity | lightweight, small | gpu, accelerator, hardware, training, cluster
    streaming_support | whole, complete | stream, streaming, incremental, piece by piece
    async_compatibility | synchronous, blocking | async, asynchronous, await, queue, background
    real_time_requirement | offline, overnight, background, later | real-time, live, interactive, waiting
    multi_turn_depth | single, one-shot | conversation, dialogue, turn, chat, follow-up
    state_management | stateless | state, session, memory, history, checkpoint
    data_sensitivity_level | public, open | personal, private, medical, health, identity, secret, credential, confidential, password
    schema_strictness | free-form, flexible | schema, strict, declared, validate, typed
    multimodal_support | - | image, picture, photo, audio, video, speech, voice, scan
    structured_vs_unstructured | prose, passage, article, free text | table, record, json, sql, database, column, spreadsheet
    tool_use_support | - | tool, tool call, function call
    temperature_sensitivity | deterministic | temperature, sampling, randomness, random
    grounding_support | - | citation, cite, source, evidence, grounded
    safety_filter_level | - | filter, moderation, harmful, guardrail, refuse, block
    output_format_control | free-form, prose | json, format, schema, xml, structured
    multilingual_support | - | multilingual, translation, translate, languages
    rag_suitability | - | retrieval, retrieve, rag, passage, chunk, index
    agent_compatibility | - | agent, autonomous, agentic
    fine_tuning_benefit | - | fine-tuning, fine-tuned, trained, training
    file_system_dependency | - | file, folder, directory, disk, path
    git_integration_level | - | git, commit, branch, repository, merge
    shell_command_execution | - | shell, terminal, bash, command line
    sandbox_sensitivity | - | sandbox, sandboxed
    permission_requirement_level | - | permission, administrator, admin, root, privilege, access right
    idempotency_guarantee | side effect | idempotent, repeatable, deterministic"""


def in_stems(text: str) -> tuple[str, ...]:
    """The words of a text without their endings, underscores and hyphens as spaces."""
    return tuple(map(stem, named_words(text)))


def _cues() -> dict[str, tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]]:
    rows = (line.split(" | ") for line in _TABLE.strip().splitlines())
    return {name.strip(): (_phrases(low), _phrases(high)) for name, low, high in rows}


def _phrases(told: str) -> frozenset[tuple[str, ...]]:
    return frozenset(in_stems(phrase) for phrase in told.split(",") if phrase != "-")


CUES: Mapping[str, tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]] = MappingProxyType(_cues())
LONGEST_CUE = max(len(phrase) for ends in CUES.values() for end in ends for phrase in end)
