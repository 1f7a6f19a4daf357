"""Traces of one user that are still in Redis: unread, waiting, or kept unsampled (S35)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from aftercheck_schemas import WireError, decode_entry
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import Link, as_bytes, as_list, as_pairs
from aftercheck_worker.intake.record import DIGEST_BYTES, unpack
from aftercheck_worker.storage.person import Person

PAGE: Final = 200


def traces(link: Link, keys: Keys, person: Person) -> set[str]:
    """Ids of the traces that name the user. Reads every payload once; nothing is changed.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    every = (*_unread(link, keys), *_waiting(link, keys), *_cold(link, keys))
    return {trace_id for trace_id, payload in every if person.named_in(payload)}


def _unread(link: Link, keys: Keys) -> Iterator[tuple[str, bytes]]:
    start = "-"
    while page := as_list(link.call("XRANGE", keys.stream, start, "+", "COUNT", PAGE)):
        for one in page:
            fields = as_list(one)[1]
            try:
                header, payload = decode_entry(as_pairs(as_list(fields)))
            except WireError:
                continue  # intake makes a dead letter of it, which is searched too
            yield header.trace_id, payload
        start = f"({as_bytes(as_list(page[-1])[0]).decode()}"


def _waiting(link: Link, keys: Keys) -> Iterator[tuple[str, bytes]]:
    for name in as_list(link.call("ZRANGE", keys.due, 0, -1)):
        held = as_pairs(as_list(link.call("HGETALL", f"{keys.prefix}t:{as_bytes(name).decode()}")))
        yield from _records(value for field, value in held.items() if len(field) == DIGEST_BYTES)


def _cold(link: Link, keys: Keys) -> Iterator[tuple[str, bytes]]:
    for name in as_list(link.call("ZRANGE", keys.cold, 0, -1)):
        cursor = "0"
        while True:
            following, page = as_list(
                link.call("HSCAN", f"{keys.cold}:{as_bytes(name).decode()}", cursor, "COUNT", PAGE)
            )
            yield from _records(as_pairs(as_list(page)).values())
            cursor = as_bytes(following).decode()
            if cursor == "0":
                break


def _records(stored: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    for one in stored:
        try:
            record = unpack(one)
        except (msgspec.DecodeError, WireError):
            continue
        yield record.header.trace_id, record.payload
