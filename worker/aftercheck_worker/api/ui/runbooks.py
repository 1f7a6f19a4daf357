"""The runbooks that alerts link to, as the text they are; from the wheel, or from the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.responses import PlainTextResponse

import aftercheck_worker
from aftercheck_worker.api.problem import Problem

router: Final = APIRouter()
_PACKAGE: Final = Path(aftercheck_worker.__file__).parent
FOLDERS: Final = (_PACKAGE / "runbooks", _PACKAGE.parents[1] / "docs" / "runbooks")
Name = Annotated[str, InPath(pattern="^[A-Za-z]{1,60}$")]


@router.get("/docs/runbooks/{name}")
def runbook(name: Name) -> PlainTextResponse:
    """Return one runbook; no login, it says nothing of anybody's data."""
    path = _path(name)
    if path is None:
        raise Problem(404, "unknown_runbook", "there is no runbook of this name")
    return PlainTextResponse(path.read_text("utf-8"))


def known(alert: str) -> bool:
    """Whether an alert of this name has a runbook."""
    return alert.isascii() and alert.isalpha() and len(alert) <= 60 and _path(alert) is not None


def _path(name: str) -> Path | None:
    return next((path for folder in FOLDERS if (path := folder / f"{name}.md").is_file()), None)
