"""`kgot-lab experts`: the experts of this computer or of a marketplace, published in one and fetched from
one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.experts import open_review_queue, open_service
from kgot_lab.cli.memory import print_rows
from kgot_lab.errors import BadInput
from kgot_lab.text.counted import counted

experts = typer.Typer(
    help="List, publish and fetch experts, show drift, and revoke tokens.",
    no_args_is_help=True,
)
StoreOfExperts = Annotated[
    str | None,
    typer.Option("--store", help="storage of experts and conversations: a file, or postgresql://HOST/NAME"),
]
FolderOfGraphs = Annotated[
    Path | None, typer.Option("--graphs", help="the folder of graphs that `kgot-lab serve` is started with")
]
_Models = Annotated[
    Path | None,
    typer.Option("--models", help="the YAML file of models that `kgot-lab serve` is started with"),
]
_MARKET = "a folder of exported experts, or the address that it is served at"


@experts.command("list")
def list_of_experts(
    market: Annotated[
        str | None, typer.Argument(help=f"{_MARKET}; without it those of this computer are listed")
    ] = None,
    store: StoreOfExperts = None,
    as_json: options.AsJson = False,
) -> None:
    """List the experts of a marketplace with their measured scores, or those of this computer."""
    from kgot_lab.experts.federation.marketplace import listed_experts

    if market is None:
        held = open_service(None, store, searching=False).tables.experts()
        rows = [
            {"id": each.id, "name": each.name, "description": each.description, "graphs": list(each.graphs)}
            for each in held
        ]
        print_rows(rows, as_json, lambda row: f"{row['id']}: {row['name']} ({', '.join(row['graphs'])})")
        return
    rows = [each.to_json() for each in listed_experts(market)]
    print_rows(
        rows,
        as_json,
        lambda row: f"{row['name']}: {_format_scores(row['scores'])}  {row['description']}".rstrip(),
    )
    terminal.say(counted(len(rows), "expert"))


@experts.command("publish")
def publish_expert(
    expert: Annotated[str, typer.Argument(help="the id of an expert, as `kgot-lab experts list` shows it")],
    market: Annotated[
        Path, typer.Argument(help="the folder of a marketplace; one that is not there is made")
    ],
    store: StoreOfExperts = None,
    graphs: FolderOfGraphs = None,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score", help="what you measured of it, NAME=NUMBER; repeat for more; shipped scores go along"
        ),
    ] = None,
) -> None:
    """Publish an expert in the folder of a marketplace, with its hash and its measured scores: no
    conversation and no graph goes along.
    """
    from kgot_lab.experts.federation.marketplace import published_expert
    from kgot_lab.experts.portable import expert_scores, exported, numbers_measured

    if ":/" in str(market):  # as a path has it, of an address
        raise BadInput(
            "experts are published in a folder: name it, and put it behind an address by a server of files"
        )
    service = open_review_queue(graphs, store).service
    told = exported(service.expert(expert), service.graphs)
    measured = numbers_measured(expert_scores(service, expert)["measured"] or {}) | _parse_scores(score or [])
    listed = published_expert(market, json.dumps(told, ensure_ascii=False, indent=1), measured or None)
    typer.echo(f"{listed.file}  sha256 {listed.sha256}")


@experts.command("fetch")
def fetch_expert(
    name: Annotated[
        str, typer.Argument(help="the name of an expert, as `kgot-lab experts list MARKET` shows it")
    ],
    market: Annotated[str, typer.Argument(help=_MARKET)],
    store: StoreOfExperts = None,
    graphs: FolderOfGraphs = None,
    models: _Models = None,
    standing_for: Annotated[
        list[str] | None,
        typer.Option(
            "--graph", help="THEIRS=OURS: your graph for one that the expert names; repeat for more"
        ),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="check only, store nothing")] = False,
) -> None:
    """Fetch an expert from a marketplace; a file whose hash differs from the index is refused."""
    from kgot_lab.experts.federation.marketplace import fetched_expert
    from kgot_lab.experts.portable import taken

    ours = dict(_parted(each, "--graph is THEIRS=OURS") for each in standing_for or [])
    told = fetched_expert(market, name)
    service = open_review_queue(graphs, store, models).service
    found = taken(told, service, graphs=ours)
    for warning in found.warnings:
        terminal.say(f"note: {warning}")
    typer.echo("it fits" if dry else service.add(found.config).id)


def _parse_scores(told: list[str]) -> dict[str, float]:
    """Scores from NAME=NUMBER; raises BadInput."""
    found = {}
    for name, number in (_parted(each, "--score is NAME=NUMBER") for each in told):
        try:
            found[name] = float(number)
        except ValueError:
            raise BadInput(f"--score is NAME=NUMBER, and {number!r} is no number") from None
    return found


def _parted(told: str, wanted: str) -> tuple[str, str]:
    name, sign, value = told.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise BadInput(f"{wanted}, not {told!r}")
    return name.strip(), value.strip()


def _format_scores(scores: dict[str, float] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in scores.items()) if scores else "not measured"
