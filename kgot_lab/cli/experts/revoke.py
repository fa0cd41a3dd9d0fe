"""`kgot-lab experts tokens` and `revoke`: who may talk to the experts of a server, and who may no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.experts import StoreOfExperts, place_of_store
from kgot_lab.cli.memory import print_rows
from kgot_lab.errors import BadInput
from kgot_lab.text.counted import counted

if TYPE_CHECKING:
    from kgot_lab.experts.repository import ExpertTables


def list_tokens(store: StoreOfExperts = None, as_json: options.AsJson = False) -> None:
    """List valid tokens: tenant, role and date. The tokens themselves are not stored."""
    from kgot_lab.experts.http.tokens import held_tokens

    with _existing_tables(store) as tables:
        rows = [
            {"tenant": each.tenant, "role": each.role, "made": each.made.isoformat(timespec="seconds")}
            for each in held_tokens(tables)
        ]
    print_rows(rows, as_json, lambda row: f"{row['tenant']}  {row['role']}  {row['made']}")
    terminal.say(counted(len(rows), "token"))


def revoke_tenant(
    tenant: Annotated[str, typer.Argument(help="the tenant, as `kgot-lab experts tokens` shows it")],
    store: StoreOfExperts = None,
) -> None:
    """Revoke all tokens of a tenant, also on running servers; the conversations stay, for a new token."""
    from kgot_lab.experts.http.tokens import revoke_tokens

    with _existing_tables(store) as tables:
        held = revoke_tokens(tables, tenant)
    if not held:
        raise BadInput(f"{tenant} has no token that holds: kgot-lab experts tokens lists those that do")
    typer.echo(f"{counted(held, 'token')} of {tenant} withdrawn")


@contextmanager
def _existing_tables(store: str | None) -> Iterator[ExpertTables]:
    """Tables that are there already: else a mistyped place would say that nobody has a token."""
    from kgot_lab.experts.repository import open_experts

    place = place_of_store(store)
    if "://" not in place and not Path(place).is_file():
        raise BadInput(
            f"no experts are kept in {place}: name the --store that kgot-lab serve is started with"
        )
    tables = open_experts(place)
    try:
        yield tables
    finally:
        tables.close()
