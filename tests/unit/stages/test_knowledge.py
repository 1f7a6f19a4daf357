"""The knowledge base: a folder or JSONL, marked evidence, one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftercheck_worker.errors import InputError
from aftercheck_worker.knowledge import load
from aftercheck_worker.stages.retrieval import EvidenceSource


@pytest.mark.req("R8")
def test_a_folder_and_a_file_give_marked_passages(tmp_path: Path) -> None:
    (tmp_path / "fees").mkdir()
    (tmp_path / "fees" / "plan.md").write_text("The fee of the Basic plan is 5 euros.", encoding="utf-8")
    (tmp_path / "dogs.txt").write_text("Dogs bark.", encoding="utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    rows = tmp_path / "kb.jsonl"
    rows.write_text(
        '{"source_id": "a", "text": "The fee is 5 euros.", "more": 1}\n\n{"text": "Dogs bark."}\n', encoding="utf-8"
    )
    folder: EvidenceSource = load(tmp_path)
    assert [(p.source_id, p.kind) for p in folder.search("Which fee?", 1)] == [("fees/plan.md", "knowledge_base")]
    assert [p.source_id for p in load(rows).search("dogs", 3)] == ["line:3"]


@pytest.mark.parametrize("line", ["no json", '{"text": 5}', "[]"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    rows = tmp_path / "kb.jsonl"
    rows.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match="Line 1"):
        load(rows)


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none")
