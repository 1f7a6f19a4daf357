"""One POST with one deadline, over the standard library alone."""

from __future__ import annotations

import http.client
import ssl
import time
from typing import Literal, cast
from urllib.parse import urlsplit

import msgspec

MAX_REPLY_BYTES = 8 * 1024 * 1024
Reason = Literal["timeout", "refused", "unreachable", "invalid_reply"]


class CheckError(Exception):
    """There is no verdict, for `reason`."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def post(url: str, body: object, *, token: str, seconds: float) -> dict[str, object]:
    """Send `body` as JSON and return the reply. Follows no redirect: a token goes to the named host alone.

    Raises:
        CheckError: `timeout` after `seconds`; `refused` for any status but 200; `unreachable`; `invalid_reply`.
    """
    until = time.monotonic() + seconds
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CheckError("unreachable")
    secure = parts.scheme == "https"
    connection = (
        http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=ssl.create_default_context())
        if secure
        else http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)
    )
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("POST", parts.path, msgspec.json.encode(body), headers)
        _left(connection, until)
        response = connection.getresponse()
        if response.status != 200:
            raise CheckError("refused")
        return _reply(_read(connection, response, until))
    except TimeoutError:
        raise CheckError("timeout") from None
    except (OSError, http.client.HTTPException) as error:
        raise CheckError("unreachable") from error
    finally:
        connection.close()


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, until: float) -> bytes:
    found = bytearray()
    while piece := response.read1(65_536):
        found += piece
        if len(found) > MAX_REPLY_BYTES:
            raise CheckError("invalid_reply")
        _left(connection, until)
    return bytes(found)


def _left(connection: http.client.HTTPConnection, until: float) -> None:
    """Give the next wait only what is left of the deadline: a server that drips bytes must not stretch it."""
    left = until - time.monotonic()
    if left <= 0:
        raise CheckError("timeout")
    if connection.sock is not None:
        connection.sock.settimeout(left)


def _reply(document: bytes) -> dict[str, object]:
    try:
        found: object = msgspec.json.decode(document)
    except msgspec.DecodeError:
        raise CheckError("invalid_reply") from None
    if not isinstance(found, dict):
        raise CheckError("invalid_reply")
    reply = cast("dict[str, object]", found)
    if reply.get("action") not in ("allow", "warn", "block"):
        raise CheckError("invalid_reply")
    return reply
