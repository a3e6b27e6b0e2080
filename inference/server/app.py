"""The server's application: its routes, and what they share from start to stop."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response

from beamless.inference.errors import BeamlessError
from beamless.inference.server import errors, live, speech, transcriptions
from beamless.inference.server.errors import ApiError
from beamless.inference.server.folder import upload_folder
from beamless.inference.server.guard import Guard
from beamless.inference.server.metrics import Metrics
from beamless.inference.server.models import Offer
from beamless.inference.server.options import ServerOptions
from beamless.inference.server.state import State
from beamless.inference.server.workers import Workers

PAGE = Path(__file__).with_name("page.html")

router = APIRouter()


def create_app(offer: Offer, options: ServerOptions | None = None) -> FastAPI:
    """Make a server of models and voices; ``serve.run`` runs it, as does any ASGI server.

    Args:
        offer: what it serves.
        options: whom it answers, and how much it takes.
    """
    options = options or ServerOptions()
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with upload_folder() as folder:
            workers = Workers(options.workers, options.max_queue, metrics)
            pool = ThreadPoolExecutor(max(1, options.max_live), thread_name_prefix="beamless-live")
            app.state.server = State(options, offer, folder, metrics, workers, pool)
            try:
                yield
            finally:
                workers.close()
                pool.shutdown()

    app = FastAPI(title="Beamless", docs_url=None, redoc_url=None, lifespan=lifespan)
    for part in (router, transcriptions.router, speech.router, live.router):
        app.include_router(part)
    app.add_middleware(Guard, options=options, metrics=metrics)
    if options.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(options.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    app.add_exception_handler(ApiError, errors.on_api_error)
    app.add_exception_handler(BeamlessError, errors.on_bad_input)
    app.add_exception_handler(HTTPException, errors.on_http_error)
    app.add_exception_handler(ClientDisconnect, errors.on_departure)
    app.add_exception_handler(Exception, errors.on_fault)
    return app


@router.get("/", include_in_schema=False)
async def page(request: Request) -> Response:
    """Return the page to try it; its browser may reach nothing but this server."""
    host = request.headers.get("host", "")
    policy = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        f"connect-src 'self' ws://{host} wss://{host}; media-src blob:; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    content = PAGE.read_text(encoding="utf-8")
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})


@router.get("/health")
async def health(request: Request) -> Response:
    """Tell whether requests are taken."""
    state: State = request.app.state.server
    if state.stopping.is_set():
        return JSONResponse({"status": "stopping"}, 503)
    return JSONResponse({"status": "ok"})


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the server's figures in Prometheus's text format."""
    state: State = request.app.state.server
    return Response(state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/v1/models")
async def models(request: Request) -> dict[str, Any]:
    """List the models."""
    state: State = request.app.state.server
    return {"object": "list", "data": state.offer.listing()}


@router.get("/v1/models/{model_name:path}")
async def model(request: Request, model_name: str) -> dict[str, Any]:
    """Tell about one model."""
    state: State = request.app.state.server
    for each in state.offer.listing():
        if each["id"] == model_name:
            return each
    raise ApiError(404, f"there is no model {model_name[:100]!r} here", code="model_not_found")
