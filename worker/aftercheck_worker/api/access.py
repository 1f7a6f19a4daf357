"""Who calls, and what they may do (trust.md S23). The tenant is the token's, never a field of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.tokens import Scope, Token

_bearer = HTTPBearer(auto_error=False, description="`ac_<id>_<secret>`, made by `aftercheck token add`")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def needs(scope: Scope) -> Callable[[Request, Credentials], Token]:
    """Dependency that returns the caller's token when it may do `scope`."""

    def caller(request: Request, given: Credentials) -> Token:
        state = state_of(request)
        if state.tokens.empty:
            token = Token(id="open", sha256="", scopes=("admin",), tenant=state.settings.tenant)
        else:
            found = None if given is None else state.tokens.find(given.credentials)
            if found is None:
                raise Problem(401, "token", "a valid bearer token is needed", {"WWW-Authenticate": "Bearer"})
            if not found.allows(scope):
                raise Problem(403, "scope", f"the token has no scope {scope}")
            token = found
        state.limiter.spend(state.stream, token.tenant, token.id)
        return token

    return caller


Checks = Annotated[Token, Depends(needs("check"))]
Feeds = Annotated[Token, Depends(needs("feedback"))]
Reads = Annotated[Token, Depends(needs("read"))]
Erases = Annotated[Token, Depends(needs("erase"))]
Ingests = Annotated[Token, Depends(needs("ingest"))]
