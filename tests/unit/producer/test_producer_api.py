"""The public calls: records, tags, feedback, settings, warnings; nothing leaks between requests, nothing raises."""

from __future__ import annotations

import contextvars
import json
import logging
import sys
from typing import TYPE_CHECKING, cast

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

import aftercheck
from aftercheck import _guard, _init, _processor, _provider, _settings, _shipper, command, hooks
from aftercheck._buffer import Item, SpanBuffer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


class StillShipper(_shipper.Shipper):
    """A shipper whose thread never starts, so that tests can look into the buffer."""

    def start(self) -> None:
        """Do nothing."""


@pytest.fixture
def buffer(monkeypatch: pytest.MonkeyPatch) -> SpanBuffer:
    """An initialised client that sends nothing, on a provider of the test's own."""
    _guard.forget_warnings()
    own = SpanBuffer(10**7, 1_000)
    settings = _settings.load("demo", env={})
    shipper = StillShipper(settings, own)
    provider = TracerProvider()
    provider.add_span_processor(_processor.Processor(own, shipper))
    monkeypatch.setattr(_init, "_client", _init._Client(settings, own, shipper))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return own


def _spans(buffer: SpanBuffer) -> list[ReadableSpan]:
    items: list[Item] = list(buffer.take())
    return [cast("ReadableSpan", item.value) for item in items]


def _attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@pytest.mark.req("R8", "R10")
def test_context_goes_on_the_current_span_and_adds_up(buffer: SpanBuffer) -> None:
    class Document:
        page_content = "from an object"
        id = "d9"

    with trace.get_tracer("app").start_as_current_span("request"):
        aftercheck.record_context("plain text")
        aftercheck.record_context([{"content": "a", "id": "x"}, "b"], kind="tool_result", trust=0.5)
        aftercheck.record_context(Document(), source_id="wiki")
        aftercheck.record_context(None)
        aftercheck.record_output("shown")
    attributes = _attributes(_spans(buffer)[0])
    assert json.loads(cast("str", attributes["aftercheck.context"])) == [
        {"text": "plain text", "kind": "context", "trust": 1.0, "source_id": "recorded-1"},
        {"text": "a", "kind": "tool_result", "trust": 0.5, "source_id": "x"},
        {"text": "b", "kind": "tool_result", "trust": 0.5, "source_id": "recorded-3"},
        {"text": "from an object", "kind": "context", "trust": 1.0, "source_id": "wiki"},
    ]
    assert attributes["aftercheck.output"] == "shown"


def test_without_a_span_a_short_one_is_made_and_a_hint_given(
    buffer: SpanBuffer, caplog: pytest.LogCaptureFixture
) -> None:
    aftercheck.record_context("alone")
    assert [span.name for span in _spans(buffer)] == ["aftercheck.record"]
    assert "outside a span" in caplog.text


@pytest.mark.req("S06")
def test_no_record_when_content_is_off(buffer: SpanBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACELOOP_TRACE_CONTENT", "false")
    with trace.get_tracer("app").start_as_current_span("request"):
        aftercheck.record_context("secret")
        aftercheck.record_output("secret")
    assert _spans(buffer) == []


@pytest.mark.req("R30", "R43")
def test_session_and_versions_reach_children_and_no_other_request(buffer: SpanBuffer) -> None:
    tracer = trace.get_tracer("app")
    with tracer.start_as_current_span("one"):
        aftercheck.set_session("s1", turn=3)
        aftercheck.set_versions(prompt="p7", index="i2")
        with tracer.start_as_current_span("chat") as chat:
            chat.set_attribute("gen_ai.operation.name", "chat")
    with tracer.start_as_current_span("two") as two:  # same thread, next request
        two.set_attribute("gen_ai.operation.name", "chat")
    chat_span, one, second = _spans(buffer)
    expected = {
        "aftercheck.session.id": "s1",
        "aftercheck.session.turn": 3,
        "aftercheck.version.prompt": "p7",
        "aftercheck.version.index": "i2",
    }
    assert expected.items() <= _attributes(chat_span).items()
    assert expected.items() <= _attributes(one).items()
    assert not expected.keys() & _attributes(second).keys()


def test_outside_a_span_the_scope_ends_with_its_block(buffer: SpanBuffer) -> None:
    tracer = trace.get_tracer("app")

    def call(name: str) -> None:
        with tracer.start_as_current_span(name) as span:
            span.set_attribute("gen_ai.operation.name", "chat")

    with aftercheck.set_session("s1"):
        call("inside")
        call("inside too")
    call("after")
    contextvars.Context().run(call, "elsewhere")
    found = ["aftercheck.session.id" in _attributes(span) for span in _spans(buffer)]
    assert found == [True, True, False, False]


def test_the_trace_id_is_the_span_s(buffer: SpanBuffer) -> None:
    assert aftercheck.current_trace_id() is None
    with trace.get_tracer("app").start_as_current_span("r") as span:
        assert aftercheck.current_trace_id() == f"{span.get_span_context().trace_id:032x}"


@pytest.mark.req("R6", "S25")
def test_feedback_is_checked_and_the_user_hashed(buffer: SpanBuffer) -> None:
    good = "ab" * 16
    assert aftercheck.feedback(good, "down", comment="no", user="jan@example.com", span_id="cd" * 8)
    assert aftercheck.feedback(good.upper(), 0.5)
    for bad in ("", "xyz", "0" * 32, "0x" + "1" * 30, cast("str", 7)):
        assert not aftercheck.feedback(bad, "up")
    assert not aftercheck.feedback(good, float("nan"))
    assert not aftercheck.feedback(good, cast("float", "sideways"))
    payloads = [cast("dict[str, object]", cast("tuple[int, object]", item.value)[1]) for item in buffer.take()]
    assert [(p["trace_id"], p["value"]) for p in payloads] == [(good, "down"), (good, 0.5)]
    assert "jan" not in json.dumps(payloads)
    assert buffer.stats().finished == 2


@pytest.mark.req("O46")
def test_an_evaluator_s_own_calls_are_never_sent(buffer: SpanBuffer) -> None:
    tracer = trace.get_tracer("judge")
    with (
        tracer.start_as_current_span("judge", attributes={"aftercheck.evaluator": True}),
        tracer.start_as_current_span("openai.chat") as call,
    ):
        call.set_attribute("gen_ai.operation.name", "chat")
    assert _spans(buffer) == []
    assert buffer.stats().not_sampled == 2


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ({"gen_ai.operation.name": "chat"}, True),
        ({"gen_ai.prompt.0.content": "hi"}, True),
        ({"openinference.span.kind": "LLM"}, True),
        ({"traceloop.entity.output": "x"}, True),
        ({"http.method": "GET", "traceloop.workflow.name": "w", "gen_ai.conversation.id": "c"}, False),
        ({"aftercheck.session.id": "s", "aftercheck.version.prompt": "p"}, False),
    ],
    ids=["semconv", "legacy", "openinference", "traceloop", "http", "tags-only"],
)
def test_only_spans_that_say_something_are_kept(buffer: SpanBuffer, attributes: dict[str, str], kept: bool) -> None:
    with trace.get_tracer("app").start_as_current_span("s", attributes=attributes):
        pass
    assert bool(_spans(buffer)) == kept


