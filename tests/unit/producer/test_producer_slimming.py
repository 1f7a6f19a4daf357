"""One value: decoded before redaction, vectors and blobs summarised, cuts flagged, always valid UTF-8 JSON."""

from __future__ import annotations

import base64
import json
import math
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck import _processor
from aftercheck_schemas import cleaning, slimming
from aftercheck_schemas.redaction import Redactor
from aftercheck_schemas.slimming import Slimmer


def _slimmer(max_chars: int = 10_000) -> Slimmer:
    return Slimmer(Redactor(b"key"), "trace", max_chars)


def _clean(value: object, max_chars: int = 10_000) -> object:
    return _slimmer(max_chars).attribute(value)[0]


@pytest.mark.req("S01")
def test_escaped_cyrillic_is_redacted_after_decoding() -> None:
    raw = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Пишіть на іван@приклад.укр"}]}])
    assert "\\u" in raw
    clean = cast("str", _clean(raw))
    assert "іван" not in clean
    assert json.loads(clean)[0]["parts"][0]["content"].startswith("Пишіть на <EMAIL_")


@pytest.mark.req("S01")
def test_doubly_encoded_json_and_cut_json_are_redacted() -> None:
    node = json.dumps({"node": {"text": "jan@example.com", "почта": "я@пример.рф"}})
    assert "example" not in cast("str", _clean(json.dumps([node])))
    cut = json.dumps({"text": "почта я@пример.рф и дальше"})[:-4]
    assert "пример" not in cast("str", _clean(cut))
    assert "\\u043f\\u0440\\u0438\\u043c" not in cast("str", _clean(cut))


def test_a_text_inside_a_message_keeps_its_very_characters() -> None:
    inner = '{ "total" : 1.50,  "note": "ok" }'
    clean = json.loads(cast("str", _clean(json.dumps([{"content": inner}]))))
    assert clean[0]["content"] == inner


@pytest.mark.req("R28")
@pytest.mark.parametrize(
    ("vector", "zero", "norm"),
    [([0.0] * 64, True, 0.0), ([3.0, 4.0] + [0.0] * 30, False, 5.0), ([math.nan] * 20, False, None)],
)
def test_vectors_become_summaries(vector: list[float], zero: bool, norm: float | None) -> None:
    for value in (tuple(vector), json.dumps({"embedding": vector}) if norm is not None else vector):
        clean = _clean(value)
        found = json.loads(clean)["embedding"] if isinstance(clean, str) else cast("dict[str, object]", clean)
        assert (found["dim"], found["is_zero"], found["l2"]) == (len(vector), zero, norm)
        assert len(str(found["sha256"])) == 64
    assert _clean([1, 2, 3]) == [1, 2, 3]


def test_images_become_digests_and_text_blobs_stay_readable() -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 8).decode()
    clean = json.loads(cast("str", _clean(json.dumps([{"type": "image_url", "image_url": {"url": image}}]))))
    assert clean[0]["image_url"]["url"]["len"] == len(image)
    bare = base64.b64encode(bytes(range(256)) * 8).decode()
    assert cast("dict[str, object]", _clean(bare))["len"] == len(bare)
    assert cast("dict[str, object]", _clean(b"\x00\xff"))["len"] == 2
    document = base64.b64encode(b"Ring jan@example.com").decode()
    part = json.dumps([{"type": "blob", "mime_type": "text/plain", "content": document}])
    kept = json.loads(cast("str", _clean(part)))[0]["content"]
    assert base64.b64decode(kept).decode().startswith("Ring <EMAIL_")
    words = "wordsWithoutBlanks" * 60
    assert _clean(words) == words, "no digits, so not a blob"


@pytest.mark.req("F25")
def test_a_cut_is_flagged_and_comes_after_redaction() -> None:
    slimmer = _slimmer(20)
    value, cut = slimmer.attribute("0123456789 jan.kowalski@example.com and more")
    assert cut
    assert len(cast("str", value)) == 20
    assert "jan" not in cast("str", value)
    assert slimmer.attribute("short") == ("short", False)


@pytest.mark.req("F25")
def test_poison_values_are_made_harmless() -> None:
    poison = {"nul": "a\0b", "lone": "x\ud83dy", "nan": math.nan, "inf": math.inf, "big": 10**30, "huge": 10**5000}
    clean = cast("dict[str, object]", _clean(poison))
    assert clean["nul"] == "a\ufffdb"
    assert clean["lone"] == "x\ufffdy"
    assert clean["nan"] is None
    msgspec.json.encode(clean)
    escaped = cast("str", _clean('{"a": "\\ud83d", "b": NaN, "c": 1e999}'))
    msgspec.json.decode(escaped)
    deep = "[" * 200_000
    assert isinstance(_clean(deep), str)
    nested: object = "x"
    for _ in range(100):
        nested = [nested]
    _, cut = _slimmer().attribute(nested)
    assert cut


@pytest.mark.req("S01")
def test_numbers_and_keys_are_redacted_too() -> None:
    clean = cast("str", _clean(json.dumps({"jan@example.com": 4111111111111111, "n": 12345678901})))
    assert "example" not in clean
    assert "4111111111111111" not in clean
    assert json.loads(clean)["n"] == 12345678901


@pytest.mark.req("S01")
def test_a_key_gives_its_value_away() -> None:
    arguments = {"password": "hunter22", "db.api_key": "abcdef", "phone": "601234567", "tel": 601234567}
    clean = cast("str", _clean(json.dumps(arguments)))
    for secret in ("hunter22", "abcdef", "601234567"):
        assert secret not in clean
    harmless = {"tokens": 12345678, "secretary": "Jan Nowak", "mobile": "yes, since 2019", "phone": "unknown"}
    assert json.loads(cast("str", _clean(json.dumps(harmless)))) == harmless
    assert _slimmer().attribute("hunter22", "http.request.header.authorization")[0] != "hunter22"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.req("F25")
@given(JSON)
def test_any_value_becomes_valid_json(value: object) -> None:
    document = slimming.encode_json({"v": cast("str", _clean(value))})
    json.loads(document)
    document.encode()


def test_the_chunk_event_has_one_name() -> None:
    assert _processor.CHUNK_EVENT == cleaning.CHUNK_EVENT
