"""The page of a `serve` process that a command has started beside others."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from typing import Final

from aftercheck_worker.cli.children import Children
from aftercheck_worker.errors import AftercheckError

READY_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.2


def wait(url: str, children: Children, *, seconds: float = READY_SECONDS) -> None:
    """Wait until `url` answers on /livez.

    Args:
        url: of the server, without a path.
        children: holds the `serve` process.
        seconds: it loads a verifier first.

    Raises:
        AftercheckError: it does not answer in time, or a child has ended.
    """
    deadline = time.monotonic() + seconds
    while not _answers(url):
        children.check()
        if time.monotonic() > deadline:
            raise AftercheckError(
                f"The page at {url} did not come up within {seconds:.0f} s",
                why="`aftercheck serve` runs but does not answer",
                fix="see its log, or start `aftercheck serve` by hand",
            )
        time.sleep(POLL_SECONDS)


def incident(url: str, app: str) -> str:
    """Return the address that the shipped alerts carry as `traces_url`, for an app whose name needs no quoting."""
    return f"{url}/traces?app={app}&flagged=true&window=30m"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/livez", timeout=2):  # noqa: S310 - our own child
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
