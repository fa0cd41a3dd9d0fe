"""Routes of the one marketplace that whoever runs the server named: what it offers, and taking an expert in.
No request names a place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field

from kgot_lab.errors import LabError, UnknownName
from kgot_lab.experts.error_messages import log, reason_logged
from kgot_lab.experts.federation.marketplace import HASH_MISMATCH, fetched_expert, listed_experts
from kgot_lab.experts.http.responses import NOT_FOUND, Admin, MarketAway
from kgot_lab.experts.http.sharing_routes import ImportedExpert
from kgot_lab.experts.portable import taken
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import ExpertService

_SECONDS = 10.0  # that the marketplace has to answer
_AWAY = "the marketplace of this server gives nothing that can be used: the owner of the server finds the reason in its log"


class OfferedExpert(BaseModel):
    """An expert of the marketplace: what it is fetched by, and its scores as its publisher measured them."""

    name: str
    description: str
    sha256: str
    scores: dict[str, float] | None


class MarketImport(BaseModel):
    """The name of an expert of the marketplace; `graphs` says which graph of this server stands for one of its own, `dry` only looks."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}
    name: Annotated[str, Field(min_length=1, max_length=200)]
    graphs: Annotated[dict[str, Annotated[str, Field(max_length=100)]], Field(max_length=20)] = {}
    dry: bool = False


def trading_router(service: ExpertService, market: Path | str) -> APIRouter:
    """The routes of a marketplace: a folder, or an address."""
    router = APIRouter(prefix="/api/market", tags=["sharing"])

    @router.get("", response_model=list[OfferedExpert])
    def list_market(who: Admin) -> Any:
        """The experts of the marketplace of this server."""
        try:
            return [each.to_json() for each in listed_experts(market, timeout=_SECONDS)]
        except LabError as error:
            raise _away(error) from None

    @router.post("/import", response_model=ImportedExpert, status_code=201, responses=NOT_FOUND)
    def import_from_market(who: Admin, sent: Annotated[MarketImport, Body()]) -> Any:
        """Take an expert of the marketplace in, if its hash is that of the index and it fits; what is lacking
        is told.
        """
        try:
            told = fetched_expert(market, sent.name, timeout=_SECONDS)
        except UnknownName:
            raise NotFound("expert in the marketplace") from None
        except LabError as error:
            raise _away(error) from None
        found = taken(told, service, graphs=sent.graphs)
        made = None if sent.dry else service.add(found.config)
        return {"id": made and made.id, "name": found.config.name, "warnings": list(found.warnings)}

    return router


def _away(error: LabError) -> MarketAway:
    """What is told of a marketplace that fails: that a file was changed, or else nothing that says where it
    lies.
    """
    log.warning("the marketplace: %s: %s", type(error).__name__, reason_logged(error))
    return MarketAway(HASH_MISMATCH if str(error) == HASH_MISMATCH else _AWAY)
