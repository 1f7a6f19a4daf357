"""Planted personal data is found in five languages; numbers and dates of claims survive (S01, S02)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import pii
from aftercheck_schemas.redaction import PIECE_CHARS, Redactor, pieces

REDACTOR = Redactor(b"a key of the test")

PLANTED = {
    "EMAIL": ["jane.doe@example.com", "иван.петров@пример.рф",
              "o.müller@münchen.example",
              "a_b+tag@sub.example.org"],
    "PHONE": [
        "+48 601 234 567", "+49 (0)30 1234567", "+1 (415) 555-2671", "(415) 555-2671", "415-555-2671",
        "+380671234567",
        "8 (495) 123-45-67", "8-916-123-45-67", "067 123 45 67", "(044) 123-45-67", "0171/1234567", "601-234-567",
        "tel. 601 234 567", "telefon: 601234567", "телефон 1234567", "тел.: 495 1234567", "0049 30 1234567",
        "+7 916 123 45 67", "Rufnummer 030 1234567", "позвоните 89161234567", "дзвоніть 0671234567",
    ],
    "CARD": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "4111111111111111"],
    "IBAN": [
        "DE89 3704 0044 0532 0130 00", "PL61 1090 1014 0000 0712 1981 2874", "UA213223130000026007233566001",
        "de89370400440532013000", "GB82WEST12345698765432",
    ],
    "JWT": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5NXgL0n3I9PlFUP0THsR8U"],
    "KEY": [
        "AKIAIOSFODNN7EXAMPLE", "sk-" + "proj-abcdefghijklmnopqrstuvwx", "sk-" + "ant-api03-abcdefghijklmnopqrst",
        "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
        "xoxb-" + "123456789012-abcdefghij", "hf_" + "abcdefghijklmnopqrstuvwxyz01234567", "password=Sup3rS3cret!",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "Bearer abcdefghijklmnopqrstuvwx",
    ],
    "CREDENTIALS": ["postgres://bob:s3cr3t@db.example/x"],
    "SSN": ["123-45-6789"],
    "PESEL": ["PESEL: 44051401359"],
}  # fmt: skip
TEMPLATES = {
    "en": "Contact %s today, please.",
    "pl": "Skontaktuj się: %s, dziękuję.",
    "uk": "Зв'яжіться з нами %s сьогодні.",
    "ru": "Связь: %s; ответим быстро.",
    "de": "Bitte melden (%s) bis morgen!",
}
CLEAN = """On 2026-11-30 14:05 the service had 1,234,567 requests; 12.3.4.5 and 1000-2000-3000 were versions.
Revenue was 601 234 567 USD (1 234 567 890 in 2024), up 12.5% from 2019-2023; pi is 3.141592653589793.
Die Kosten betrugen 1.234.567,89 EUR am 30.11.2026. ISBN 978-3-16-148410-0. Zeitraum 01.01.2020-31.12.2024.
Ludność wynosi 37 950 802; выручка 1 234 567 890 руб. за 2023-2024 годы; температура -273.15; 10 000 000 000.
trace 4bf92f3577b34da6a3ce929d0e0e4736 port 8080 pid 1234567 uuid 123e4567-e89b-12d3-a456-426614174000
1732968300000 1732968300123456789 9007199254740993 order 123456789 page 12-15 version 10.15.7 score 3:2
phone sales rose to 1 200 000 units in 2024; the phone costs 1299.99 dollars. 1500-2000 calls. Strona 12345678.
The range 100-200-300 and 2020/2021/2022; 12/31/2024; 0.000001234; 6.022e23; 52.229770, 21.011780
The 2020 2021 2022 2023 seasons; 10 20 30 40 50 60 70; 2,147,483,647; 4294967295; 299 792 458 m/s; 1 609 344 mm.
Total: 12 345 678,90 zł; KRS 0000123456; NIP 526-000-12-46; ticket 20261130-001; 2026-11-30 2026-12-01.
The secret of growth: patience. Password policy: change it. Bearer bonds pay 5 %. sk-learn and e-mail @home.
growth of +12 345 678 units and +1 234 567; 10:1234567; -1234567.
Станом на 24.08.2024 населення 2 952 301; бюджет 45 678 901,23 грн; тираж 100 000."""


@pytest.mark.req("S01", "R2")
@pytest.mark.parametrize("language", TEMPLATES)
@pytest.mark.parametrize(("kind", "value"), [(k, v) for k, values in PLANTED.items() for v in values])
def test_planted_data_is_replaced(kind: str, value: str, language: str) -> None:
    text = TEMPLATES[language] % value
    clean = REDACTOR.redact(text, "trace")
    secret = value.split(": ")[-1].split("=")[-1].strip()
    assert secret not in clean, clean
    assert f"<{kind}_" in clean, clean
    before, after = TEMPLATES[language].split("%s")
    assert clean.startswith(before)
    assert clean.endswith(after)


@pytest.mark.req("S02")
def test_clean_technical_text_keeps_its_numbers() -> None:
    kept = REDACTOR.redact(CLEAN, "trace").split()
    changed = [(a, b) for a, b in zip(CLEAN.split(), kept, strict=True) if a != b]
    assert len(changed) <= 0.005 * len(kept), changed


@pytest.mark.req("S01")
def test_placeholders_agree_between_processes_and_differ_between_traces() -> None:
    text = "mail jan@example.com"
    assert Redactor(b"k").redact(text, "t1") == Redactor(b"k").redact(text.upper().lower(), "t1")
    assert Redactor(b"k").redact(text, "t1") != Redactor(b"k").redact(text, "t2")
    assert Redactor(b"k").redact(text, "t1") != Redactor(b"other").redact(text, "t1")


def test_question_and_context_keep_the_same_placeholder() -> None:
    short = REDACTOR.redact("tel. 601 234 567", "t").removeprefix("tel. ")
    assert REDACTOR.redact("+48 601-234-567", "t") == short
    assert REDACTOR.redact("4111111111111111", "t") == REDACTOR.redact("4111 1111 1111 1111", "t")


@pytest.mark.req("S01")
@pytest.mark.parametrize(
    "text",
    [
        "Tel:601234567",
        "tel:+14155552671",
        "tel.601234567",
        "Jan,601-234-567,Nowak",
        '"phone":"+48601234567"',
        "card,4111111111111111,12/28",
        "mailto:jan@example.com?subject=x",
        "https://x.example/?q=jan%40example.com&y=1",
    ],
)
def test_data_glued_to_punctuation_is_found(text: str) -> None:
    clean = REDACTOR.redact(text, "t")
    assert "<" in clean
    assert not any(secret in clean for secret in ("601234567", "4155552671", "601-234-567", "41111111", "jan"))


def test_a_number_that_fails_its_check_digit_stays() -> None:
    for text in ("4111 1111 1111 1112 units", "DE89 3704 0044 0532 0130 01 code", "PESEL 44051401358 x"):
        assert REDACTOR.redact(text, "t") == text


@pytest.mark.req("S01")
@given(st.integers(0, 3 * PIECE_CHARS), st.sampled_from(["word ", "слово ", "漢字", "line\n", "1 "]))
def test_data_is_found_at_any_place_of_a_long_text(at: int, filler: str) -> None:
    padding = (filler * (3 * PIECE_CHARS))[:at]
    text = f"{padding} jan.kowalski@example.com and +48 601 234 567 {padding}"
    assert "".join(pieces(text)) == text
    clean = REDACTOR.redact(text, "t")
    assert "kowalski" not in clean
    assert "601 234 567" not in clean


@given(st.text(max_size=400))
def test_any_text_is_taken(text: str) -> None:
    clean = REDACTOR.redact(text, "t")
    assert REDACTOR.redact(clean, "t") == clean, "placeholders are stable"


@pytest.mark.req("S01")
def test_a_private_key_is_replaced_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 40 + "-----END RSA PRIVATE KEY-----"
    assert REDACTOR.redact(f"before {key} after", "t").startswith("before <KEY_")
    assert "MIIE" not in REDACTOR.redact(f"before {key[:300]}", "t"), "also where it was cut"


def test_luhn_and_digits() -> None:
    assert pii.luhn("4111111111111111")
    assert not pii.luhn("4111111111111112")
    assert pii.digits_of("٣4-5") == "45"


def test_every_character_of_the_result_knows_where_it_came_from() -> None:
    redactor = Redactor(b"key")
    text = "Ask jan@example.com, or call +48 601 234 567. " * 300 + "The end."
    clean, origin = redactor.mapped(text, "scope")
    assert clean == redactor.redact(text, "scope")
    assert origin is not None
    assert len(origin) == len(clean) + 1
    assert origin == sorted(origin)
    for at in (0, clean.index("or call"), clean.index("The end.")):
        assert text[origin[at] :].startswith(clean[at : at + 4])
    end = clean.index(">") + 1
    assert text[origin[clean.index("<")] : origin[end]] == "jan@example.com"
    assert redactor.mapped("nothing here", "scope") == ("nothing here", None)
