"""Commands that need no service, and how every command ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercheck_worker import settings
from aftercheck_worker.cli import application, output
from aftercheck_worker.cli.config import describe
from aftercheck_worker.cli.explain import normal
from aftercheck_worker.cli.push import read
from aftercheck_worker.errors import InputError, UsageError

NO_REDIS = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}


@pytest.fixture(autouse=True)
def fresh_settings() -> Iterator[None]:
    settings.current.cache_clear()
    yield
    settings.current.cache_clear()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = application.run(words)
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.req("U45")
def test_version_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "version", "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["wire"] == 1


@pytest.mark.req("U11")
@pytest.mark.parametrize(
    ("words", "code"),
    [(("no-such-command",), 2), (("stats", "--no-such-option"), 2), (("explain",), 2), (("-h",), 0)],
)
def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int) -> None:
    assert run(capsys, *words)[0] == code


@pytest.mark.req("U11", "U15")
@pytest.mark.parametrize(
    "words", [("stats",), ("explain", "a" * 32), ("sampling", "list"), ("dlq", "list"), ("migrate",)]
)
def test_a_lost_postgres_is_69_and_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for name, url in NO_REDIS.items():
        monkeypatch.setenv(name, url)

    code, out, err = run(capsys, *words, *([] if words == ("migrate",) else ["--json"]))

    assert (code, out) == (69, "")
    assert len(err.strip().splitlines()) == 1
    assert "127.0.0.1:1" in err
    assert "Fix:" in err


@pytest.mark.req("U11", "U16")
def test_a_misspelt_setting_is_78_and_names_the_right_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFTERCHECK_SAMPLING_RAT", "0.5")

    code, _, err = run(capsys, "config", "show")

    assert code == 78
    assert "AFTERCHECK_SAMPLING_RATE" in err


@pytest.mark.req("U14")
def test_the_doctor_names_what_is_lost_and_exits_69(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, url in NO_REDIS.items():
        monkeypatch.setenv(name, url)

    code, out, _ = run(capsys, "doctor", "--json")

    failed = {line["check"]: line["fix"] for line in json.loads(out) if line["status"] == "fail"}
    assert code == 69
    assert set(failed) == {"redis", "postgres"}
    assert all(failed.values())


@pytest.mark.req("U14")
def test_the_doctor_finds_contradicting_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, url in NO_REDIS.items():
        monkeypatch.setenv(name, url)
    monkeypatch.setenv("AFTERCHECK_VISIBILITY_TIMEOUT", "500")

    _, out, _ = run(capsys, "doctor", "--json")

    (line,) = [line for line in json.loads(out) if line["check"] == "time limits"]
    assert (line["status"], line["exit_code"]) == ("fail", 78)


@pytest.mark.req("U16")
def test_config_says_where_a_value_comes_from_and_hides_secrets(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("redis://:hunter2@host:6379/0")

    shown = {s.name: s for s in describe({"REDIS_URL_FILE": str(secret), "AFTERCHECK_SAMPLING_RATE": "0.5"})}

    assert (shown["REDIS_URL"].value, shown["REDIS_URL"].source) == ("***", "file (REDIS_URL_FILE)")
    assert (shown["AFTERCHECK_SAMPLING_RATE"].value, shown["AFTERCHECK_SAMPLING_RATE"].source) == (
        "0.5",
        "environment (AFTERCHECK_SAMPLING_RATE)",
    )
    assert shown["AFTERCHECK_BATCH_SIZE"].source == "default"


def test_ctrl_c_is_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr("aftercheck_worker.cli.version.describe", interrupted)

    assert run(capsys, "version")[0] == 130


@pytest.mark.req("U15")
def test_a_bug_is_one_line_and_debug_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> dict[str, object]:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("aftercheck_worker.cli.version.describe", broken)

    code, _, err = run(capsys, "version")
    assert code == 70
    assert err.count("\n") == 1
    assert "--debug" in err
    with pytest.raises(ZeroDivisionError):
        application.run(["version"], debug=True)


def test_text_of_a_model_cannot_rewrite_our_words() -> None:
    assert output.visible("a\u202eb\x1b[31m\nc\ud800") == "a\\u202eb\\u001b[31m c\\ud800"


def test_nothing_measured_is_a_dash() -> None:
    assert [output.cell(value) for value in (None, float("nan"), 0.0, 0.125, "x")] == ["-", "-", "0", "0.125", "x"]


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 32, "a" * 33])
def test_a_wrong_trace_id_is_a_usage_error(wrong: str) -> None:
    with pytest.raises(UsageError):
        normal(wrong)


def test_a_trace_id_may_be_written_as_a_uuid() -> None:
    assert normal("4BF92F35-77B3-4DA6-A3CE-929D0E0E4736") == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_push_reads_both_names_of_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"query": "q", "context": "c", "answer": "a"}\n\n'
        '{"context": ["c", {"text": "d", "source_id": "s", "trust": 0.5}], "response": "b", "label": "ignored"}\n'
    )

    first, second = read(file)

    assert (first["answer"], first["context"]) == ("a", ["c"])
    assert second["answer"] == "b"
    assert second["context"] == ["c", {"text": "d", "source_id": "s", "trust": 0.5}]


@pytest.mark.parametrize(
    "line", ['{"query": "q"}', "not json", '{"answer": 3}', '["a"]', '{"answer": "\\ud800"}', '{"answer": ""}']
)
def test_push_names_the_line_that_it_cannot_read(tmp_path: Path, line: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"answer": "fine"}\n' + line + "\n")

    with pytest.raises(InputError, match=r"rows\.jsonl:2"):
        list(read(file))


def test_push_of_a_missing_file_is_65(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "push", str(tmp_path / "none.jsonl"))

    assert code == 65
    assert "none.jsonl" in err


@pytest.mark.req("U17")
def test_every_command_has_an_example_and_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        *(info.name or info.callback.__name__ for info in application.build().registered_commands if info.callback),
    ]
    groups = [
        (g.name, c)
        for g in application.build().registered_groups
        for c in (g.typer_instance or application.build()).registered_commands
    ]
    paths = [[name.replace("_", "-")] for name in commands]
    paths += [
        [str(group), command.name or (command.callback.__name__ if command.callback else "")]
        for group, command in groups
    ]
    for path in paths:
        code, out, _ = run(capsys, *path, "--help")
        assert code == 0, path
        assert "Example: " in out, path
        assert max(len(line) for line in out.splitlines()) <= 80, path