@pytest.mark.req("P1")
def test_an_error_of_ours_stays_ours(buffer: SpanBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("ours")

    monkeypatch.setattr(_processor, "estimate", broken)
    with trace.get_tracer("app").start_as_current_span("s"):
        pass
    assert buffer.stats().dropped == {"internal_error": 1}
    monkeypatch.setattr(buffer, "put", broken)
    assert not aftercheck.feedback("ab" * 16, "up")


@pytest.mark.req("P2", "U3")
@pytest.mark.parametrize(
    ("name", "environ", "hint"),
    [
        (None, {}, "OTEL_SERVICE_NAME"),
        ("a", {"AFTERCHECK_REDIS_URL": "http://x"}, "AFTERCHECK_REDIS_URL=redis://"),
        ("a", {"AFTERCHECK_MAX_BUFFER_BYTES": "lots"}, "whole number"),
        ("a", {"AFTERCHECK_MAX_BUFFER_BYTES": "5"}, "1048576"),
    ],
    ids=["name", "url", "word", "small"],
)
def test_bad_settings_warn_once_or_raise_when_strict(
    name: str | None,
    environ: dict[str, str],
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _guard.forget_warnings()
    for key, value in environ.items():
        monkeypatch.setenv(key, value)
    for _ in range(2):
        aftercheck.init(name)
    assert caplog.text.count(hint) == 1
    with pytest.raises(aftercheck.ConfigurationError, match=hint.split("=", maxsplit=1)[0]):
        aftercheck.init(name, strict=True)
    assert _init._client is None


def test_settings_come_from_the_environment() -> None:
    environ = {
        "OTEL_SERVICE_NAME": "svc",
        "REDIS_URL": "redis://a:1/0",
        "OTEL_RESOURCE_ATTRIBUTES": "x=y,deployment.environment=staging",
        "AFTERCHECK_DEV": "1",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT",
    }
    found = _settings.load(None, env=environ)
    assert (found.app, found.redis_url, found.environment) == ("svc", "redis://a:1/0", "staging")
    assert found.dev
    assert not found.capture_content
    secret = _settings.load("a", redis_url="redis://:s3cret@h/0", env={"AFTERCHECK_REDACTION_KEY": "k3y"})
    assert "s3cret" not in repr(secret)
    assert "k3y" not in repr(secret)
    assert _settings.load("a", env=environ).app == "a"


@pytest.mark.req("P2")
def test_a_bad_environment_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    _guard.forget_warnings()
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "4096")
    monkeypatch.setenv("TRACELOOP_TRACE_CONTENT", "false")
    _provider.warn_of_environment()
    _provider.warn_of_sampler(TracerProvider(sampler=TraceIdRatioBased(0.1)))
    for word in ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=4096", "TRACELOOP_TRACE_CONTENT=false", "samples 10%"):
        assert word in caplog.text


def test_the_sdk_can_be_disabled(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    _guard.forget_warnings()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with caplog.at_level(logging.WARNING):
        aftercheck.init("demo", strict=True)
    assert "OTEL_SDK_DISABLED" in caplog.text
    assert aftercheck.stats() == aftercheck.Stats()
    assert aftercheck.flush() == aftercheck.FlushResult()
    assert not aftercheck.feedback("ab" * 16, "up")


def test_the_command_without_the_worker_says_how_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "_NEEDS", ("no_such_library_of_the_worker",))
    with pytest.raises(SystemExit) as caught:
        command.main()
    assert caught.value.code == 78
    output = capsys.readouterr()
    assert output.out == ""
    assert "pip install 'aftercheck[worker]'" in output.err


def test_the_command_calls_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    monkeypatch.setattr(command, "_NEEDS", ())
    monkeypatch.setattr(command, "_WORKER_CLI", "json")
    monkeypatch.setattr(sys.modules["json"], "main", lambda: called.append(True), raising=False)
    command.main()
    assert called == [True]


def test_the_gunicorn_hook_flushes(buffer: SpanBuffer) -> None:
    hooks.gunicorn_worker_exit(None, None)
    assert buffer.stats().buffered == 0
