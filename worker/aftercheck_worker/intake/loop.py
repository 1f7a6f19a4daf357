"""The intake process: read, sort, step; lease, read, commit, send, settle; and a few timers. One thread."""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Event
from typing import Final

import msgspec
import psycopg

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.intake import cold, counters, depth
from aftercheck_worker.intake.buffer import Buffer, Leased, Settled
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import BLOCK_MS, Link, LinkError
from aftercheck_worker.intake.postgres import Postgres, Unavailable
from aftercheck_worker.intake.rates import Rate, Rates
from aftercheck_worker.intake.readiness import Patience
from aftercheck_worker.intake.reading import Extract, Reader, Reading, settled
from aftercheck_worker.intake.sorting import Sorter
from aftercheck_worker.intake.stream import Entry, Stand, Stream
from aftercheck_worker.intake.writer import Stored, Writer, batches
from aftercheck_worker.progress import Mark
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.extraction import extract as extract_answers
from aftercheck_worker.storage import sampling

logger = logging.getLogger(__name__)

Send = Callable[[Sequence[int], bool], None]
"""`send(ids, high)` puts one message with at most 32 ids on its queue; raises when the broker is away."""

LEASE_COUNT: Final = 500
MOST_WAITING: Final = 100_000
"""With so many waiting traces, or more of their bytes than the stream may hold, nothing more is read: the stream
fills, and admission tells the producers."""
LINGER_S: Final = 60.0
"""How long a read trace's chunks stay for late spans."""
CLAIM_IDLE_MS: Final = 10_000
MOST_PARKED: Final = 1_000


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds between the things that are not done in every round."""

    rates: float = 3.0
    counters: float = 2.0
    claim: float = 5.0
    evict: float = 30.0
    beat: float = 3.0


class Intake:
    """One intake of a tenant. It owns nothing: whatever it holds, another one finds after its lease."""

    def __init__(
        self, settings: Settings, send: Send, *, extract: Extract = extract_answers, timers: Timers | None = None
    ) -> None:
        """Create.

        Args:
            settings: with both URLs.
            send: puts ids on a queue of the workers.
            extract: finds the answers of a trace.
            timers: periods.

        Raises:
            ConfigurationError: a URL is missing.
        """
        if settings.redis_url is None or settings.database_url is None:
            raise ConfigurationError(
                "The intake needs Redis and Postgres",
                why="REDIS_URL or DATABASE_URL is not set",
                fix="set both, or use `aftercheck up`, which starts them",
            )
        patience = Patience(
            quiet=min(0.5, settings.quiet_seconds) if settings.dev else settings.quiet_seconds,
            quiet_otlp=settings.quiet_seconds_otlp,
            idle=settings.idle_seconds,
            longest=settings.max_wait_seconds,
        )
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._settings, self._send, self._timers = settings, send, timers or Timers()
        self._keys = Keys(settings.tenant)
        self._link = Link(settings.redis_url.get_secret_value())
        self._postgres = Postgres(settings.database_url.get_secret_value())
        self.rates = Rates(Rate(settings.sampling_rate, settings.sampling_by), everything=settings.dev)
        keep = (settings.cold_bytes, settings.cold_hours)
        self._stream = Stream(self._link, self._keys, self.name, cap=keep[0], hours=keep[1])
        self._buffer = Buffer(
            self._link, self._keys, lease=settings.lease_seconds, cap=keep[0], hours=keep[1], linger=LINGER_S
        )
        self._sorter = Sorter(self.rates, patience, limit=settings.max_payload_bytes)
        self._reader = Reader(
            settings.tenant, self.rates, patience, limit=settings.max_payload_bytes, extract=extract
        )
        self._writer = Writer(self._postgres, settings.tenant, self._reader)
        self._parked: dict[bytes, Entry] = {}
        self._stand = Stand()
        self._full = False
        self._at: dict[str, float] = {}
        self._redis_pause = self._broker_until = 0.0
        self._recover = True
        self._read = 0

    def run(self, stop: Event) -> None:
        """Work until `stop` is set. Outlives every loss of Redis, Postgres or the broker."""
        mark = Mark(self._settings.progress_file)
        mark.born()
        logger.info(
            "Intake starts%s",
            ": every trace is evaluated, because AFTERCHECK_DEV is set" if self._settings.dev else "",
            extra={"action": "intake_start", "intake": self.name, "sampling_rate": self._settings.sampling_rate},
        )
        while not stop.is_set():
            mark.moved()
            try:
                busy = self.tick(BLOCK_MS)
                self._redis_pause = 0.0
            except LinkError as error:
                self._redis_failed(error)
                stop.wait(self._redis_pause)
                continue
            except psycopg.Error as error:
                # Neither a lost connection nor bad data: a missing table, say. Somebody has to look, we must live.
                logger.exception("Postgres refused a statement: %s", type(error).__name__)
                stop.wait(1.0)
                continue
            if not busy and (self._full or not self.rates.loaded):
                stop.wait(0.1)
        self.close()

    def tick(self, block_ms: int = 0) -> bool:
        """Do one round; return whether anything moved.

        Raises:
            redis.exceptions.RedisError: Redis does not answer. The next round recovers what was in hand.
        """
        if self._recover:
            self._stream.ensure_group()
            self._recover = False
            self._take(self._stream.own())
        self._run_timers()
        if not self.rates.loaded:
            return False
        moved = self._take(list(self._parked.values())) if self._parked and not self._postgres.pausing else 0
        moved += self._take(self._fresh(block_ms))
        return self._process() + moved > 0

    def drain(self, timeout_s: float = 30.0) -> None:
        """Work until stream and waiting traces are empty; for tests, benchmarks and one-off jobs.

        Raises:
            TimeoutError: it took longer than `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while self.tick(20) or self._left():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._left()} entries and traces are left after {timeout_s} s")
        self._at["counters"] = 0.0
        self._run_timers()

    def close(self) -> None:
        """Move the counters, leave the group, close the connections. Never raises."""
        try:
            self._flush()
            self._stream.leave()
        except LinkError:
            logger.info("Redis was away at the end; nothing is lost", extra={"action": "intake_end"})
        self._link.close()
        self._postgres.close()

    # --- the stream ----------------------------------------------------------------------------------

    def _fresh(self, block_ms: int) -> list[Entry]:
        stand = self._stand
        too_much = stand.due > MOST_WAITING or stand.held > self._settings.stream_max_bytes
        self._full = too_much or len(self._parked) > MOST_PARKED
        if self._full:
            self._stand = self._stream.step(())
            return []
        entries = self._stream.read(min(block_ms, 50) if self._stand.due else block_ms)
        self._read += len(entries)
        return entries

    def _take(self, entries: Sequence[Entry]) -> int:
        """Take entries off the stream; those that Postgres must know of first are parked while it is away."""
        if not entries:
            return 0
        bundle = self._sorter.sort(entries)
        moves = bundle.moves
        try:
            self._writer.letters([letter for _, letter, _ in bundle.letters])
            self._writer.feedback([word for _, word, _ in bundle.words])
            judged = self._writer.judged([word.trace_id for _, word, _ in bundle.words if word.value < 0])
        except Unavailable:
            self._parked.update((entry.id, entry) for entry, _, _ in (*bundle.letters, *bundle.words))
        else:
            moves += [move for _, _, move in bundle.letters]
            for _, word, move in bundle.words:
                found = "noted" if word.value >= 0 else "evaluated" if word.trace_id in judged else ""
                answer = found or cold.force(self._link, self._keys, word.trace_id)
                moves.append(msgspec.structs.replace(move, argument=answer))
            for entry, _, _ in (*bundle.letters, *bundle.words):
                self._parked.pop(entry.id, None)
        self._stream.postpone(bundle.newer)
        if bundle.newer:
            logger.warning(
                "%d entries have a later version and wait for a later release",
                len(bundle.newer),
                extra={"action": "version_newer"},
            )
        if not moves:
            return 0
        self._stand = self._stream.step(moves)
        return self._stand.moved

    # --- the traces ----------------------------------------------------------------------------------

    def _process(self) -> int:
        if self._postgres.pausing:
            return 0
        now, leased = self._buffer.lease(LEASE_COUNT)
        if not leased:
            return 0
        readings = [self._reader.read(trace, now) for trace in leased]
        readings = self._recalled(readings, now)
        try:
            stored = self._writer.store([reading for reading in readings if reading.action == "store"])
        except Unavailable:
            self._buffer.settle([Settled(trace=trace, action="wait", until=now + 1) for trace in leased])
            return 0
        except BaseException:
            # A bug: give the leases back, so that it is not taken for a trace that kills processes.
            self._buffer.settle([Settled(trace=trace, action="wait", until=now + 5) for trace in leased])
            raise
        self._dispatch(stored)
        done = [settled(one.reading, new=one.new, known=one.known) for one in stored]
        done += [settled(r, new=False, known=False) for r in readings if r.action == "cold"]
        waiting = [r for r in readings if r.action == "wait"]
        done += [Settled(trace=r.trace, action="wait", until=r.until) for r in waiting]
        self._buffer.settle(done)
        return len(done) - len(waiting)

    def _recalled(self, readings: list[Reading], now: float) -> list[Reading]:
        """After a raised rate, bring earlier chunks back from the cold store and read their traces again."""
        doubtful = [r.trace.trace_id for r in readings if r.action == "store" and self.rates.raised(r.app)]
        if not doubtful:
            return readings
        found = cold.recall(self._link, self._keys, doubtful)
        return [_again(r.trace, now) if r.trace.trace_id in found else r for r in readings]

    def _dispatch(self, stored: Sequence[Stored]) -> None:
        """Send what is new. A broker that is away costs nothing: the rows are pending, the reconciler sends them."""
        ready = [one for item in stored for one in item.ready]
        if not ready or time.monotonic() < self._broker_until:
            return
        settings = self._settings
        for high, ids in batches(ready, most=settings.batch_size, pairs=settings.batch_pairs):
            try:
                self._send(ids, high)
            except Exception as error:  # noqa: BLE001 - the sender is not ours; whatever it raises, rows are safe
                logger.warning(
                    "Answers wait for the reconciler: %s", str(error)[:300], extra={"action": "send_failed"}
                )
                self._broker_until = time.monotonic() + settings.reconcile_seconds
                return

    # --- timers --------------------------------------------------------------------------------------

    def _run_timers(self) -> None:
        timers = self._timers
        if not self._postgres.pausing and self._passed("rates", timers.rates):
            self._refresh()
        if self._passed("beat", timers.beat):
            self._beat()
        if not self._postgres.pausing and self._passed("counters", timers.counters):
            self._flush()
        if self._passed("claim", timers.claim) and self.rates.loaded:
            self._take(self._stream.claim(CLAIM_IDLE_MS))
        if self._passed("evict", timers.evict):
            cold.evict(self._link, self._keys, cap=self._settings.cold_bytes, hours=self._settings.cold_hours)

    def _passed(self, name: str, period: float) -> bool:
        now = time.monotonic()
        if now < self._at.get(name, 0.0):
            return False
        self._at[name] = now + period
        return True

    def _refresh(self) -> None:
        tenant = self._settings.tenant
        try:
            found = self._postgres.transaction(lambda connection: sampling.rates(connection, tenant))
        except Unavailable:
            self._at["rates"] = 0.0
            return
        rates = {app: Rate(row.rate, row.mode, row.version, row.recent) for app, row in found.items()}
        self.rates.replace(rates, time.monotonic())

    def _flush(self) -> None:
        try:
            counters.flush(self._link, self._keys, self._writer.add)
        except Unavailable:
            self._at["counters"] = 0.0

    def _beat(self) -> None:
        state = {"at": time.time(), "read": self._read, "parked": len(self._parked), **_plain(self._stand)}
        depth.beat(self._link, self._keys, self.name, msgspec.json.encode(state))

    def _left(self) -> int:
        self._stand = self._stream.step(())
        return self._stand.entries + self._stand.due

    def _redis_failed(self, error: Exception) -> None:
        if not self._redis_pause:
            logger.warning("Redis failed: %s", str(error)[:300], extra={"action": "redis_lost"})
        self._recover = True
        self._redis_pause = min(2.0, self._redis_pause * 2 or 0.05)


def _again(trace: Leased, now: float) -> Reading:
    return Reading(trace=trace, action="wait", until=now)


def _plain(stand: Stand) -> Counter[str]:
    return Counter(entries=stand.entries, bytes=stand.bytes, due=stand.due, held=stand.held)
