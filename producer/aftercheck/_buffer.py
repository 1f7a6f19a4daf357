"""The bounded buffer between the app's threads and ours: O(1) on the app's side, exact counters (P1, P4, I1)."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from aftercheck._stats import Stats

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.sdk.trace import ReadableSpan

    from aftercheck_schemas.vocabulary import DropReason

MAX_OPEN_TRACES = 10_000
MAX_LOST_TRACES = 4_096
_OPEN = 2
_RELEVANT = 1


class Feedback(NamedTuple):
    """A user's thumb on its way to the stream."""

    trace_id: int
    payload: dict[str, object]


class Item(NamedTuple):
    """One finished span or feedback and its estimated size in bytes."""

    trace_id: int
    size: int
    value: ReadableSpan | Feedback


class Loss:
    """How many spans of one trace were lost, and why first."""

    __slots__ = ("reason", "spans")

    def __init__(self, reason: DropReason) -> None:
        self.reason: DropReason = reason
        self.spans = 0


class SpanBuffer:
    """Spans of all traces in order of their end, bounded by bytes and count.

    When there is no room the *trace* of the arriving span is lost as a whole: a part of a trace would be judged
    as if it were all. The app's thread only marks the trace; our thread throws its buffered spans away.
    """

    def __init__(self, max_bytes: int, max_spans: int) -> None:
        self.max_bytes = max_bytes
        self.max_spans = max_spans
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.full_reason: DropReason = "buffer_full"
        self.closed = False
        self.last_error = ""
        self._reset()

    def _reset(self) -> None:
        self._items: deque[Item] = deque()
        self._open: dict[int, int] = {}
        self._lost: OrderedDict[int, Loss] = OrderedDict()
        self._bytes = 0
        self._spans = 0
        self._finished = 0
        self._not_sampled = 0
        self._enqueued = 0
        self._dropped: dict[str, int] = {}
        self._traces_dropped = 0
        self._epoch = 0
        self._idle = False

    # --- the app's threads -------------------------------------------------------------------------

    def started(self, trace_id: int) -> None:
        """Count a span as open."""
        with self.lock:
            open_spans = self._open
            open_spans[trace_id] = open_spans.get(trace_id, 0) + _OPEN
            if len(open_spans) > MAX_OPEN_TRACES:
                del open_spans[next(iter(open_spans))]

    def ended(self, trace_id: int, size: int, span: ReadableSpan, relevant: bool, root: bool) -> bool:
        """Take a finished span; True when it was kept.

        A root that says nothing itself is kept for a trace in which something does, or may yet, be said.
        """
        with self.lock:
            self._finished += 1
            state = self._open.get(trace_id, 0) - _OPEN
            if relevant:
                state |= _RELEVANT
            if state >= _OPEN:
                self._open[trace_id] = state
            else:
                self._open.pop(trace_id, None)
            if not relevant and not (root and state > 0):
                self._not_sampled += 1
                return False
            return self._admit(Item(trace_id, size, span))

    def skipped(self, trace_id: int) -> None:
        """Count a finished span that must not be sent."""
        with self.lock:
            self._finished += 1
            self._not_sampled += 1
            state = self._open.get(trace_id, 0) - _OPEN
            if state >= _OPEN:
                self._open[trace_id] = state
            else:
                self._open.pop(trace_id, None)

    def failed(self) -> None:
        """Count a finished span that broke our own code."""
        with self.lock:
            self._finished += 1
            self._count_drop("internal_error", 1)

    def put(self, feedback: Feedback, size: int) -> bool:
        """Take a feedback; True when it was kept."""
        with self.lock:
            self._finished += 1
            if self.closed or self._bytes + size > self.max_bytes or self._spans >= self.max_spans:
                self._count_drop("shutdown" if self.closed else self.full_reason, 1)
                return False
            return self._append(Item(feedback.trace_id, size, feedback))

    def _admit(self, item: Item) -> bool:
        loss = self._lost.get(item.trace_id)
        if loss is None:
            if self.closed:
                self._lose(item.trace_id, "shutdown", 1)
                return False
            if self._bytes + item.size <= self.max_bytes and self._spans < self.max_spans:
                return self._append(item)
            self.wake.set()
        self._lose(item.trace_id, self.full_reason, 1)
        return False

    def _append(self, item: Item) -> bool:
        self._items.append(item)
        self._bytes += item.size
        self._spans += 1
        if self._idle:
            self._idle = False
            self.wake.set()
        elif self._bytes > self.max_bytes // 2 and not self.wake.is_set():
            self.wake.set()
        return True

    # --- our thread --------------------------------------------------------------------------------

    def take(self) -> deque[Item]:
        """Hand over everything that arrived; it stays counted as buffered until it is settled."""
        with self.lock:
            items, self._items = self._items, deque()
            return items

    def rest(self) -> bool:
        """Say that our thread has nothing to do, unless something arrived: then False."""
        with self.lock:
            if self._items or self._lost:
                return False
            self._idle = True
            self.wake.clear()
            return True

    def is_open(self, trace_id: int) -> bool:
        """Whether a span of the trace is still running in this process."""
        return self._open.get(trace_id, 0) >= _OPEN

    def loss_of(self, trace_id: int) -> Loss | None:
        """What the trace has lost so far."""
        return self._lost.get(trace_id)

    def resize(self, delta: int, epoch: int) -> None:
        """Correct the bytes in use after encoding."""
        with self.lock:
            if epoch == self._epoch:
                self._bytes += delta

    def settle_sent(self, spans: int, size: int, epoch: int) -> None:
        """Count spans that Redis acknowledged."""
        with self.lock:
            if epoch == self._epoch:
                self._enqueued += spans
                self._spans -= spans
                self._bytes -= size

    def settle_lost(self, trace_id: int, spans: int, size: int, reason: DropReason, epoch: int) -> None:
        """Count spans that our thread had to give up; what follows of their trace is lost with them."""
        with self.lock:
            if epoch == self._epoch:
                self._spans -= spans
                self._bytes -= size
                self._lose(trace_id, reason, spans)

    def settle_feedback(self, size: int, reason: DropReason, epoch: int) -> None:
        """Count a feedback that was given up."""
        with self.lock:
            if epoch == self._epoch:
                self._spans -= 1
                self._bytes -= size
                self._count_drop(reason, 1)

    def closed_losses(self) -> list[tuple[int, Loss]]:
        """Remove and return the losses of traces that have no open span left."""
        with self.lock:
            over = [trace_id for trace_id in self._lost if self._open.get(trace_id, 0) < _OPEN]
            return [(trace_id, self._lost.pop(trace_id)) for trace_id in over]

    @property
    def epoch(self) -> int:
        """Changes when the buffer is abandoned, so that a late answer from Redis is not counted twice."""
        return self._epoch

    @property
    def pressure(self) -> bool:
        """More than half of the byte budget is in use."""
        return self._bytes > self.max_bytes // 2

    def abandon(self, reason: DropReason, taken: Iterable[int] = ()) -> None:
        """Give up all that waits, here and in our thread (`taken`: its traces); it counts as dropped."""
        with self.lock:
            if self._spans:
                self._count_drop(reason, self._spans)
                self._traces_dropped += len({item.trace_id for item in self._items} | set(taken))
            self._items = deque()
            self._spans = self._bytes = 0
            self._epoch += 1

    def after_fork(self) -> None:
        """In a child: the parent sends what was buffered, the child starts from zero and counts its copies."""
        self.lock = threading.Lock()
        self.wake = threading.Event()
        copies, open_spans = self._spans, self._open
        self._reset()
        self._open = open_spans
        if copies:
            self._finished = copies
            self._dropped = {"fork": copies}

    # --- counters ----------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """All counters at one moment."""
        with self.lock:
            return Stats(
                finished=self._finished,
                not_sampled=self._not_sampled,
                enqueued=self._enqueued,
                dropped=dict(self._dropped),
                buffered=self._spans,
                buffered_bytes=self._bytes,
                traces_dropped=self._traces_dropped,
                last_error=self.last_error,
            )

    def _lose(self, trace_id: int, reason: DropReason, spans: int) -> None:
        loss = self._lost.get(trace_id)
        if loss is None:
            loss = self._lost[trace_id] = Loss(reason)
            self._traces_dropped += 1
            if len(self._lost) > MAX_LOST_TRACES:
                self._lost.popitem(last=False)
        loss.spans += spans
        self._count_drop(loss.reason, spans)

    def _count_drop(self, reason: DropReason, spans: int) -> None:
        self._dropped[reason] = self._dropped.get(reason, 0) + spans
