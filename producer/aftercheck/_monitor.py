"""The guarded call (R33): an agent's answer is checked before the user sees it.

It is no substitute for a person's review of critical decisions. The agent's exceptions reach the caller unchanged,
ours never do: when the monitor does not answer in time, the declared fallback happens and the result says so.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypedDict, cast, overload

import msgspec

from aftercheck._monitor_client import CheckError, post
from aftercheck._notices import NOTICES, Notices

P = ParamSpec("P")
Json = object
Evidence = Sequence[str | Mapping[str, Json]]
DEFAULT_URL = "http://127.0.0.1:8080"


class GuardedAnswer(TypedDict):
    """What the user may see, and why.

    `monitor` is the reply of POST /monitor/check with `available` true; or {available: false, reason, action} when
    no check took place: `reason` is `timeout`, `refused`, `unreachable` or `invalid_reply`.
    """

    content: str
    monitor: dict[str, Json]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent may return instead of a string, so that the check knows the evidence."""

    content: str
    context: Evidence = ()
    tool_logs: Evidence = ()
    memory_refs: Evidence = ()


class Monitor:
    """Checks answers against POST /monitor/check.

    Args:
        agent_id: names the agent; default AFTERCHECK_APP, then OTEL_SERVICE_NAME, then `agent`.
        url: of `aftercheck serve`; default AFTERCHECK_API_URL, then http://127.0.0.1:8080.
        token: bearer token with scope check; default AFTERCHECK_API_TOKEN.
        timeout: seconds for the whole check.
        on_unavailable: `open` passes the answer with a notice that it was not checked, `closed` blocks it.
        language: of the notices: en, de, pl, ru, uk. notices: your own texts instead.
    """

    def __init__(
        self,
        *,
        agent_id: str | None = None,
        url: str | None = None,
        token: str | None = None,
        timeout: float = 2.0,
        on_unavailable: Literal["open", "closed"] = "open",
        language: str = "en",
        notices: Notices | None = None,
    ) -> None:
        environ = os.environ
        self._agent_id = agent_id or environ.get("AFTERCHECK_APP") or environ.get("OTEL_SERVICE_NAME") or "agent"
        self._url = (url or environ.get("AFTERCHECK_API_URL") or DEFAULT_URL).rstrip("/") + "/monitor/check"
        self._token = environ.get("AFTERCHECK_API_TOKEN", "") if token is None else token
        self._timeout, self._closed = timeout, on_unavailable == "closed"
        self._notices = notices or NOTICES.get(language.partition("-")[0].lower(), NOTICES["en"])

    def check(self, question: str, answer: str | Answer | Mapping[str, Json]) -> GuardedAnswer:
        """Check one answer and return what the user may see. Never raises."""
        given = _answer(answer)
        body = {
            "agent_id": self._agent_id[:200],
            "input": question,
            "output": given.content,
            "context": list(given.context),
            "tool_logs": list(given.tool_logs),
            "memory_refs": list(given.memory_refs),
        }
        try:
            reply = post(self._url, body, token=self._token, seconds=self._timeout)
        except CheckError as error:
            return self._unchecked(given.content, error.reason)
        except Exception:  # noqa: BLE001 - the app must never see an error of ours
            return self._unchecked(given.content, "unreachable")
        return self._checked(given.content, reply)

    async def acheck(self, question: str, answer: str | Answer | Mapping[str, Json]) -> GuardedAnswer:
        """Do the same without blocking the event loop."""
        return await asyncio.to_thread(self.check, question, answer)

    def __enter__(self) -> Monitor:
        """Context form: `with aftercheck.Monitor(...) as monitor: monitor.check(question, answer)`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let every exception of the block through."""

    def _checked(self, content: str, reply: dict[str, Json]) -> GuardedAnswer:
        monitor = {**reply, "available": True}
        if reply["action"] == "block":
            return {"content": self._notices.block, "monitor": monitor}
        if reply["action"] == "warn":
            return {"content": f"{content}\n\n{self._notices.warn}", "monitor": monitor}
        return {"content": content, "monitor": monitor}

    def _unchecked(self, content: str, reason: str) -> GuardedAnswer:
        action = "block" if self._closed else "warn"
        monitor: dict[str, Json] = {"available": False, "reason": reason, "action": action}
        shown = self._notices.unavailable_blocked if self._closed else f"{content}\n\n{self._notices.unavailable}"
        return {"content": shown, "monitor": monitor}


@overload
def guard(  # type: ignore[overload-overlap]  # a coroutine is an object too; the first that fits counts
    agent: Callable[P, Coroutine[Any, Any, object]], /, *, monitor: Monitor | None = None
) -> Callable[P, Coroutine[Any, Any, GuardedAnswer]]: ...
@overload
def guard(agent: Callable[P, object], /, *, monitor: Monitor | None = None) -> Callable[P, GuardedAnswer]: ...
@overload
def guard(
    agent: None = None, /, *, monitor: Monitor | None = None
) -> Callable[[Callable[P, object]], Callable[P, GuardedAnswer]]: ...
def guard(agent: Callable[..., object] | None = None, /, *, monitor: Monitor | None = None) -> object:
    """Wrap an agent so that its answer is checked: block replaces the text, warn appends a notice, allow passes.

    The agent is called with the caller's arguments; its first one, when it is text, is the question. It returns a
    string, an `Answer`, or a mapping {content, context, tool_logs, memory_refs}. An async agent stays async.

    Args:
        agent: the function; left out, `guard` is a decorator.
        monitor: where and how to check; the environment's by default.

    Example:
        @aftercheck.guard(monitor=aftercheck.Monitor(agent_id="shop", language="de"))
        def agent(question: str) -> aftercheck.Answer: ...

        agent("What does the plan cost?")["content"]
    """
    chosen = monitor or Monitor()
    if agent is None:

        def decorate(function: Callable[..., object]) -> object:
            return guard(function, monitor=chosen)

        return decorate
    if inspect.iscoroutinefunction(agent):

        @functools.wraps(agent)
        async def asynchronous(*args: object, **kwargs: object) -> GuardedAnswer:
            return await chosen.acheck(_question(args, kwargs), cast("str", await agent(*args, **kwargs)))

        return asynchronous

    @functools.wraps(agent)
    def synchronous(*args: object, **kwargs: object) -> GuardedAnswer:
        return chosen.check(_question(args, kwargs), cast("str", agent(*args, **kwargs)))

    return synchronous


def _question(args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    return next((value for value in (*args, *kwargs.values()) if isinstance(value, str)), "")


def _answer(answer: object) -> Answer:
    if isinstance(answer, Answer):
        return answer
    if isinstance(answer, Mapping):
        found = cast("Mapping[str, object]", answer)
        parts = {name: cast("Evidence", found.get(name) or ()) for name in ("context", "tool_logs", "memory_refs")}
        return Answer(content=str(found.get("content", "")), **parts)
    return Answer(content=str(answer))
