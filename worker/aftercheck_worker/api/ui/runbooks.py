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
    for folder in FOLDERS:
        path = folder / f"{name}.md"
        if path.is_file():
            return PlainTextResponse(path.read_text("utf-8"))
    raise Problem(404, "unknown_runbook", "there is no runbook of this name")
