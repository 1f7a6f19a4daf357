"""The demo's rows may be shipped, and the stub finds the answer to each."""

from __future__ import annotations

import json
import urllib.request
from importlib import resources

import pytest

from aftercheck_worker.cli import demo
from aftercheck_worker.demo import model, rows

SOURCES = {"orhonovich/q-squared", "yuxiaw/Factcheck-GPT", "salesforce/factualNLG"}


def test_every_row_names_a_source_that_allows_shipping() -> None:
    found = rows.load()

    assert 20 <= len(found) <= 30
    assert {row.licence for row in found} == {"Apache-2.0"}
    assert {row.source.split()[0] for row in found} == SOURCES
    notice = resources.files("aftercheck_worker.demo").joinpath("NOTICE").read_text()
    assert all(source in notice for source in SOURCES)


def test_both_labels_are_there_and_no_prompt_twice() -> None:
    found = rows.load()
    supported = sum(row.label == "supported" for row in found)

    assert 8 <= supported <= len(found) - 8
    assert len({row.id for row in found}) == len(found)


def test_the_stub_speaks_the_chat_api() -> None:
    row = rows.load()[0]
    body = {"model": "m", "messages": [{"role": "user", "content": demo.prompt(row)}], "temperature": 0}
    with model.serving({demo.prompt(row): row.response}) as base:
        request = urllib.request.Request(f"{base}/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5) as response:
            said = json.load(response)

    assert said["choices"][0]["message"]["content"] == row.response
    assert said["usage"]["total_tokens"] > 0


@pytest.mark.parametrize(
    ("human", "ours", "words"),
    [
        ("supported", "grounded", "1 of 1 agree"),
        ("contradicted", "grounded", "1 called grounded though"),
        ("supported", "no_claims", "0 of 0 agree"),
    ],
)
def test_agreement_counts_decided_answers_only(human: str, ours: str, words: str) -> None:
    assert words in demo.agreement([{"human": human, "outcome": ours}])
