"""The timer that makes lost messages harmless: Postgres knows what is unfinished, so it is sent again.

Every intake runs it; an advisory lock lets one work at a time. Nothing here knows Celery: `send` does.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from threading import Event
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import EvaluatorFailure
from aftercheck_worker.errors import AftercheckError
from aftercheck_worker.judge import outcome
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, judging, ledger, partitions, results, retention, totals
from aftercheck_worker.storage.totals import TotalKey

Send = Callable[[Sequence[int], bool], None]
"""`send(ids, high)` puts one message with at most `batch_size` ids on its queue; raises when the broker is away."""

_LOCK: Final = 0x61667263
_HOUSEKEEPING_SECONDS: Final = 600.0
_LIMIT: Final = 1024
_log = logging.getLogger(__name__)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one round did. `overdue`: answers whose judge deadline has passed, finished from the verifier."""

    resent: int = 0
    expired: int = 0
    overdue: tuple[int, ...] = ()
    partitions: tuple[str, ...] = ()
    swept: retention.Swept = retention.Swept()


class Reconciler:
    """One process's share of the timer.

    Args:
        settings: `stuck_seconds`, `task_time_limit`, `expire_seconds`, `retention_days`, `batch_size`.
        send: see `Send`.
        overdue: told the ids whose judge did not answer in time; they are finished from the verifier either way.
        send_judge: sends judging answers again that were put off or whose message is lost; None sends none.
    """

    def __init__(
        self,
        settings: Settings,
        send: Send,
        overdue: Callable[[Sequence[int]], None] | None = None,
        send_judge: Callable[[Sequence[int]], None] | None = None,
    ) -> None:
        self._settings, self._send, self._overdue, self._send_judge = settings, send, overdue, send_judge
        self._kept_house = float("-inf")

    def once(self, connection: psycopg.Connection[TupleRow]) -> Report | None:
        """Do one round; None when another process holds the lock.

        Args:
            connection: in autocommit mode, used by nobody else meanwhile.

        Raises:
            psycopg.Error: Postgres went away; what was committed stays.
            Exception: whatever `send` raises; the rows of that round are due again.
        """
        got = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if got is None or not got[0]:
            return None
        try:
            return self._round(connection)
        finally:
            # A broken connection has lost the lock already.
            if not connection.closed:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

    def _round(self, connection: psycopg.Connection[TupleRow]) -> Report:
        expired = len(database.transaction(connection, self._expire))
        resent = database.transaction(connection, self._resend)
        overdue = self._judge(connection)
        made: tuple[str, ...] = ()
        swept = retention.Swept()
        if time.monotonic() - self._kept_house > _HOUSEKEEPING_SECONDS:
            made = tuple(self._make_partitions(connection))
            swept = retention.sweep(connection, self._settings.retention_days, self._settings.verdict_days)
            self._kept_house = time.monotonic()
        return Report(resent=resent, expired=expired, overdue=overdue, partitions=made, swept=swept)

    def _expire(self, connection: psycopg.Connection[TupleRow]) -> list[int]:
        return ledger.expire(connection, self._settings.expire_seconds)

    def _resend(self, connection: psycopg.Connection[TupleRow]) -> int:
        # Sent before the commit: when the broker is away the rows stay as they are and are due again.
        checking = self._settings.task_time_limit * 2.0
        found = ledger.due(connection, self._settings.stuck_seconds, checking, _LIMIT)
        for high in (True, False):
            ids = [row.evaluation_id for row in found if row.high is high and not row.solo]
            for start in range(0, len(ids), self._settings.batch_size):
                self._send(ids[start : start + self._settings.batch_size], high)
        for row in found:
            if row.solo:
                self._send([row.evaluation_id], row.high)
        self._count(connection, found)
        return len(found)

    def _count(self, connection: psycopg.Connection[TupleRow], found: Sequence[ledger.Due]) -> None:
        sums: dict[str, dict[TotalKey, float]] = defaultdict(lambda: defaultdict(float))
        for row in found:
            sums[row.tenant][TotalKey(totals.RECONCILED, row.app, origin=row.origin, key=row.state)] += 1
        for tenant in sorted(sums):
            totals.add(connection, tenant, sums[tenant])

    def _judge(self, connection: psycopg.Connection[TupleRow]) -> tuple[int, ...]:
        """Send judging answers again, and finish those whose deadline has passed: the verifier's word is the last."""
        if self._send_judge is not None:
            database.transaction(connection, self._resend_judging)
        found = judging.late(connection, _LIMIT)
        ids = tuple(one.work.evaluation_id for one in found)
        if not ids:
            return ()
        failure = EvaluatorFailure(evaluator="judge", reason="judge_deadline", detail="no judgement in time")
        finished = [
            outcome.fallen_back(one.work, outcome.read(one.work), one.provisional, failure)
            for one in found
            if one.provisional is not None
        ]
        lost = [one.work.evaluation_id for one in found if one.provisional is None]
        database.transaction(connection, lambda inside: self._finish(inside, finished, lost))
        if self._overdue is not None:
            self._overdue(ids)
        return ids

    def _finish(
        self, connection: psycopg.Connection[TupleRow], finished: Sequence[results.Finished], lost: Sequence[int]
    ) -> None:
        ledger.fail(connection, lost, "payload_missing", judging.JUDGING)
        open_ids = judging.open_ids(connection, [one.work.evaluation_id for one in finished])
        mine = [one for one in finished if one.work.evaluation_id in open_ids]
        judging.settle(connection, [one.work for one in mine])
        results.finalise(connection, mine, late_seconds=self._settings.late_seconds, expected=judging.JUDGING)

    def _resend_judging(self, connection: psycopg.Connection[TupleRow]) -> None:
        found = judging.due(connection, self._settings.judge_seconds / 3, _LIMIT)
        if not found or self._send_judge is None:
            return
        self._send_judge([one.evaluation_id for one in found])
        sums: dict[str, dict[TotalKey, float]] = defaultdict(lambda: defaultdict(float))
        for one in found:
            sums[one.tenant][TotalKey(totals.RECONCILED, one.app, origin=one.origin, key="judging")] += 1
        for tenant in sorted(sums):
            totals.add(connection, tenant, sums[tenant])

    def _make_partitions(self, connection: psycopg.Connection[TupleRow]) -> list[str]:
        try:
            return partitions.ensure(connection, partitions.ahead(datetime.now(UTC).date()))
        except psycopg.errors.LockNotAvailable:
            _log.info("partitions are busy, tried again later", extra={"action": "partitions_busy"})
            return []

    def run(self, url: str, stop: Event) -> None:
        """Work every `reconcile_seconds` until `stop` is set. Outlives every loss of Postgres or of the broker."""
        connection: psycopg.Connection[TupleRow] | None = None
        try:
            while not stop.is_set():
                try:
                    if connection is None:
                        connection = database.connect(url, name="reconcile", statement_timeout=30)
                        connection.autocommit = True
                    self._told(self.once(connection))
                except Exception as error:  # noqa: BLE001 - the timer must outlive whatever a dependency does
                    self._trouble(error)
                    _close(connection)
                    connection = None
                stop.wait(self._settings.reconcile_seconds)
        finally:
            _close(connection)

    def _told(self, report: Report | None) -> None:
        if report is not None and (report.resent or report.expired or report.swept != retention.Swept()):
            _log.info("reconciled", extra={"action": "reconciled", **msgspec.to_builtins(report)})

    def _trouble(self, error: Exception) -> None:
        known = isinstance(error, AftercheckError) or database.classify(error) != "other"
        _log.warning(
            "reconciler: %s",
            " ".join(str(error).split())[:300],
            extra={"action": "reconcile_failed", "kind": database.classify(error)},
            exc_info=None if known else error,
        )


def _close(connection: psycopg.Connection[TupleRow] | None) -> None:
    if connection is not None:
        connection.close()
