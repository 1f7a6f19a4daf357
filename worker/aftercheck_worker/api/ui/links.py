"""Links to other trace viewers, by URL template (R5): Tempo, Phoenix, Langfuse, or whatever has the same trace id."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

import msgspec

_NAMED: Final = re.compile(r"(?:([\w.-]{1,40})=)?(https?://\S+)")
PLAIN: Final = "trace viewer"


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A link with its words."""

    name: str
    url: str


def links(templates: str, **values: str) -> list[Link]:
    """Fill the templates of `AFTERCHECK_API_TRACE_LINK`.

    Args:
        templates: separated by blanks, each `URL` or `NAME=URL`; anything but http and https is left out.
        values: for `{trace_id}`, `{span_id}` and `{app}`; each is quoted.
    """
    found: list[Link] = []
    for word in templates.split():
        match = _NAMED.fullmatch(word)
        if match is None:
            continue
        url = match[2]
        for name, value in values.items():
            url = url.replace(f"{{{name}}}", quote(value, safe=""))
        found.append(Link(name=match[1] or PLAIN, url=url))
    return found
