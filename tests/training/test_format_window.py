"""The input text and the window cutter."""

from __future__ import annotations

import pytest

from training.format import CLAIM, GAP, MARKERS, PREVIOUS, QUESTION, clean, segment_a, segment_b
from training.record import record_lines
from training.window import select_runs, select_window, sentences, terms

STORY = (
    "The ferry left Hull at noon. It carried 214 passengers. The weather was calm. Nine people were crew. "
    "Dr. Amara Lind was the captain. The trip took eleven hours. Tickets cost 40 euros. It docked in Rotterdam."
)


def test_segment_b_leaves_absent_parts_out() -> None:
    assert segment_b("It sank.") == f"{CLAIM} It sank."
    assert segment_b("It sank.", "What happened?", "A ferry left.") == (
        f"{QUESTION} What happened? {PREVIOUS} A ferry left. {CLAIM} It sank."
    )


@pytest.mark.parametrize("marker", [*MARKERS, "[CLS]", "[SEP]", "[ unused5 ]", "[Unused99]"])
def test_source_text_cannot_forge_a_marker(marker: str) -> None:
    assert marker not in clean(f"before {marker} after")
    assert segment_b(f"a {marker} b").count("[") == 1


def test_title_stands_in_front_and_gaps_are_marked() -> None:
    assert segment_a([["One.", "Two."], ["Five."]], "Log") == f"Log {GAP} One. Two. {GAP} Five."


def test_sentences_keep_abbreviations_and_cut_records_into_lines() -> None:
    assert "Dr. Amara Lind was the captain." in sentences(STORY)
    assert record_lines('{"hours": {"Monday": "8:0-17:0"}, "wifi": null}') == [
        "hours Monday: 8:00-17:00",
        "wifi: null",
    ]
    assert record_lines("plain prose") is None


def test_a_short_context_is_kept_whole() -> None:
    assert select_window("anything", "", [STORY], budget_words=500) == " ".join(sentences(STORY))


def test_the_window_holds_the_evidence_of_both_halves_within_the_budget() -> None:
    window = select_window(
        "The captain was Amara Lind and tickets cost 40 euros.", "", [STORY, "Trains are red. " * 40], 30
    )
    assert "Amara Lind" in window
    assert "40 euros" in window
    assert len(window.replace(GAP, "").split()) <= 30


def test_runs_keep_document_order_and_never_join_two_passages() -> None:
    runs = select_runs("Alpha beta gamma.", "", ["Alpha one. Noise here.", "Beta two. Gamma three."], 500)
    assert runs == [["Alpha one.", "Noise here."], ["Beta two.", "Gamma three."]]


def test_no_evidence_gives_an_empty_window() -> None:
    assert select_window("A claim.", "", []) == ""
    assert select_window("A claim.", "", ["  \n "]) == ""


def test_terms_drop_stop_words_and_stem() -> None:
    assert terms("The cats were running 1,200 miles") == ["cat", "runnin", "1,200", "mile"]
