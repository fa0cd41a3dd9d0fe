"""`kgot-lab experts`: list, publish and fetch experts, and manage their tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.memory import print_result
from kgot_lab.cli.options import argument, option
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.text.cleaning import format_count

if TYPE_CHECKING:
    from kgot_lab.experts.learning.reviewing import LearnedGraphs
    from kgot_lab.experts.repository import ExpertTables
    from kgot_lab.experts.service import ExpertService

# Opening the local experts with their graphs and models.


def experts_location(store: str | None) -> str:
    """Return the location of the experts: the given one, or a file in the user's data folder."""
    from platformdirs import user_data_path

    if store is not None:
        return store
    folder = user_data_path("kgot_lab", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / "experts.db")


def proposals_location(store: str | None) -> str:
    """Return the location of the proposals.

    It is the same server, in a schema of their own, or a file of its own beside that of the experts.
    """
    location = experts_location(store)
    if "://" in location or location == ":memory:":
        return location
    if not location.endswith(".db"):
        return f"{location}.proposals"
    return location.removesuffix(".db") + ".proposals.db"


def uploads_location(store: str | None) -> Path:
    """Return the folder of uploaded graphs: beside the file of the experts, or in the user's data folder."""
    location = experts_location(store)
    is_file = "://" not in location and location != ":memory:"
    return Path(location if is_file else experts_location(None)).with_suffix(".graphs")


def open_service(
    graphs: Path | None,
    store: str | None,
    model: str = "local",
    models: Path | None = None,
    *,
    searching: bool = True,
) -> ExpertService:
    """Open the service of a server: its graphs, tables and models, and the bundled experts.

    If `searching` is False, nothing is opened that only dense retrieval needs.
    """
    from kgot_lab.embedding.embedders import query_embedder
    from kgot_lab.experts.graph_folder import GraphFolder
    from kgot_lab.experts.repository import open_experts
    from kgot_lab.experts.service import SHIPPED_GRAPHS, ExpertModels, ExpertService, add_shipped_experts
    from kgot_lab.experts.uploads import UploadFolder
    from kgot_lab.llm import check_spec, connect
    from kgot_lab.llm.capabilities import omit_quotes
    from kgot_lab.llm.models import load_models

    if graphs is not None and not graphs.is_dir():
        raise BadInput(f"{graphs} is no folder: name the folder that the graphs lie in")
    registry = load_models(models) if models else {}
    check_spec(model, registry) if model not in registry else None

    def say(text: str) -> None:
        terminal.say(omit_quotes(text))  # what is printed is the log of the server

    names = (model, *registry)
    makers = {name: (lambda name=name: connect(name, models=registry, say=say)) for name in names}
    try:
        embedder = query_embedder() if searching else None
    except NotInstalled as error:
        terminal.say(f"note: no dense retrieval: {error}")
        embedder = None
    folder = GraphFolder(graphs, SHIPPED_GRAPHS, UploadFolder(uploads_location(store)))
    tables = open_experts(experts_location(store))
    service = ExpertService(tables, folder, ExpertModels(makers, model), embedder=embedder)
    add_shipped_experts(service)
    return service


def open_learned_graphs(graphs: Path | None, store: str | None, models: Path | None = None) -> LearnedGraphs:
    """Open the service of a server with its accepted proposals, for a command that answers no question."""
    from kgot_lab.experts.learning.ledger import open_proposals
    from kgot_lab.experts.learning.reviewing import LearnedGraphs

    service = open_service(graphs, store, models=models, searching=False)
    return LearnedGraphs(service, open_proposals(proposals_location(store)))


experts = typer.Typer(help="List, publish, fetch experts; show drift; revoke tokens.", no_args_is_help=True)
EXPERT_STORE = option("storage of experts and conversations: a file, or postgresql://HOST/NAME", "--store")
GRAPH_FOLDER = option("the folder of graphs that `kgot-lab serve` is started with", "--graphs")

_MARKET = "a folder of exported experts, or the address that it is served at"


@experts.command("list")
def list_experts(
    market: str | None = argument(f"{_MARKET}; without it those of this computer are listed", default=None),
    store: str | None = EXPERT_STORE,
    as_json: bool = options.AS_JSON,
) -> None:
    """List the experts of a marketplace with their measured scores, or those of this computer."""
    from kgot_lab.experts.federation.marketplace import list_marketplace

    if market is None:
        stored = open_service(None, store, searching=False).tables.experts()
        fields = ("id", "name", "description")
        rows = [{name: getattr(e, name) for name in fields} | {"graphs": list(e.graphs)} for e in stored]
        lines = (f"{row['id']}: {row['name']} ({', '.join(row['graphs'])})" for row in rows)
        print_result(rows, as_json, lines)
        return
    rows = [expert.to_json() for expert in list_marketplace(market)]

    def line(row: dict[str, Any]) -> str:
        return f"{row['name']}: {_format_scores(row['scores'])}  {row['description']}".rstrip()

    print_result(rows, as_json, map(line, rows))
    terminal.say(format_count(len(rows), "expert"))


@experts.command("publish")
def publish_expert(
    expert: str = argument("the id of an expert, as `kgot-lab experts list` shows it"),
    market: Path = argument("the folder of a marketplace; created if missing"),
    store: str | None = EXPERT_STORE,
    graphs: Path | None = GRAPH_FOLDER,
    score: list[str] | None = option("what you measured besides shipped scores, NAME=NUMBER; repeat"),
) -> None:
    """Publish an expert in the folder of a marketplace, with its hash and its measured scores.

    No conversation and no graph is included.
    """
    from kgot_lab.experts.federation.marketplace import publish_to_marketplace
    from kgot_lab.experts.portable import expert_scores, expert_to_json, flatten_scores

    if ":/" in str(market):  # as a path has it, of an address
        raise BadInput(f"experts are published in a folder, not at {market}: name one that a server serves")
    service = open_learned_graphs(graphs, store).service
    config = expert_to_json(service.expert(expert), service.graphs)
    measured = flatten_scores(expert_scores(service, expert)["measured"] or {}) | _parse_scores(score or [])
    entry = publish_to_marketplace(market, json.dumps(config, ensure_ascii=False, indent=1), measured or None)
    typer.echo(f"{entry.file}  sha256 {entry.sha256}")


