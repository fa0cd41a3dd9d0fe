"""The 56 dimensions in nine categories: a number from 0 to 1 in a node's properties, and what the two ends of
each mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from kgot_lab.errors import UnknownName


@dataclass(frozen=True)
class Dimension:
    """A named scale from 0 to 1: its category, and what a node is at each end of it."""

    name: str
    category: str
    low: str
    high: str

    def __str__(self) -> str:
        return f"{self.name} ({self.category}): 0 {self.low}, 1 {self.high}"


_TABLE = {  # name | at 0 | at 1
    "performance and cost": """
        latency_sensitivity | waiting does no harm | must answer within a second
        throughput_requirement | one request at a time | a steady flood of requests
        pricing_tier | nothing, or nearly nothing | much for every call
        token_efficiency | spends many tokens | gets by with few tokens
        batch_suitability | live use only | made for many items at once
        cache_effectiveness | nothing is gained by keeping results | nearly all work is saved by keeping results
        rate_limit_sensitivity | limits on calls do not matter | limits on calls stop it
        compute_intensity | runs anywhere | needs strong hardware""",
    "complexity and effort": """
        implementation_complexity | done by copying an example | takes a specialist
        configuration_depth | nothing to set | many settings in several files
        learning_curve | understood in minutes | takes weeks to learn
        error_handling_need | failures are rare and harmless | failures are frequent or grave
        debugging_difficulty | the message names the fault | fails without a sign
        maintenance_burden | runs untouched | wants steady attention""",
    "interaction": """
        streaming_support | all at the end | piece by piece throughout
        batching_capability | single items only | takes batches by itself
        async_compatibility | blocks its caller | asynchronous throughout
        real_time_requirement | nobody waits for it | somebody waits for it now
        multi_turn_depth | one turn is enough | lives on long conversations
        context_dependency | the same in any context | decided by its context
        state_management | keeps nothing | keeps much, in many states""",
    "data": """
        data_volume_sensitivity | for small data | copes with enormous data
        format_flexibility | one format only | whatever format comes
        schema_strictness | no declared form | exactly the declared form
        data_sensitivity_level | public data | personal, medical or secret data
        multimodal_support | text only | pictures, sound and film too
        structured_vs_unstructured | free text | tables and records""",
    "API capabilities": """
        tool_use_support | calls no tools | calls many kinds of tools
        system_prompt_control | a system prompt hardly matters | a system prompt governs it wholly
        temperature_sensitivity | sampling does not change it | sampling decides it
        max_context_utilization | a short prompt | a full context window
        function_calling_depth | no function calls | chains of function calls
        grounding_support | no sources | sources built in
        safety_filter_level | lets nearly everything pass | stops nearly everything doubtful
        output_format_control | free text comes out | the form asked for comes out""",
    "problem domains": """
        code_generation_strength | writes no usable code | writes code fit for use
        analytical_reasoning | looks at the surface | thinks through many steps
        creative_capability | follows a pattern | invents freely
        instruction_following | overlooks instructions | keeps to every instruction
        multilingual_support | English only | a hundred languages and more
        summarization_quality | loses what matters | keeps what matters
        extraction_accuracy | overlooks much | finds all, and rightly""",
    "architecture": """
        rag_suitability | no use to retrieval-augmented generation | built for retrieval-augmented generation
        agent_compatibility | no use to an agent | an agent by itself
        fine_tuning_benefit | training changes little | training changes much
        pipeline_composability | stands alone | fits between any two steps
        orchestration_complexity | joined with one call | many parts to coordinate""",
    "meta": """
        knowledge_density | mostly filling | every word tells something
        relationship_richness | no neighbours | a hub with many kinds of edges
        emergence_potential | nothing unexpected comes of it | unexpected combinations come of it""",
    "command line": """
        file_system_dependency | touches no files | reads and writes files throughout
        git_integration_level | knows nothing of git | works through git
        shell_command_execution | runs no commands | runs any command
        sandbox_sensitivity | the same inside a sandbox | fails inside a sandbox
        permission_requirement_level | needs no rights | needs those of an administrator
        idempotency_guarantee | each run changes something more | a second run changes nothing""",
}


def _of_table() -> tuple[Dimension, ...]:
    lines = (
        (category, line.split(" | "))
        for category, text in _TABLE.items()
        for line in text.strip().splitlines()
    )
    return tuple(Dimension(name.strip(), category, low, high) for category, (name, low, high) in lines)


DIMENSIONS = _of_table()
DIMENSION_CATEGORIES = tuple(_TABLE)
BY_NAME = MappingProxyType({each.name: each for each in DIMENSIONS})


def dimension(name: str) -> Dimension:
    """A dimension by its name; raises UnknownName, which lists them."""
    try:
        return BY_NAME[name]
    except (KeyError, TypeError):
        raise UnknownName("dimension", name, BY_NAME) from None
