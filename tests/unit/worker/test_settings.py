"""Settings: environment, files, ranges, and spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftercheck_worker import settings
from aftercheck_worker.errors import ConfigurationError


@pytest.mark.req("R4")
def test_defaults() -> None:
    found = settings.load({})

    assert found.sampling_rate == 0.05
    assert found.embedded
    assert found.visibility_timeout > 2 * found.task_time_limit


@pytest.mark.req("U40")
def test_plain_names_and_ours() -> None:
    found = settings.load({"DATABASE_URL": "postgresql://a", "AFTERCHECK_REDIS_URL": "redis://b", "UNRELATED": "x"})

    assert found.database_url is not None
    assert found.database_url.get_secret_value() == "postgresql://a"
    assert found.redis_url is not None
    assert found.redis_url.get_secret_value() == "redis://b"
    assert not found.embedded


@pytest.mark.req("S28")
def test_secret_from_a_file_and_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://u:sentinel@h/d\n")

    found = settings.load({"DATABASE_URL_FILE": str(secret)})

    assert found.database_url is not None
    assert found.database_url.get_secret_value() == "postgresql://u:sentinel@h/d"
    assert "sentinel" not in repr(found)


def test_missing_secret_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DATABASE_URL_FILE names a file that cannot be read") as caught:
        settings.load({"DATABASE_URL_FILE": str(tmp_path / "absent")})

    assert "\n" not in str(caught.value)


@pytest.mark.req("U16")
@pytest.mark.parametrize(
    ("name", "hint"),
    [("AFTERCHECK_SAMPLING_RAT", "AFTERCHECK_SAMPLING_RATE"), ("AFTERCHECK_ZZZ", "config show")],
)
def test_unknown_names_are_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=hint) as caught:
        settings.load({name: "1"})

    assert caught.value.exit_code == 78


@pytest.mark.parametrize(
    ("name", "value"),
    [("SAMPLING_RATE", "1.5"), ("SAMPLING_RATE", "nan"), ("BATCH_SIZE", "33"), ("ACTION_FROM", "v3")],
)
def test_values_out_of_range_name_the_setting(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"AFTERCHECK_{name}"):
        settings.load({f"AFTERCHECK_{name}": value})


def test_the_producers_names_are_known() -> None:
    settings.load({"AFTERCHECK_MAX_BUFFER_BYTES": "1", "AFTERCHECK_REDACTION_KEY": "k"})
