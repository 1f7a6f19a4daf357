"""One user as the stores know them: the id that the app recorded, its placeholder, the hash in feedback (S35)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Chunk
from aftercheck_schemas.redaction import Redactor, default_key, user_hash
from aftercheck_schemas.sessions import STABLE_SCOPE, USER_KEYS
from aftercheck_schemas.wire import MAX_JSON_BYTES
from aftercheck_worker.storage import scrub

_chunks: Final = msgspec.json.Decoder(Chunk)


class _Feedback(msgspec.Struct):
    user_hash: str = ""


_feedback: Final = msgspec.json.Decoder(_Feedback)


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """All names of one user. `names` stand in spans and interactions, `hashes` in feedback."""

    names: frozenset[str]
    hashes: frozenset[str]

    @classmethod
    def of(cls, user_id: str, keys: list[bytes]) -> Person:
        """Derive the names from the id as the app knows it.

        Args:
            user_id: the id; it may itself be personal data, such as an address.
            keys: redaction keys of the apps that may have recorded it.
        """
        plain = scrub.text(user_id)[:200]
        placeholders = {Redactor(key).redact(plain, STABLE_SCOPE)[:200] for key in keys}
        return cls(
            names=frozenset({plain, *placeholders}),
            hashes=frozenset({user_id, *(user_hash(key, user_id) for key in keys)}),
        )

    def named_in(self, payload: bytes) -> bool:
        """Is the user named in the compressed payload of a stream entry? What cannot be read names nobody."""
        try:
            document = zlib.decompressobj().decompress(payload, MAX_JSON_BYTES)
            chunk = _chunks.decode(document)
        except (zlib.error, msgspec.DecodeError, RecursionError):
            return False
        if not chunk.spans and not chunk.logs:
            return _thumb(document) in self.hashes
        return any(str(span.attributes.get(key)) in self.names for span in chunk.spans for key in USER_KEYS)


def _thumb(document: bytes) -> str:
    try:
        return _feedback.decode(document).user_hash
    except (msgspec.DecodeError, RecursionError):
        return ""


def keys(connection: psycopg.Connection[TupleRow], tenant: str, fleet: str) -> list[bytes]:
    """Redaction keys of a tenant's apps: the fleet's where there is one, and each app's own."""
    found = connection.execute("SELECT DISTINCT app FROM ledger WHERE tenant = %s", (tenant,)).fetchall()
    own = [default_key(row[0]) for row in found]
    return [fleet.encode(), *own] if fleet else own


def traces(connection: psycopg.Connection[TupleRow], tenant: str, person: Person) -> set[str]:
    """Ids of the traces in Postgres that name the user: as the one who asked, or in an undelivered entry."""
    asked = connection.execute(
        "SELECT DISTINCT l.trace_id FROM interaction AS i JOIN ledger AS l USING (day, evaluation_id)"
        " WHERE l.tenant = %s AND i.body ->> 'user_id' = ANY(%s)",
        (tenant, sorted(person.names)),
    ).fetchall()
    return {row[0] for row in asked} | {
        trace_id for trace_id, payload in _letters(connection, tenant) if person.named_in(payload)
    }


def forget_feedback(connection: psycopg.Connection[TupleRow], tenant: str, person: Person) -> int:
    """Delete the user's thumbs and comments, on any trace; the caller commits. Returns how many."""
    return connection.execute(
        "DELETE FROM feedback WHERE tenant = %s AND user_hash = ANY(%s)", (tenant, sorted(person.hashes))
    ).rowcount


def _letters(connection: psycopg.Connection[TupleRow], tenant: str) -> Iterator[tuple[str, bytes]]:
    found = connection.execute(
        "SELECT trace_id, payload FROM dead_letter WHERE tenant = %s AND payload IS NOT NULL", (tenant,)
    )
    for trace_id, payload in found:
        yield str(trace_id), bytes(payload)
