"""Our thread: collects traces from the buffer, encodes them, sends them; and its life (start, fork, flush, exit)."""

from __future__ import annotations

import sys
import threading
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from aftercheck._buffer import MAX_LOST_TRACES, Feedback, Loss
from aftercheck._guard import describe, warn_once
from aftercheck._stats import FlushResult

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from aftercheck._buffer import Item, SpanBuffer
    from aftercheck._entries import Entry, EntryWriter
    from aftercheck._sender import Breaker, RedisSender
    from aftercheck._settings import Settings
    from aftercheck_schemas.vocabulary import DropReason

BATCH_ENTRIES = 100
BATCH_BYTES = 512 * 1024
SHORTEST_TICK_S = 0.02
BREATH_S = 0.00005
"""Pause after each trace, so that an app thread that waits for the interpreter lock gets it at once."""


class _Pending:
    """Spans of one trace that wait to be encoded."""

    __slots__ = ("since", "size", "spans")

    def __init__(self, since: float) -> None:
        self.spans: list[ReadableSpan] = []
        self.size = 0
        self.since = since


class Shipper:
    """Owns the daemon thread of one process.

    The thread starts with the first span that is kept, so that a process which only forks (gunicorn --preload)
    never has one, and starts again in a child.
    """

    def __init__(self, settings: Settings, buffer: SpanBuffer) -> None:
        self._settings = settings
        self._buffer = buffer
        self.exit_timeout_s = settings.shutdown_timeout_s
        self.loading = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.asleep = True
        self._start_lock = threading.Lock()
        self._done = threading.Condition()
        self._asked = 0
        self._served = 0
        self._pending: dict[int, _Pending] = {}
        self._outbox: deque[Entry] = deque()
        self._lost: OrderedDict[int, Loss] = OrderedDict()
        self._reported = (0, dict[str, int]())
        self._writer: EntryWriter | None = None
        self._sender: RedisSender | None = None
        self._breaker: Breaker | None = None
        self._refused = 0
        self._refused_breaker: Breaker | None = None

    # --- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread unless it runs."""
        with self._start_lock:
            if not self.asleep:
                return
            try:
                threading.Thread(target=self._run, name="aftercheck", daemon=True).start()
            except RuntimeError:  # the interpreter is shutting down
                self._buffer.closed = True
                self._buffer.abandon("shutdown")
                return
            self.asleep = False
        _flush_at_child_exit(self)

    def before_fork(self) -> None:
        """Hold our locks across the fork, so that the child gets them free and our modules whole."""
        self.loading.acquire(timeout=2)
        self._buffer.lock.acquire(timeout=1)

    def after_fork_in_parent(self) -> None:
        """Give the locks back."""
        _release(self._buffer.lock)
        _release(self.loading)

    def after_fork_in_child(self) -> None:
        """New locks, empty buffers, no thread, no shared socket."""
        self.loading = threading.Lock()
        self._buffer.after_fork()
        self._reset()

    def flush(self, timeout_s: float) -> int:
        """Send what waits now; return the number of spans left."""
        if self._buffer.stats().buffered and not self._buffer.closed:
            self.start()
            with self._done:
                self._asked += 1
                ticket = self._asked
                self._buffer.wake.set()
                self._done.wait_for(lambda: self._served >= ticket, timeout_s)
        return self._buffer.stats().buffered

    def report(self, timeout_s: float) -> FlushResult:
        """Flush and tell what happened since the last report."""
        self.flush(timeout_s)
        now = self._buffer.stats()
        sent, dropped = self._reported
        self._reported = (now.enqueued, dict(now.dropped))
        news = {reason: n - dropped.get(reason, 0) for reason, n in now.dropped.items()}
        return FlushResult(now.enqueued - sent, now.buffered, {r: n for r, n in news.items() if n})

    def shutdown(self) -> None:
        """Last flush of the process; at most `shutdown_timeout_s`. What is left is counted as `shutdown`."""
        if self._buffer.closed:
            return
        try:
            self.flush(self._settings.shutdown_timeout_s)
        finally:
            self._buffer.closed = True
            self._give_up("shutdown")

    def _give_up(self, reason: DropReason) -> None:
        """Drop and count all that waits, so that the counters stay exact."""
        pending, self._pending = self._pending, {}
        outbox, self._outbox = self._outbox, deque()
        self._buffer.abandon(reason, [*pending, *(entry.trace_id for entry in outbox if entry.spans)])

    # --- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._prepare()
        except BaseException as error:  # noqa: BLE001 - a broken installation must not raise in the app
            warn_once(f"aftercheck cannot send ({describe(error)}); traces of this process are dropped")
            self._buffer.last_error = describe(error)
            self._buffer.closed = True
            self._buffer.abandon("internal_error")
            self._serve(self._asked)
            return
        while not self._buffer.closed:
            self._wait()
            asked = self._asked
            try:
                self._cycle(force=asked > self._served)
            except BaseException as error:  # noqa: BLE001 - the thread must live as long as the app
                warn_once(f"aftercheck's thread had an error of its own ({describe(error)}) and goes on")
                self._give_up("internal_error")
            self._serve(asked)

    def _prepare(self) -> None:
        """Import what is slow, here and not in the app's thread."""
        with self.loading:
            from opentelemetry import context

            from aftercheck._entries import EntryWriter
            from aftercheck._sender import Breaker, RedisSender

            context.attach(context.set_value("suppress_instrumentation", True))  # no spans of our own Redis calls
            self._writer = EntryWriter(self._settings)
            self._sender = RedisSender(self._settings)
            self._breaker = Breaker()
            self._refused_breaker = Breaker()

    def _wait(self) -> None:
        """Sleep until the next tick, without end while there is nothing to do; a flush or pressure ends it."""
        wake = self._buffer.wake
        idle = not (self._pending or self._outbox or self._refused)
        if idle and self._buffer.rest() and self._asked <= self._served:
            wake.wait()
            wake.clear()
        if self._asked <= self._served:
            wake.wait(self._settings.tick_s)
            if self._asked <= self._served:
                time.sleep(SHORTEST_TICK_S)
        wake.clear()

    def _serve(self, asked: int) -> None:
        with self._done:
            self._served = asked
            self._done.notify_all()

    def _cycle(self, force: bool) -> None:
        self._collect()
        self._encode_ready(force)
        self._report_losses()
        self._send(force)
        self._report_refused(force)

    def _collect(self) -> None:
        now = time.monotonic()
        for item in self._buffer.take():
            if isinstance(item.value, Feedback):
                self._encode_feedback(item.value, item.size)
            elif (loss := self._loss_of(item.trace_id)) is not None:
                self._lose(item.trace_id, 1, item.size, loss.reason)
            else:
                self._keep(item, item.value, now)
        for trace_id in list(self._pending):
            loss = self._loss_of(trace_id)
            if loss is not None:
                pending = self._pending.pop(trace_id)
                self._lose(trace_id, len(pending.spans), pending.size, loss.reason)

    def _loss_of(self, trace_id: int) -> Loss | None:
        return self._buffer.loss_of(trace_id) or self._lost.get(trace_id)

    def _keep(self, item: Item, span: ReadableSpan, now: float) -> None:
        pending = self._pending.get(item.trace_id)
        if pending is None:
            pending = self._pending[item.trace_id] = _Pending(now)
        pending.spans.append(span)
        pending.size += item.size

    def _encode_ready(self, force: bool) -> None:
        oldest = time.monotonic() - self._settings.hold_s
        everything = force or self._buffer.pressure
        for trace_id, pending in list(self._pending.items()):
            still_open = self._buffer.is_open(trace_id)
            if everything or not still_open or pending.since <= oldest:
                del self._pending[trace_id]
                self._encode(trace_id, pending, complete=not still_open)
                time.sleep(BREATH_S)

    def _encode(self, trace_id: int, pending: _Pending, complete: bool) -> None:
        from aftercheck._entries import DroppedError

        assert self._writer is not None  # noqa: S101
        try:
            entry = self._writer.chunk(trace_id, pending.spans, complete=complete)
        except DroppedError as error:
            self._lose(trace_id, len(pending.spans), pending.size, error.reason)
        except Exception as error:  # noqa: BLE001 - counted, never raised
            warn_once(f"aftercheck lost a trace to an error of its own ({describe(error)})")
            self._lose(trace_id, len(pending.spans), pending.size, "internal_error")
        else:
            self._buffer.resize(entry.held - pending.size, self._buffer.epoch)
            self._outbox.append(entry)

    def _encode_feedback(self, feedback: Feedback, size: int) -> None:
        from aftercheck._entries import DroppedError

        assert self._writer is not None  # noqa: S101
        reason: DropReason = "internal_error"
        try:
            self._outbox.append(self._writer.feedback(feedback, size))
        except DroppedError as error:
            reason = error.reason
        except Exception as error:  # noqa: BLE001 - counted, never raised
            warn_once(f"aftercheck lost a feedback to an error of its own ({describe(error)})")
        else:
            return
        self._buffer.settle_feedback(size, reason, self._buffer.epoch)

    def _lose(self, trace_id: int, spans: int, size: int, reason: DropReason) -> None:
        self._buffer.settle_lost(trace_id, spans, size, reason, self._buffer.epoch)

    def _report_losses(self) -> None:
        """Leave a header-only entry for each trace that lost spans, once none of its spans is open."""
        assert self._writer is not None  # noqa: S101
        for trace_id, loss in self._buffer.closed_losses():
            total = self._lost.setdefault(trace_id, Loss(loss.reason))
            total.spans += loss.spans
            self._lost.move_to_end(trace_id)
            if len(self._lost) > MAX_LOST_TRACES:
                self._lost.popitem(last=False)
            if total.reason != "redis_full" and len(self._outbox) < MAX_LOST_TRACES:
                self._outbox.append(self._writer.loss(trace_id, total.spans, total.reason))

    # --- sending -----------------------------------------------------------------------------------

    def _send(self, force: bool) -> None:
        assert self._breaker is not None  # noqa: S101
        while self._outbox and (force or self._breaker.allows()):
            if not self._send_batch():
                return

    def _send_batch(self) -> bool:
        from aftercheck._sender import UnavailableError

        assert self._sender is not None  # noqa: S101
        assert self._breaker is not None  # noqa: S101
        batch = self._next_batch(1 if self._breaker.failing else BATCH_ENTRIES)
        epoch = self._buffer.epoch
        try:
            outcomes = self._sender.send(batch)
        except UnavailableError as error:
            self._breaker.failed()
            self._buffer.full_reason = "redis_unavailable"
            self._buffer.last_error = str(error)
            warn_once(
                f"aftercheck cannot reach Redis ({error}); the app is not affected, traces wait in memory and are "
                "dropped when the buffer is full. Check AFTERCHECK_REDIS_URL"
            )
            return False
        self._breaker.succeeded()
        self._buffer.full_reason = "buffer_full"
        self._buffer.last_error = ""
        for entry, outcome in zip(batch, outcomes, strict=True):
            self._outbox.popleft()
            self._settle(entry, outcome, epoch)
        return True

    def _report_refused(self, force: bool) -> None:
        """Count refused traces in Redis, so that a full stream shows outside of this process. Best effort."""
        from aftercheck._sender import UnavailableError

        assert self._sender is not None  # noqa: S101
        assert self._refused_breaker is not None  # noqa: S101
        if not self._refused or not (force or self._refused_breaker.allows()):
            return
        try:
            self._sender.count_refused("redis_full", self._refused)
        except UnavailableError:
            self._refused_breaker.failed()
        else:
            self._refused = 0
            self._refused_breaker.succeeded()

    def _next_batch(self, most: int) -> list[Entry]:
        batch: list[Entry] = []
        size = 0
        for entry in self._outbox:
            if batch and (len(batch) >= most or size + entry.size > BATCH_BYTES):
                break
            batch.append(entry)
            size += entry.size
        return batch

    def _settle(self, entry: Entry, outcome: str, epoch: int) -> None:
        if outcome == "sent":
            self._buffer.settle_sent(entry.spans, entry.held, epoch)
            if self._settings.dev and entry.spans:
                sys.stderr.write(f"aftercheck: sent {entry.spans} spans of trace {entry.trace_id:032x}\n")
            return
        warn_once("the stream in Redis is full, so traces are dropped (redis_full); start more intakes")
        if entry.feedback:
            self._buffer.settle_feedback(entry.held, "redis_full", epoch)
            return
        self._refused += 1
        if entry.spans:
            self._buffer.settle_lost(entry.trace_id, entry.spans, entry.held, "redis_full", epoch)


def _release(lock: threading.Lock) -> None:
    if lock.locked():
        lock.release()


def _flush_at_child_exit(shipper: Shipper) -> None:
    """Children of multiprocessing and billiard end by os._exit, which skips atexit; their own finalizers run."""
    for package in ("multiprocessing", "billiard"):
        util = sys.modules.get(f"{package}.util")
        process = sys.modules.get(f"{package}.process")
        finalize = getattr(util, "Finalize", None)
        parent = getattr(process, "parent_process", None) or getattr(process, "_parent_process", None)
        if finalize is not None and callable(parent) and parent() is not None:
            finalize(None, shipper.shutdown, exitpriority=10)
