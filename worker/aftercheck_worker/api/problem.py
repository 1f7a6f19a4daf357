"""Errors as the caller sees them: a status, a short code and one line, never the caller's own text."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from aftercheck_worker.errors import DependencyUnavailable

logger = logging.getLogger(__name__)
RETRY_SECONDS = 2


class Problem(HTTPException):
    """Ends a request with `status` and {"error": code, "detail": one line}."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code


def unavailable(what: str, *, retry: int = RETRY_SECONDS) -> Problem:
    """503 with Retry-After of `retry` seconds: nothing was lost, try again."""
    return Problem(503, "unavailable", f"{what}; retry in {retry} s", {"Retry-After": str(retry)})


def install(app: FastAPI) -> None:
    """Give every error of `app` the one form."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(DependencyUnavailable, _dependency)


async def _http(request: Request, error: Exception) -> JSONResponse:
    _ = request
    if not isinstance(error, HTTPException):
        raise error
    code = error.code if isinstance(error, Problem) else _CODES.get(error.status_code, "refused")
    if error.status_code >= 500:
        logger.warning("request ended with %d: %s", error.status_code, code, extra={"action": "api_error"})
    body = {"error": code, "detail": error.detail}
    return JSONResponse(body, error.status_code, headers=error.headers)


_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed"}


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Say which field and why; pydantic's own form would echo the user's text."""
    _ = request
    if not isinstance(error, RequestValidationError):
        raise error
    found = [
        {
            "field": ".".join(_named(part) for part in one["loc"])[:200],
            "why": one["type"],
        }
        for one in error.errors()[:20]
    ]
    return JSONResponse({"error": "invalid", "detail": "the request does not fit the contract", "fields": found}, 422)


def _named(part: object) -> str:
    """A field's name or a position; a key that is no plain name may be the user's text, and is not repeated."""
    return str(part) if isinstance(part, int) or re.fullmatch(r"[a-z_]{1,40}", str(part)) else "?"


async def _dependency(request: Request, error: Exception) -> JSONResponse:
    problem = unavailable("a service behind this one does not answer")
    _ = error
    return await _http(request, problem)
