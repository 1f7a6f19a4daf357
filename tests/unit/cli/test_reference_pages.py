"""The generated reference is fresh."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.req("U20", "U21")
@pytest.mark.parametrize("name", ["cli.md", "false-pages.md", "metrics.md", "settings.md"])
def test_the_reference_is_what_the_code_says(name: str) -> None:
    expected = generator().pages()[name]

    assert (DOCS / "reference" / name).read_text() == expected, "run: make docs"
