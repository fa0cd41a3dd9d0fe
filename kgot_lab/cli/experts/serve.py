"""`kgot-lab serve`: experts on this computer, for browsers, for chat clients, for assistants and for
programs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgot_lab.cli import terminal
from kgot_lab.cli.experts import open_service, place_of_proposals, place_of_store
from kgot_lab.cli.options import MODELS, with_option_groups
from kgot_lab.errors import BadInput, LabError, NotInstalled

if TYPE_CHECKING:
    from kgot_lab.experts.chat.consulting import Consultants
    from kgot_lab.experts.service import ExpertService


@dataclass(frozen=True)
class _ModelOptions:
    """What experts answer with."""

    model: Annotated[str, typer.Option("--model", help=f"what experts answer with: {MODELS}")] = "local"
    models: Annotated[
        Path | None, typer.Option("--models", help="a YAML file of models, which experts may name")
    ] = None


@dataclass(frozen=True)
class _ListenOptions:
    """Where the server listens, and who may ask."""

    host: Annotated[str, typer.Option("--host", help="tokens are required off loopback")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free")] = 8400
    share_port: Annotated[
        bool, typer.Option("--share-port", help="several servers share one port; with --store postgresql://…")
    ] = False
    tokens: Annotated[
        bool, typer.Option("--tokens", help="require tokens on loopback too, as behind a proxy")
    ] = False
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="a name by which a proxy reaches this server; repeat for more"),
    ] = None
    stdio: Annotated[
        bool,
        typer.Option("--stdio", help="serve one assistant on standard input and output (MCP), and no HTTP"),
    ] = False


@dataclass(frozen=True)
class _TokenOptions:
    """A token to make."""

    new_token: Annotated[
        str | None, typer.Option("--new-token", help="make a token for this tenant, print it once, and end")
    ] = None
    role: Annotated[
        str, typer.Option("--role", help="of a new token: user (may talk) or admin (may change experts)")
    ] = "user"


@dataclass(frozen=True)
class _FederationOptions:
    """Other servers."""

    peers: Annotated[
        Path | None,
        typer.Option(
            "--peers",
            help="a JSON file of other instances that may be asked, and may ask; the own key is printed",
        ),
    ] = None
    market: Annotated[
        str | None,
        typer.Option(
            "--market", help="a marketplace, a folder or an address, from which admins may take experts in"
        ),
    ] = None


@with_option_groups
def serve_experts(
    use: _ModelOptions,
    listen: _ListenOptions,
    tenants: _TokenOptions,
    federation: _FederationOptions,
    graphs: Annotated[
        Path | None,
        typer.Argument(help="a folder of graphs: files of any known form, folders of code and notes"),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", help="storage of experts and conversations: a file, or postgresql://HOST/NAME"
        ),
    ] = None,
) -> None:
    """Serve experts: a page at /, REST at /api, the protocol of OpenAI at /v1, tools for assistants at /mcp."""
    if tenants.new_token is not None:
        from kgot_lab.experts.http.tokens import new_token as made
        from kgot_lab.experts.repository import open_experts

        typer.echo(made(open_experts(place_of_store(store)), tenants.new_token, tenant_role(tenants.role)))
        return
    market = federation.market
    if market is not None and "://" not in market and not Path(market).is_dir():
        raise BadInput(
            f"{market} is no folder: name that of a marketplace, or its address, https://HOST/PATH"
        )
    if listen.share_port and "://" not in place_of_store(store):
        terminal.say(
            "note: --share-port is for several servers on one store: with a file they wait for each other; --store postgresql://…"
        )
    service = open_service(graphs, store, use.model, use.models)
    if federation.peers is not None:
        service.consultants = consultants_of(federation.peers)
    service.market = market
    from kgot_lab.experts.learning.ledger import open_proposals
    from kgot_lab.experts.learning.reviewing import ReviewQueue

    # here too, since graphs are asked with what was accepted
    review_queue = ReviewQueue(service, open_proposals(place_of_proposals(store)))
    if listen.stdio:
        threading.Thread(target=make_ready, args=(service,), daemon=True).start()
        from kgot_lab.experts.http.mcp import expert_tools

        tools = expert_tools(service)
        terminal.log_warnings()
        tools.run("stdio")
        return
    try:
        from kgot_lab.experts.http.connections import LimitedServer
    except ImportError:
        raise NotInstalled("serve", "a web server") from None
    from kgot_lab.experts.http.auth import GuardRules, is_local_host
    from kgot_lab.experts.http.connections import listening_socket
    from kgot_lab.experts.http.server import expert_app
    from kgot_lab.experts.http.tokens import any_token

    host, names = listen.host, tuple(listen.name or ())
    rules = GuardRules(host, listen.tokens or not is_local_host(host), names=names)
    if rules.tokens and not any_token(service.tables):
        raise BadInput(
            "this server demands tokens, and there is none: make one with kgot-lab serve --new-token NAME"
        )
    threading.Thread(target=make_ready, args=(service,), daemon=True).start()
    app = expert_app(service, rules, review_queue)
    terminal.log_warnings()
    listening = listening_socket(host, listen.port, shared=listen.share_port)
    at = f"[{host}]" if ":" in host else host
    experts = ", ".join(each.id for each in service.tables.experts())
    terminal.say(f"experts at http://{at}:{listening.getsockname()[1]}/ ({experts}); Ctrl-C ends it")
    LimitedServer(app).run([listening])


def tenant_role(role: str) -> Literal["admin", "user"]:
    """A role by its name; raises BadInput."""
    if role == "admin":
        return "admin"
    if role == "user":
        return "user"
    raise BadInput(f"a role is user or admin, not {role!r}")


def consultants_of(peers: Path) -> Consultants:
    """The other instances in a file; the own key is made when there is none."""
    from platformdirs import user_data_path

    from kgot_lab.experts.chat.consulting import Consultants
    from kgot_lab.experts.federation.delegation import Federation
    from kgot_lab.experts.federation.envelope import load_instance_key
    from kgot_lab.experts.federation.signing import open_nonces, read_peers

    folder = user_data_path("kgot_lab", appauthor=False)
    folder.mkdir(parents=True, exist_ok=True)
    key = load_instance_key(folder / "instance.key")
    terminal.say(f"the public key of this instance: {key.public}")
    return Consultants(Federation(key, read_peers(peers), open_nonces(folder / "nonces.db")))


def make_ready(service: ExpertService) -> None:
    """Look for the model, and read the graphs, before somebody waits for them; what is not there is told, and
    the server goes on.
    """
    try:
        service.models.named()  # opened, not yet loaded
    except LabError as error:
        terminal.say(
            f"note: no question can be answered yet, the model {service.models.usual} is not there: {error}"
        )
        terminal.say("note: each question looks for it again, so this server need not be restarted")
    for name in service.graphs.names():
        try:
            service.graphs.graph(name)
        except LabError as error:
            terminal.say(f"note: {error}")
    for told in service.graphs.passed_over():
        terminal.say(f"note: {told}")
    terminal.say("all graphs are read")