@experts.command("fetch")
def fetch_expert(
    name: str = argument("the name of an expert, as `kgot-lab experts list MARKET` shows it"),
    market: str = argument(_MARKET),
    store: str | None = EXPERT_STORE,
    graphs: Path | None = GRAPH_FOLDER,
    models: Path | None = option("the YAML file of models that `kgot-lab serve` is started with"),
    standing_for: list[str] | None = option(
        "THEIRS=OURS: your graph for a graph it names; repeat", "--graph"
    ),
    dry: bool = option("check only, store nothing", "--dry", default=False),
) -> None:
    """Fetch an expert from a marketplace. A file whose hash differs from the index is refused."""
    from kgot_lab.experts.federation.marketplace import fetch_from_marketplace
    from kgot_lab.experts.portable import adapt_expert

    replacements = dict(_split_assignment(pair, "--graph is THEIRS=OURS") for pair in standing_for or [])
    envelope = fetch_from_marketplace(market, name)
    service = open_learned_graphs(graphs, store, models).service
    fetched = adapt_expert(envelope, service, graphs=replacements)
    for warning in fetched.warnings:
        terminal.say(f"note: {warning}")
    typer.echo("it fits" if dry else service.add(fetched.config).id)


def _parse_scores(pairs: list[str]) -> dict[str, float]:
    """Parse scores from NAME=NUMBER. Raises BadInput for another form."""
    scores = {}
    for name, number in (_split_assignment(pair, "--score is NAME=NUMBER") for pair in pairs):
        try:
            scores[name] = float(number)
        except ValueError:
            raise BadInput(f"--score is NAME=NUMBER, and {number!r} is no number") from None
    return scores


def _split_assignment(text: str, requirement: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise BadInput(f"{requirement}, not {text!r}")
    return name.strip(), value.strip()


def _format_scores(scores: dict[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in scores.items()) if scores else "not measured"


# `kgot-lab experts tokens` and `revoke`: who may access the experts of a server.


@experts.command("tokens")
def list_tokens(store: str | None = EXPERT_STORE, as_json: bool = options.AS_JSON) -> None:
    """List valid tokens: tenant, role and date. The tokens themselves are not stored."""
    from kgot_lab.experts.http.tokens import valid_tokens

    with _existing_tables(store) as tables:
        tokens = valid_tokens(tables)
        rows = [vars(token) | {"made": token.made.isoformat(timespec="seconds")} for token in tokens]
    print_result(rows, as_json, (f"{row['tenant']}  {row['role']}  {row['made']}" for row in rows))
    terminal.say(format_count(len(rows), "token"))


@experts.command("revoke")
def revoke_tenant(
    tenant: str = argument("the tenant, as `kgot-lab experts tokens` shows it"),
    store: str | None = EXPERT_STORE,
) -> None:
    """Revoke all tokens of a tenant, also on running servers. Conversations remain for a new token."""
    from kgot_lab.experts.http.tokens import revoke_tokens

    with _existing_tables(store) as tables:
        revoked = revoke_tokens(tables, tenant)
    if not revoked:
        raise BadInput(f"{tenant} has no token that holds: kgot-lab experts tokens lists those that do")
    typer.echo(f"{format_count(revoked, 'token')} of {tenant} revoked")


def _existing_tables(store: str | None) -> ExpertTables:
    """Open tables that must exist, so that a mistyped location is not reported as one without tokens.

    Raises BadInput if there is no such file.
    """
    from kgot_lab.experts.repository import open_experts

    location = experts_location(store)
    if "://" not in location and not Path(location).is_file():
        advice = "name the --store that kgot-lab serve is started with"
        raise BadInput(f"no experts are kept in {location}: {advice}")
    return open_experts(location)


# `kgot-lab experts drift`: dimensions in an expert's graphs that its users contradict.


@experts.command("drift")
def show_drift(
    expert: str = argument("the id of an expert, as `kgot-lab experts list` shows it"),
    store: str | None = EXPERT_STORE,
    graphs: Path | None = GRAPH_FOLDER,
    days: int | None = option("days of conversations to count (default: 90)", min=1),
    words: bool = option("show what people said, too", "--words", default=False),
    as_json: bool = options.AS_JSON,
) -> None:
    """Show which values of dimensions people contradict.

    Shows the direction, the number of people, and the probability of that if the value is right.
    """
    from kgot_lab.experts.learning.contradictions import DRIFT_DAYS, report_drift

    reports = report_drift(open_learned_graphs(graphs, store).service, expert, days=days or DRIFT_DAYS)
    shown = ("node", "dimension", "value", "way", "against", "agreeing", "p")
    rows = [
        {"graph": name, **{field: getattr(drift, field) for field in shown}, "says": str(drift)}
        | ({"words": [statement.words for statement in drift.evidence]} if words else {})
        for name, report in reports.items()
        for drift in report.found
    ]

    def line(row: dict[str, Any]) -> str:
        return "  ".join([f"{row['graph']}: {row['says']}", *(f'"{said}"' for said in row.get("words", ()))])

    print_result(rows, as_json, map(line, rows))
    watched = sum(report.watched for report in reports.values())
    terminal.say(f"{format_count(len(rows), 'value')} contradicted of {watched:,} that people spoke of")
