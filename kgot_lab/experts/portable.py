"""An expert as a file that others can take: its configuration, what its graphs have to have, and a hash of
both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.experts.expert import SCHEMA_VERSION, Expert, ExpertConfig, expert_config
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Json

KIND = "kgot-lab expert"


@dataclass(frozen=True)
class TakenExpert:
    """An expert that fits here, and what was not taken over or is lacking, in words."""

    config: ExpertConfig
    warnings: tuple[str, ...]


def exported(expert: Expert, graphs: GraphFolder) -> dict[str, Json]:
    """An expert as portable JSON; it holds no knowledge: of its graphs only how large they are, and what of
    them it names.
    """
    config = expert.config
    needs = {name: _needs(config, graphs.graph(name)) for name in config.graphs}
    told: dict[str, Json] = {
        "kind": KIND,
        "name": config.name,
        "description": config.description,
        "schema_version": SCHEMA_VERSION,
        "expert": json.loads(config.model_dump_json(exclude_unset=True)) | {"schema_version": SCHEMA_VERSION},
        "graphs": needs,
    }
    return told | {"sha256": _hash(told)}


def taken(told: object, service: ExpertService, *, graphs: Mapping[str, str] | None = None) -> TakenExpert:
    """An exported expert as it fits here; `graphs` says which graph of ours stands for one of its own.

    Its graphs have to be here, under their own names or those of `graphs`. Edge types and dimensions that
    ours lack, models and playbooks that are not here are left out or told as warnings. Raises BadInput for
    what is no such file, of another version, or changed since; UnknownName for a graph that is not here.
    """
    if not isinstance(told, Mapping) or told.get("kind") != KIND:
        raise BadInput("this is no exported expert: its kind is not " + KIND)
    if told.get("schema_version") != SCHEMA_VERSION:
        raise BadInput(
            f"this expert is of schema version {str(told.get('schema_version'))[:20]}, and {SCHEMA_VERSION} is known here"
        )
    if "sha256" in told and told["sha256"] != _hash(
        {name: value for name, value in told.items() if name != "sha256"}
    ):
        raise BadInput(
            "this expert was changed after it was exported: its hash does not fit; export it again, or take sha256 out"
        )
    body = told.get("expert")
    config = _renamed(expert_config(body), dict(graphs or {}))
    known = service.graphs.names()
    for name in config.graphs:
        if name not in known:
            raise UnknownName("graph", name, known)
    return _fitting(config, service)


def _fitting(config: ExpertConfig, service: ExpertService) -> TakenExpert:
    """A configuration without what is not here, and words on that."""
    warnings = []
    skills = [each for each in config.playbook_skills if each in service.playbooks]
    warnings += [
        f"the playbook {each} is not here and was left out"
        for each in config.playbook_skills
        if each not in service.playbooks
    ]
    models = {task: name for task, name in config.models.items() if name in service.models.makers}
    warnings += [
        f"the model {each} is not here: the usual one answers"
        for each in config.models.values()
        if each not in models.values()
    ]
    held = [service.graphs.graph(name) for name in config.graphs]
    types = {type for graph in held for type in graph.type_names}
    warnings += [f"no graph has edges of the type {each}" for each in _types(config) if each not in types]
    properties = {name for graph in held for known in graph.node_properties for name in known}
    warnings += [
        f"no node has the dimension {each}" for each in _dimensions(config) if each not in properties
    ]
    told = json.loads(config.model_dump_json(exclude_unset=True)) | {
        "playbook_skills": skills,
        "models": models,
    }
    return TakenExpert(expert_config(told), tuple(dict.fromkeys(warnings)))


def _renamed(config: ExpertConfig, graphs: Mapping[str, str]) -> ExpertConfig:
    """A configuration that names graphs by the names that they have here."""
    if odd := [name for name in graphs if name not in config.graphs]:
        raise UnknownName("graph of this expert", odd[0], config.graphs)
    if not graphs:
        return config

    def local_name(name: str) -> str:
        return graphs.get(name, name)

    told: dict[str, Any] = json.loads(config.model_dump_json(exclude_unset=True))
    if "kg_db_id" in told:
        told["kg_db_id"] = told["kg_db_id"] and local_name(told["kg_db_id"])
    told["kg_db_ids"] = [local_name(name) for name in told.get("kg_db_ids", [])]
    told["graph_weights"] = {
        local_name(name): weight for name, weight in told.get("graph_weights", {}).items()
    }
    for edge in told.get("cross_edges", []):
        for end in ("source", "target"):
            name, sign, id = edge[end].partition(":")
            edge[end] = local_name(name) + sign + id
    return expert_config(told)


def _needs(config: ExpertConfig, graph: PropertyGraph) -> dict[str, Json]:
    properties = {name for known in graph.node_properties for name in known}
    return {
        "nodes": len(graph),
        "edges": sum(1 for _ in graph.edges),
        "digest": graph.digest,
        "edge_types": _some(_types(config), graph.type_names),
        "dimensions": _some(_dimensions(config), properties),
    }


def _some(named: Collection[str], there: Collection[str]) -> list[str]:
    return sorted({each for each in named if each in there})


def _types(config: ExpertConfig) -> tuple[str, ...]:
    goals = [type for goal in config.custom_goal_mappings.values() for type in goal.boost_types]
    return tuple(dict.fromkeys([*(config.retrieval.boost_types or ()), *goals]))


def _dimensions(config: ExpertConfig) -> tuple[str, ...]:
    goals = [name for goal in config.custom_goal_mappings.values() for name in goal.dimension_boosts]
    return tuple(dict.fromkeys([*config.dimension_filters, *goals]))


def _hash(told: Mapping[str, Json]) -> str:
    return hashlib.sha256(
        json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()
    ).hexdigest()
