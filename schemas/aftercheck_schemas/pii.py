r"""Patterns of personal data and secrets, each with the check that keeps numbers and dates of claims alive (S02).

Every pattern starts only at a token boundary and repeats within bounds, so that matching is linear (S03).
`RULES_VERSION` changes with any rule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

RULES_VERSION = "1"


class Rule(NamedTuple):
    """One kind of data.

    Attributes:
        kind: the word in the placeholder, `<KIND_a1b2c3>`.
        pattern: finds candidates; group `v`, where present, is the part to replace.
        needs: any of these must be in the text, else the pattern is not tried; empty = always tried.
        accept: takes the text and the match, returns how many characters of the value to replace (0 = not one).
    """

    kind: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    accept: Callable[[str, re.Match[str]], int]


def _whole(_: str, match: re.Match[str]) -> int:
    start, end = span_of(match)
    return end - start


def span_of(match: re.Match[str]) -> tuple[int, int]:
    """Offsets of the value inside the match."""
    group = "v" if "v" in match.re.groupindex else 0
    return match.span(group)


# --- cards and accounts ----------------------------------------------------------------------------

IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15,
    "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19,
    "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
"""Length by country (SWIFT IBAN registry)."""


def _card(text: str, match: re.Match[str]) -> int:
    digits = digits_of(match.group())
    if len(digits) not in (13, 14, 15, 16, 19) or digits[0] not in "23456" or len(set(digits)) < 2:
        return 0
    return _whole(text, match) if luhn(digits) else 0


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1 check digit."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _iban(_: str, match: re.Match[str]) -> int:
    raw = match.group()
    length = IBAN_LENGTHS.get(raw[:2].upper(), 0)
    compact, end = "", 0
    for end, char in enumerate(raw, start=1):  # noqa: B007 - the end is the result
        if char.isalnum():
            compact += char.upper()
        if len(compact) == length:
            break
    if not length or len(compact) < length or not (end == len(raw) or not raw[end].isalnum()):
        return 0
    number = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
    return end if int(number) % 97 == 1 else 0


def digits_of(text: str) -> str:
    """ASCII digits of a text."""
    return "".join(char for char in text if char in "0123456789")


# --- phones ----------------------------------------------------------------------------------------

_PHONE_WORDS = re.compile(
    r"\b(?:tel|phone|telephone|telefon\w{0,2}|telefonnummer|mobile|mobil|mobilnummer|cell|call|fax|handy"
    r"|kom|kom[oó]rka|komórkowy|zadzwoń|dzwoń|rufnummer|anrufen|ring|sms|whatsapp|viber|signal"
    r"|тел|телефон\w{0,3}|моб|мобильн\w{0,4}|мобільн\w{0,4}|звонит\w{0,3}|звоните|дзвоніть|подзвоніть|позвоните"
    r"|факс|вайбер)\b[.:№#]{0,2}[\s(]{0,4}(?:\w{1,8}[\s:,(]{1,3}){0,2}$",
    re.IGNORECASE,
)
_NANP = re.compile(r"(?:1[-. ])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}([-. ]))[2-9]\d{2}[-. ]\d{4}")
_EAST = re.compile(
    r"(?:[78][-  ]?|0)(?:\(\d{3,4}\)|\d{2,4})[-  ]?\d{2,3}-\d{2}-\d{2}|\(\d{3,4}\) ?\d{2,3}-\d{2}-\d{2}"
    r"|0\d{2} \d{3} \d{2} \d{2}|8 \d{3} \d{3} \d{2} \d{2}"
)
_GERMAN = re.compile(r"\(?0\d{2,4}\)?(?: ?/ ?| |-)\d{3,4}[ -]?\d{3,5}")
_POLISH = re.compile(r"[4-8]\d{2}-\d{3}-\d{3}|\(?\d{2}\)? \d{3}-\d{2}-\d{2}")
_SIGNED = re.compile(r"\+\d{1,3}(?:[  .]\d{3})+")
_DATE = re.compile(r"(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ]\d|[0-3]?\d[-./][01]?\d[-./](?:19|20)\d\d")


def _phone(text: str, match: re.Match[str]) -> int:
    raw = match.group("v")
    digits = digits_of(raw)
    if not 7 <= len(digits) <= 15 or _DATE.match(raw):
        return 0
    length = len(raw)
    if raw[0] == "+":
        return length if len(digits) >= 8 and not (len(digits) < 10 and _SIGNED.fullmatch(raw)) else 0
    if raw.startswith("00") and len(digits) >= 10 and raw[2:3] not in ("0", " ", "-", "."):
        return length
    if _PHONE_WORDS.search(text[max(0, match.start("v") - 40) : match.start("v")]):
        return length
    shapes = (_NANP, _EAST, _GERMAN, _POLISH)
    return length if any(shape.fullmatch(raw) for shape in shapes) else 0


def _secret(_: str, match: re.Match[str]) -> int:
    return len(match.group("v").rstrip(").]}"))


def _ssn(text: str, match: re.Match[str]) -> int:
    area, group, serial = match.group().split("-")
    bad = area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000"
    return 0 if bad else _whole(text, match)


def _pesel(text: str, match: re.Match[str]) -> int:
    digits = match.group("v")
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
    return _whole(text, match) if sum(int(d) * w for d, w in zip(digits, weights, strict=True)) % 10 == 0 else 0


def _rule(
    kind: str,
    pattern: str,
    needs: tuple[str, ...] = (),
    accept: Callable[[str, re.Match[str]], int] = _whole,
    flags: int = 0,
) -> Rule:
    return Rule(kind, re.compile(pattern, flags), needs, accept)


_B = r"(?<![A-Za-z0-9_\-])"
_E = r"(?![A-Za-z0-9])"

RULES: tuple[Rule, ...] = (
    _rule(
        "KEY",
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[A-Za-z0-9+/=\s\\:,]{0,8192}"
        r"(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?",
        ("PRIVATE KEY",),
    ),
    _rule("JWT", r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?", ("eyJ",)),
    _rule("KEY", _B + r"sk-(?:ant-|proj-|svcacct-|admin-|or-|lf-)?[A-Za-z0-9_\-]{16,}", ("sk-",)),
    _rule(
        "KEY",
        _B
        + r"(?:pk-lf-|gsk_|hf_|r8_|npm_|pypi-|glpat-|dop_v1_|shpat_|xai-|pplx-|tvly-|lsv2_|nvapi-|fw_|phc_|dckr_pat_)"
        r"[A-Za-z0-9_\-]{16,}",
        (
            "pk-lf-",
            "gsk_",
            "hf_",
            "r8_",
            "npm_",
            "pypi-",
            "glpat-",
            "dop_v1_",
            "shpat_",
            "xai-",
            "pplx-",
            "tvly-",
            "lsv2_",
            "nvapi-",
            "fw_",
            "phc_",
            "dckr_pat_",
        ),
    ),
    _rule("KEY", _B + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})", ("gh", "github_pat_")),
    _rule(
        "KEY",
        _B + r"(?:AKIA|ASIA|AGPA|AROA|AIDA|ANPA|ABIA|ACCA)[A-Z0-9]{16}" + _E,
        ("AKIA", "ASIA", "AGPA", "AROA", "AIDA", "ANPA", "ABIA", "ACCA"),
    ),
    _rule(
        "KEY",
        r"(?:aws_?secret\w{0,20}|secret_?access_?key)[\"'\s:=]{1,6}(?P<v>[A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
        ("secret", "SECRET", "Secret"),
        flags=re.IGNORECASE,
    ),
    _rule(
        "KEY",
        _B + r"(?:AIza[A-Za-z0-9_\-]{35}|ya29\.[A-Za-z0-9_\-]{20,}|GOCSPX-[A-Za-z0-9_\-]{20,})",
        ("AIza", "ya29.", "GOCSPX-"),
    ),
    _rule("KEY", _B + r"xox[abeoprs]-[A-Za-z0-9\-]{10,}", ("xox",)),
    _rule("KEY", _B + r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{20,}", ("sk_", "rk_", "pk_", "whsec_")),
    _rule("KEY", _B + r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}", ("SG.",)),
    _rule("KEY", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_\-]{32,33}" + _E, (":AA",)),
    _rule("KEY", r"\bbearer\s{1,3}(?P<v>[A-Za-z0-9_\-.~+/]{16,}=*)", ("earer", "EARER"), flags=re.IGNORECASE),
    _rule(
        "KEY",
        r"(?<![A-Za-z0-9])(?:api[_-]?key|apikey|access[_-]?token|auth[_-]?token|client[_-]?secret|password|passwd|hasło|пароль"
        r"|passwort|secret)[\"']{0,2}\s{0,2}[:=]\s{0,2}[\"']?(?P<v>(?=[^\s\"'<>,;&]{0,64}[\d_\-!@#$%^*])[^\s\"'<>,;&]{6,200})",
        (":", "="),
        accept=_secret,
        flags=re.IGNORECASE,
    ),
    _rule(
        "CREDENTIALS", r"[A-Za-z][A-Za-z0-9+.\-]{1,20}://(?P<v>[^\s/:@<>\"']{1,100}:[^\s/@<>\"']{1,200})@", ("://",)
    ),
    _rule(
        "EMAIL",
        r"(?<![\w.%+\-])[\w.%+\-]{1,64}(?:@|%40)(?:[\w\-]{1,63}\.){1,6}(?:[^\W\d_]{2,24}|xn--[\w\-]{2,40})",
        ("@", "%40"),
    ),
    _rule("IBAN", r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}[  ]?(?:[A-Za-z0-9]{1,4}[  \-]?){3,8}", (), _iban),
    _rule("SSN", r"(?<![\w\-])\d{3}-\d{2}-\d{4}(?![\w\-])", ("-",), _ssn),
    _rule(
        "PESEL", r"pesel\w{0,3}[\s:]{1,3}(?:\w{2,6}\s)?(?P<v>\d{11})(?!\d)", ("esel", "ESEL"), _pesel, re.IGNORECASE
    ),
    _rule("CARD", r"(?<![\w\-])(?<!\d[.,])\d(?:[  \-]?\d){12,18}(?!\w)(?!\.\d)", (), _card),
    _rule(
        "PHONE",
        r"(?<![\w+\-/])(?<!\d[.,:])"
        r"(?P<v>(?:\+|\(\+?(?=\d{1,4}\)))?\d(?:[  .\-()/‐-–]{0,3}\d){6,16})(?![\w%€$£])(?![.,:/\-]\d)",
        (),
        _phone,
    ),
)
"""In order: a later rule sees the placeholders of the earlier ones."""

DIGIT_RUN = re.compile(r"\d(?:[^A-Za-zА-я\n\d]{0,3}\d){6}")
"""Rules for numbers are tried only where seven digits stand close together."""

NUMBER_KINDS = frozenset({"SSN", "PESEL", "CARD", "PHONE", "IBAN"})

_NAMES = {
    "KEY": re.compile(
        r"(?:.*[._\-])?(?:password|passwd|pwd|secret|api_?key|access_?token|auth_?token|refresh_?token|client_?secret"
        r"|private_?key|authorization|credentials?|hasło|пароль|passwort)",
        re.IGNORECASE,
    ),
    "PHONE": re.compile(
        r"(?:.*[._\-])?(?:phone|telephone|telefon|mobile|mobil|fax|tel|phone_?number|телефон|тел)", re.IGNORECASE
    ),
}


def kind_by_name(name: str, value: str) -> str | None:
    """Kind of a value that its key gives away, as in `{"password": "..."}`; None for all others."""
    if len(value) < 4 or len(value) > 4_096 or value.startswith("<"):
        return None
    if _NAMES["KEY"].fullmatch(name):
        return "KEY"
    if len(value) <= 30 and _NAMES["PHONE"].fullmatch(name) and 7 <= len(digits_of(value)) <= 15:
        return "PHONE"
    return None
