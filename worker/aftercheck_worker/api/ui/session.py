"""Cookie session after a token login; an alert's link survives it (trust.md S32).

The cookie is `<token id>|<expiry>|<hmac>`, keyed by the kept hash of the token's secret: no session store, every
replica agrees, and a revoked token ends its sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Annotated, Final
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.tokens import Token
from aftercheck_worker.api.ui import view

router: Final = APIRouter()
COOKIE: Final = "aftercheck_session"
SECONDS: Final = 12 * 3600
MAX_FIELDS: Final = 1000
_OPEN: Final = secrets.token_hex(32)
"""Key of the CSRF token where no token was made: this process's own."""


class LoginNeeded(Exception):
    """Nobody is logged in."""


class Viewer:
    """Who looks: the token, and the CSRF word of its forms."""

    def __init__(self, token: Token, csrf: str) -> None:
        self.token, self.csrf = token, csrf

    @property
    def may_erase(self) -> bool:
        """Whether to show the erase button."""
        return self.token.allows("erase")

    @property
    def may_change(self) -> bool:
        """Whether to show retry and review buttons."""
        return self.token.allows("admin")


def viewer(request: Request) -> Viewer:
    """Dependency of every page.

    Raises:
        LoginNeeded: no valid session.
        Problem: 403 without the scope read.
    """
    state = state_of(request)
    cookie = request.cookies.get(COOKIE, "")
    if state.tokens.empty:
        token = Token(id="open", sha256=_OPEN, scopes=("admin",), tenant=state.settings.tenant)
        return Viewer(token, _sign(_OPEN, "csrf"))
    state.tokens.refresh()
    name, _, rest = cookie.partition("|")
    until, _, proof = rest.partition("|")
    found = state.tokens.by_name(name)
    if found is None or not until.isdecimal() or len(until) > 12 or int(until) < time.time():
        raise LoginNeeded
    if not hmac.compare_digest(
        _sign(found.sha256, f"session|{name}|{until}").encode(), proof.encode("utf-8", "replace")
    ):
        raise LoginNeeded
    if not found.allows("read"):
        raise Problem(403, "scope", "the token has no scope read")
    state.limiter.spend(state.stream, found.tenant, found.id)
    return Viewer(found, _sign(found.sha256, f"csrf|{cookie}"))


Viewing = Annotated[Viewer, Depends(viewer)]


def changing(who: Viewer) -> None:
    """Let only a token with the scope admin on.

    Raises:
        Problem: 403.
    """
    if not who.may_change:
        raise Problem(403, "scope", "the token has no scope admin")


async def form(request: Request) -> dict[str, str]:
    """Dependency: the fields of an urlencoded form.

    Raises:
        Problem: 422 for one that is no form of ours.
    """
    body = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Problem(422, "form", f"the form has more than {MAX_FIELDS} fields") from None
    return {name: values[0] for name, values in found.items()}


Form = Annotated[dict[str, str], Depends(form)]


def guarded(who: Viewing, fields: Form) -> dict[str, str]:
    """Dependency of every POST: the form's fields, after its CSRF word.

    Raises:
        Problem: 403.
    """
    if not hmac.compare_digest(fields.get("csrf", "").encode("utf-8", "replace"), who.csrf.encode()):
        raise Problem(403, "csrf", "the form is too old; load the page again")
    return fields


Guarded = Annotated[dict[str, str], Depends(guarded)]


@router.get("/ui/login")
def login(request: Request, next: str = "/ui/traces") -> HTMLResponse:  # noqa: A002 - the query's name
    """Show the form."""
    _ = request
    return view.page("login.html", title="Log in", next=inside(next), wrong=False, who=None)


@router.post("/ui/login")
def entered(request: Request, fields: Form) -> Response:
    """Take the token, set the cookie, and go on to where the link led."""
    target = inside(fields.get("next", ""))
    found = state_of(request).tokens.find(fields.get("token", "").strip())
    if found is None:
        return view.page("login.html", status=401, title="Log in", next=target, wrong=True, who=None)
    until = str(int(time.time()) + SECONDS)
    cookie = f"{found.id}|{until}|{_sign(found.sha256, f'session|{found.id}|{until}')}"
    answer = RedirectResponse(target, 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, cookie, max_age=SECONDS, httponly=True, samesite="lax", path="/ui", secure=secure)
    return answer


@router.post("/ui/logout")
def leave(fields: Guarded) -> Response:
    """Drop the cookie."""
    _ = fields
    answer = RedirectResponse("/ui/login", 303)
    answer.delete_cookie(COOKIE, path="/ui")
    return answer


def install(app: FastAPI) -> None:
    """Send whoever is not logged in to the form, with the way back."""

    async def redirect(request: Request, error: Exception) -> Response:
        _ = error
        if request.headers.get("HX-Request") == "true":
            # The session ended while a page was open: the whole page goes to the form, not a part of it.
            return Response(status_code=204, headers={"HX-Refresh": "true"})
        way = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/ui/login?next={quote(way, safe='')}", 303)

    app.add_exception_handler(LoginNeeded, redirect)


def inside(target: str) -> str:
    """Return `target` when it is a path of ours, the list otherwise: a login must not send anybody elsewhere."""
    plain = target.isprintable() and target.isascii() and "\\" not in target and "//" not in target.partition("?")[0]
    return target if plain and target.startswith("/ui/") else "/ui/traces"


def _sign(key: str, text: str) -> str:
    return hmac.digest(key.encode(), text.encode("utf-8", "replace"), hashlib.sha256).hex()
