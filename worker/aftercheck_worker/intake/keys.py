"""Names of everything that intake keeps in Redis. The braces keep a tenant's keys on one cluster slot."""

from __future__ import annotations

from typing import Final

import msgspec

from aftercheck_schemas.wire import bytes_key, stream_key

GROUP: Final = "intake"
"""The consumer group. Every intake of a tenant is one consumer of it."""


class Keys(msgspec.Struct, frozen=True):
    """The Redis keys of one tenant.

    A waiting trace is the hash `<prefix>t:<trace id>`. Its fields are 8-byte digests of the chunks, and words that
    start with `@`: f first and l last arrival (server ms), n leases not given back, d the decision once taken,
    c digests counted by then, x forced by feedback, b bytes since it was last read, t cut because it grew too large.
    """

    tenant: str = "default"

    @property
    def prefix(self) -> str:
        """Start of every key, with the colon."""
        return f"aftercheck:{{{self.tenant}}}:"

    @property
    def stream(self) -> str:
        """The stream that producers write."""
        return stream_key(self.tenant)

    @property
    def bytes(self) -> str:
        """Payload bytes waiting in the stream."""
        return bytes_key(self.tenant)

    @property
    def due(self) -> str:
        """Sorted set: trace id by the server time (ms) at which somebody should look at it."""
        return self.prefix + "due"

    @property
    def counters(self) -> str:
        """Hash of increments that are not in Postgres yet."""
        return self.prefix + "counters"

    @property
    def wanted(self) -> str:
        """Sorted set: traces that feedback asked for before they came, by expiry (server ms)."""
        return self.prefix + "wanted"

    @property
    def cold(self) -> str:
        """Sorted set of cold buckets: name and score are the server time (ms) of the bucket's start."""
        return self.prefix + "cold"

    @property
    def cold_bytes(self) -> str:
        """Bytes in all cold buckets."""
        return self.prefix + "cold:bytes"

    @property
    def cold_horizon(self) -> str:
        """Server time (ms) before which unsampled traces were evicted."""
        return self.prefix + "cold:horizon"

    @property
    def intakes(self) -> str:
        """Sorted set: name of every intake by its last sign of life (server seconds)."""
        return self.prefix + "intakes"

    def trace(self, trace_id: str) -> str:
        """Hash of one waiting trace."""
        return f"{self.prefix}t:{trace_id}"

    def heartbeat(self, name: str) -> str:
        """Sign of life of one intake process."""
        return f"{self.prefix}intake:{name}"
