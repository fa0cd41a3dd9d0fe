"""Export and import experts, and compute their scores."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, require_known
from kgot_lab.experts.expert import SCHEMA_VERSION, Expert, ExpertConfig, expert_config
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Json

EXPORT_KIND = "kgot-lab expert"


@dataclass(frozen=True)
class AdaptedExpert:
    """An expert that fits here, and warnings on what was left out or is missing."""

    config: ExpertConfig
    warnings: tuple[str, ...]


def expert_to_json(expert: Expert, graphs: GraphFolder) -> dict[str, Json]:
    """Export an expert as portable JSON without its knowledge.

    Of its graphs it has only their sizes, and the names that the configuration uses.
    """
    config = expert.config
    requirements = {name: _graph_requirements(config, graphs.graph(name)) for name in config.graphs}
    document: dict[str, Json] = {
        "kind": EXPORT_KIND,
        "name": config.name,
        "description": config.description,
        "schema_version": SCHEMA_VERSION,
        "expert": json.loads(config.model_dump_json(exclude_unset=True)) | {"schema_version": SCHEMA_VERSION},
        "graphs": requirements,
    }
    return document | {"sha256": _content_hash(document)}


def adapt_expert(
    data: object, service: ExpertService, *, graphs: Mapping[str, str] | None = None
) -> AdaptedExpert:
    """Validate an exported expert and adapt it to this service.

    Its graphs must exist here, under their own names or those that `graphs` maps them to. Edge types and
    dimensions that our graphs lack, and missing models and playbooks, are left out or reported as warnings.
    Raises BadInput if it is no exported expert, of another version or changed since the export, and
    UnknownName if a graph does not exist here.
    """
    if not isinstance(data, Mapping) or data.get("kind") != EXPORT_KIND:
        raise BadInput("this is no exported expert: its kind is not " + EXPORT_KIND)
    if data.get("schema_version") != SCHEMA_VERSION:
        problem = f"this expert is of schema version {str(data.get('schema_version'))[:20]}"
        raise BadInput(f"{problem}, and {SCHEMA_VERSION} is known here")
    content = {name: value for name, value in data.items() if name != "sha256"}
    if "sha256" in data and data["sha256"] != _content_hash(content):
        raise BadInput("the hash does not fit this expert: export it again, or take sha256 out")
    config = _rename_graphs(expert_config(data.get("expert")), dict(graphs or {}))
    require_known("graph", service.graphs.names(), *config.graphs)
    return _remove_missing(config, service)


def _remove_missing(config: ExpertConfig, service: ExpertService) -> AdaptedExpert:
    """Remove from a configuration what does not exist here, with warnings."""
    warnings = []
    skills = [skill for skill in config.playbook_skills if skill in service.playbooks]
    missing = [skill for skill in config.playbook_skills if skill not in service.playbooks]
    warnings += [f"the playbook {each} is not here and was left out" for each in missing]
    models = {task: name for task, name in config.models.items() if name in service.models.makers}
    missing = [model for model in config.models.values() if model not in models.values()]
    warnings += [f"the model {each} is not here: the usual one answers" for each in missing]
    graphs = [service.graphs.graph(name) for name in config.graphs]
    types = {type for graph in graphs for type in graph.type_names}
    warnings += [f"no graph has edges of the type {one}" for one in _edge_types(config) if one not in types]
    properties = {name for graph in graphs for known in graph.node_properties for name in known}
    missing = [name for name in _dimension_names(config) if name not in properties]
    warnings += [f"no node has the dimension {each}" for each in missing]
    fields = json.loads(config.model_dump_json(exclude_unset=True))
    fields |= {"playbook_skills": skills, "models": models}
    return AdaptedExpert(expert_config(fields), tuple(dict.fromkeys(warnings)))


def _rename_graphs(config: ExpertConfig, graphs: Mapping[str, str]) -> ExpertConfig:
    """Rename the graphs in a configuration to their names here."""
    require_known("graph of this expert", config.graphs, *graphs)
    if not graphs:
        return config

    def local_name(name: str) -> str:
        return graphs.get(name, name)

    fields: dict[str, Any] = json.loads(config.model_dump_json(exclude_unset=True))
    if "kg_db_id" in fields:
        fields["kg_db_id"] = fields["kg_db_id"] and local_name(fields["kg_db_id"])
    fields["kg_db_ids"] = [local_name(name) for name in fields.get("kg_db_ids", [])]
    weights = fields.get("graph_weights", {})
    fields["graph_weights"] = {local_name(name): weight for name, weight in weights.items()}
    for edge in fields.get("cross_edges", []):
        for end in ("source", "target"):
            name, sign, id = edge[end].partition(":")
            edge[end] = local_name(name) + sign + id
    return expert_config(fields)


def _graph_requirements(config: ExpertConfig, graph: PropertyGraph) -> dict[str, Json]:
    properties = {name for known in graph.node_properties for name in known}
    return {
        "nodes": len(graph),
        "edges": sum(1 for _ in graph.edges),
        "digest": graph.digest,
        "edge_types": _sorted_common(_edge_types(config), graph.type_names),
        "dimensions": _sorted_common(_dimension_names(config), properties),
    }


def _sorted_common(names: Collection[str], existing: Collection[str]) -> list[str]:
    return sorted({name for name in names if name in existing})


def _edge_types(config: ExpertConfig) -> tuple[str, ...]:
    goals = [type for goal in config.custom_goal_mappings.values() for type in goal.boost_types]
    return tuple(dict.fromkeys([*(config.retrieval.boost_types or ()), *goals]))


def _dimension_names(config: ExpertConfig) -> tuple[str, ...]:
    goals = [name for goal in config.custom_goal_mappings.values() for name in goal.dimension_boosts]
    return tuple(dict.fromkeys([*config.dimension_filters, *goals]))


def _content_hash(document: Mapping[str, Json]) -> str:
    text = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# The quality of an expert: benchmark scores on questions with gold answers, and the outcomes of its answers
# since.

_SCORES_FOLDER = Path(__file__).parent / "shipped" / "scores"


def expert_scores(service: ExpertService, id: str) -> dict[str, Any]:
    """Return the scores of an expert: `measured` by a benchmark, or None, and `in_use` over its answers.

    Measured scores are returned only if the configuration is the one that was measured. Raises NotFound if
    there is no such expert.
    """
    measured = _measured_scores(id, service.expert(id).config)
    judged = service.tables.judged_answers(id)
    answers = [each for each in judged if not (each.about.get("failed") or each.about.get("stopped"))]
    thumbs = [answer.thumb for answer in answers if answer.thumb]
    citations = sum(len(answer.about.get("citations", ())) for answer in answers)
    false_citations = sum(len(answer.about.get("false_citations", ())) for answer in answers)
    prompt_nodes = sum(len(answer.about.get("kg_nodes_used", ())) for answer in answers)
    first_token_ms = [each.about["first_token_ms"] for each in answers if "first_token_ms" in each.about]
    in_use = {
        "answers": len(answers),
        "thumbs_up": sum(thumb > 0 for thumb in thumbs),
        "thumbs_down": sum(thumb < 0 for thumb in thumbs),
        "citations": citations,
        "false_citations": false_citations,
        "nodes_told": prompt_nodes,
        "first_token_ms_median": statistics.median(first_token_ms) if first_token_ms else None,
    }
    return {"measured": measured, "in_use": in_use}


def _measured_scores(id: str, config: ExpertConfig) -> dict[str, Any] | None:
    path = _SCORES_FOLDER / f"{id}.json"
    if not id.isidentifier() or not path.is_file():
        return None
    scores: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return scores if scores.pop("config") == config.digest else None


def flatten_scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """Flatten measured scores to named numbers for a marketplace. `a.b` is the number `b` within `a`."""
    return dict(_flatten(scores, ""))


def _flatten(scores: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for name, value in scores.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", float(value)
