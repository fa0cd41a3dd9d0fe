"""The options that several commands share, and groups of them as dataclasses, from which commands are built."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

MODELS = "local, openai:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, openrouter:MODEL, http://host/v1#MODEL, or recorded:FILE"
_FILES = "a folder with text, Markdown, HTML, PDF or Word files, or one such file"
_TAPE = "keep the model's replies in this file; those it holds are not asked for"
_STORES = "in_memory (Python), cypher_embedded, sparql_embedded, cypher_server, sparql_server, or fused (three languages at once)"
_AT = "where the store is: a server's URL (Neo4j's password is taken from KGOT_NEO4J_PASSWORD), or a file to keep the graph in"
_CERTIFY = "hedge or withhold an answer that does not hold by its sources; the run's file, page and lines hold what led to it"
_GRAPH = "a graph to begin with: a snapshot, GraphML, Turtle, a trace, a store's file, or the address of a server with --namespace"

# --- models and money
# -----------------------------------------------------------------------------------------------------

Model = Annotated[str | None, typer.Option("--model", help=f"by default local; {MODELS}")]
ModelAgain = Annotated[str | None, typer.Option("--model", help=f"by default the model of the run; {MODELS}")]
Execution = Annotated[
    str | None, typer.Option("--execution-model", help="another model, to choose tools and write arithmetic")
]
Vision = Annotated[
    str | None, typer.Option("--vision-model", help="a model that answers questions about images")
]
ModelsFile = Annotated[
    Path | None, typer.Option("--models", help="a YAML file of models, to be named by --model")
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", help="stop before the whole run makes more model calls")
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", help="stop before models work longer for the whole run, in seconds"),
]
MaxDollars = Annotated[
    float | None, typer.Option("--max-dollars", help="stop before the whole run costs more, in US dollars")
]

# --- limits
# ---------------------------------------------------------------------------------------------------------------

Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="limits: local or paths (both for small models), reference (the published defaults), or auto (local or reference)",
    ),
]
StepCount = Annotated[int | None, typer.Option("--steps", help="INSERT steps at most")]
VoteCount = Annotated[int | None, typer.Option("--votes", help="votes a step")]
RepairCount = Annotated[int | None, typer.Option("--repairs", help="repairs of one failing statement")]
Temperature = Annotated[float | None, typer.Option("--temperature", help="of everything but votes")]
VoteTemperature = Annotated[float | None, typer.Option("--vote-temperature", help="of votes and samples")]
SetLimit = Annotated[
    list[str] | None, typer.Option("--set", help="another limit: NAME=VALUE, as in reply_tokens.vote=500")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="a page of YAML with any of these; what is given here overrides it"),
]

# --- what facts are taken from
# --------------------------------------------------------------------------------------------

Documents = Annotated[Path | None, typer.Option("--documents", help=_FILES)]
DocumentsFirst = Annotated[Path, typer.Argument(help=_FILES)]
Attach = Annotated[
    list[Path] | None, typer.Option("--attach", help="a file that belongs to the question; repeat for more")
]
ToolName = Annotated[
    list[str] | None,
    typer.Option("--tool", help="a tool by name; repeat for more; all for all that work here"),
]
Web = Annotated[bool, typer.Option("--web", help="tools may ask the web")]
MirrorFolder = Annotated[Path | None, typer.Option("--mirror", help="a folder of pages in place of the web")]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine", help="what searches the web: serpapi, tavily, brave or ddgs; by default one with a key"
    ),
]

# --- the graph
# ------------------------------------------------------------------------------------------------------------

StoreKind = Annotated[str | None, typer.Option("--store", help=f"where the graph grows: {_STORES}")]
At = Annotated[str | None, typer.Option("--at", help=_AT)]
Namespace = Annotated[
    str | None, typer.Option("--namespace", help="which graph of a server; by default a new one")
]
BeginWith = Annotated[str | None, typer.Option("--graph", help=_GRAPH)]
SaveGraph = Annotated[
    Path | None, typer.Option("--save-graph", help="a file for the graph as it is in the end")
]
Snapshots = Annotated[
    Path | None, typer.Option("--snapshots", help="a folder for the graph after every write")
]
MemoryFile = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="a file of claims, or postgresql://HOST/NAME: begin with the facts in it, and learn there",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", help="the memory at this time, such as 2026-11-23; nothing is learned"),
]
Certify = Annotated[bool, typer.Option("--certify", help=_CERTIFY)]
Keep = Annotated[
    bool, typer.Option("--keep", help="begin with the graph that is in the store, and add to it")
]
Wipe = Annotated[bool, typer.Option("--wipe", help="empty the store, or its namespace, first")]
Unsafe = Annotated[
    bool, typer.Option("--unsafe", help="run the model's statements without a sandbox, with all your rights")
]

# --- what a run leaves
# ----------------------------------------------------------------------------------------------------

TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", help="where the run is written, event by event (default: runs/TIME.jsonl)"),
]
Tape = Annotated[Path | None, typer.Option("--tape", help=_TAPE)]
Html = Annotated[Path | None, typer.Option("--html", help="write the run as one HTML page")]
AsJson = Annotated[
    bool, typer.Option("--json", help="print the result as one JSON object; progress goes to standard error")
]

# --- groups of options
# ----------------------------------------------------------------------------------------------------


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Turn each parameter whose type is a dataclass into one command-line option per field.

    Typer builds a command from its signature: this gives it the flat one, and calls the command with the
    dataclasses made of the values.
    """
    hints = get_type_hints(command, include_extras=True)
    flat: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            flat.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name], include_extras=True)
        flat += [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=each.default,
                annotation=types[each.name],
            )
            for each in fields(hints[name])
        ]

    @wraps(command)
    def run(**values: Any) -> None:
        grouped = {
            name: group(**{each.name: values.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **grouped)

    del run.__wrapped__
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in flat}
    return run


@dataclass(frozen=True)
class BudgetOptions:
    """What models may cost."""

    max_calls: MaxCalls = None
    max_seconds: MaxSeconds = None
    max_dollars: MaxDollars = None


@dataclass(frozen=True)
class PlannerOptions(BudgetOptions):
    """Which model is asked, and what it may cost."""

    model: Model = None
    models: ModelsFile = None


@dataclass(frozen=True)
class ModelOptions(PlannerOptions):
    """Which models are asked, and what they may cost."""

    execution: Execution = None


@dataclass(frozen=True)
class ResumedModelOptions(ModelOptions):
    """Which models go on with a run."""

    model: ModelAgain = None


@dataclass(frozen=True)
class LimitOptions:
    """How long the loop may try."""

    preset: Preset = None
    steps: StepCount = None
    votes: VoteCount = None
    repairs: RepairCount = None
    temperature: Temperature = None
    vote_temperature: VoteTemperature = None
    settings: SetLimit = None
    config: ConfigFile = None

    def limits(self) -> dict[str, object]:
        """Return the limits that were given, by name; raises BadInput for one that there is not."""
        from kgot_lab.cli.configuration import parse_limits

        single = ("steps", "votes", "repairs", "temperature", "vote_temperature")
        return parse_limits(self.settings or [], {name: getattr(self, name) for name in single})


@dataclass(frozen=True)
class SourceOptions:
    """Where facts come from."""

    documents: Documents = None
    attach: Attach = None
    web: Web = False
    mirror: MirrorFolder = None


@dataclass(frozen=True)
class ToolOptions(SourceOptions):
    """Where facts come from, and by which tools."""

    tools: ToolName = None
    engine: EngineName = None
    vision: Vision = None


@dataclass(frozen=True)
class PlaceOptions:
    """Which store a run goes on in."""

    store: StoreKind = None
    at: At = None
    namespace: Namespace = None
    unsafe: Unsafe = False


@dataclass(frozen=True)
class StoreOptions(PlaceOptions):
    """Which store the graph grows in, and what it begins with."""

    keep: Keep = False
    wipe: Wipe = False
    graph: BeginWith = None
    memory: MemoryFile = None
    as_of: AsOf = None


@dataclass(frozen=True)
class ResultOptions:
    """What is written and printed."""

    tape: Tape = None
    html: Html = None
    as_json: AsJson = False
    save_graph: SaveGraph = None
    snapshots: Snapshots = None
    certify: Certify = False


@dataclass(frozen=True)
class RunOptions(ResultOptions):
    """What is written and printed, the run itself included."""

    trace: TraceFile = None
