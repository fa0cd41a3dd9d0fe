"""Routes by which people bring graphs: the files of one are sent one by one, then it is read."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool

from kgot_lab.errors import BadInput, LabError, UnknownName
from kgot_lab.experts.chat.prompting import PERSONA_STYLES
from kgot_lab.experts.http import schemas
from kgot_lab.experts.http.responses import NOT_FOUND, Admin, Caller
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import ExpertService
from kgot_lab.experts.uploads import UploadFolder

_Upload = Annotated[str, Path(max_length=40, description="the id of an upload, chosen by the client")]
_BYTES = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}


def upload_router(service: ExpertService, uploads: UploadFolder) -> APIRouter:
    """Build the routes under /api/uploads and /api/graphs."""
    router = APIRouter(prefix="/api", tags=["graphs"])

    @router.put(
        "/uploads/{upload}/{path:path}",
        response_model=schemas.StoredRating,
        openapi_extra={"requestBody": _BYTES},
    )
    async def put_file(who: Admin, upload: _Upload, path: str, request: Request) -> Any:
        """Store one file of an upload under its path in the folder that is brought."""
        await run_in_threadpool(uploads.put_file, upload, path, await request.body())
        return {"kept": True}

    @router.delete("/uploads/{upload}", response_model=schemas.Deleted)
    def discard(who: Admin, upload: _Upload) -> Any:
        """Delete what was sent of an upload that is not wanted any more."""
        uploads.discard(upload)
        return {"deleted": True}

    @router.post("/graphs", response_model=dict[str, Any], status_code=201)
    def finish(who: Admin, sent: schemas.FinishedUpload) -> Any:
        """Make a graph of an upload, whose reading begins. `GET /api/choices` tells how far it is."""
        id = uploads.finish(sent.upload, sent.name, service.graphs.names())
        threading.Thread(target=_read_graph, args=(service, id), daemon=True).start()
        return service.graphs.state(id)

    @router.delete("/graphs/{id}", response_model=schemas.Deleted, responses=NOT_FOUND)
    def remove(who: Admin, id: Annotated[str, Path(max_length=100)]) -> Any:
        """Delete an uploaded graph that no expert uses."""
        if users := [expert.name for expert in service.tables.experts() if id in expert.graphs]:
            raise BadInput(f"the graph {id} is used by {', '.join(users[:5])}: change or delete that first")
        try:
            service.graphs.remove_upload(id)
        except UnknownName:
            raise NotFound("uploaded graph") from None
        return {"deleted": True}

    return router


def choices_router(service: ExpertService) -> APIRouter:
    """Build the route of what an expert can be made of."""
    router = APIRouter(prefix="/api", tags=["graphs"])

    @router.get("/choices", response_model=dict[str, Any])
    def list_choices(who: Caller) -> Any:
        """List what an expert can be made of: graphs with their state, playbooks, models and styles."""
        return {
            "graphs": [service.graphs.state(name) for name in service.graphs.names()],
            "playbooks": {name: each.title for name, each in service.playbooks.items()},
            "models": sorted(service.models.makers),
            "styles": list(PERSONA_STYLES),
            "uploads": service.graphs.uploads is not None and service.graphs.uploads.is_open,
        }

    return router


def _read_graph(service: ExpertService, id: str) -> None:
    with suppress(LabError):  # the state of the graph has the reason
        service.graphs.graph(id)
