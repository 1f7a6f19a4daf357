"""Claims about structured records: invented venues, and the tables of a labelled set."""

from __future__ import annotations

import json
import re
from random import Random

from training.window import terms

from .edit import Edit
from .venue import make_venue
from .venue_facts import FACTS, Fact, Record

_SUBJECTS = ("{}", "{}", "The business", "The establishment", "{}, a local business,", "The place")


def _facts(record: Record, random: Random, count: int) -> list[Fact]:
    out: list[Fact] = []
    for make in random.sample(FACTS, len(FACTS)):
        fact = make(record, random)
        if fact is not None and fact[0] != fact[1] and all(fact[0] != other[0] for other in out):
            out.append(fact)
        if len(out) == count:
            break
    return out


def _tell(subject: str, predicates: list[str], wrong: int) -> tuple[str, tuple[int, int]]:
    """One sentence of one to three predicates; the range of the predicate number `wrong`."""
    text, span = subject, (0, 0)
    for number, predicate in enumerate(predicates):
        joint = " " if number == 0 else ", and " if number == len(predicates) - 1 else ", "
        text += joint
        if number == wrong:
            span = (len(text), len(text) + len(predicate))
        text += predicate
    return text + ".", span


def venue_claim(random: Random) -> tuple[str, Edit]:
    """(record as JSON, edit): one of one to three facts is wrong in the negative."""
    record = make_venue(random)
    facts = _facts(record, random, random.choice([1, 1, 2, 2, 3]))
    wrong = random.randrange(len(facts))
    subject = random.choice(_SUBJECTS).format(record["name"])
    if random.random() < 0.12 and facts[wrong][0].startswith(("has a reviewer", "was visited", "got a review")):
        right, bad = (re.sub(r"^.*? who ", "", text) for text in facts[wrong][:2])
        lead = random.choice(["One reviewer", "A customer", "One guest"])
        return json.dumps(record, indent=1), Edit(
            f"{lead} {bad}.", [(len(lead) + 1, len(lead) + 1 + len(bad))], 0, f"{lead} {right}."
        )
    true = [fact[0] for fact in facts]
    positive, _ = _tell(subject, true, -1)
    negative, span = _tell(subject, [f[1] if i == wrong else f[0] for i, f in enumerate(facts)], wrong)
    return json.dumps(record, indent=random.choice([None, 1])), Edit(negative, [span], facts[wrong][2], positive)


def table_fields(premise: str) -> tuple[str, dict[str, str]]:
    """(title, key -> value) of a `key: value` table; bracketed repeats of dates dropped."""
    fields: dict[str, str] = {}
    for line in premise.split("\n"):
        key, found, value = line.partition(": ")
        if found:
            fields[key.strip()] = re.sub(r"\s+", " ", re.sub(r"\(\s*\d{4}-\d\d-\d\d\s*\)", "", value)).strip(" ,")
    return fields.pop("title", ""), fields


# Keys that are no nouns (`born`, `directed by`): the templates would not make a sentence of them.
_NO_NOUN = re.compile(
    r"^(?:born|died|founded|released|recorded|established|settled|incorporated|in office|known|website|url)\b|"
    r"\b(?:by|as|for|from|in|to|of|with)$|\(s\)|^\W",
    re.IGNORECASE,
)
_FORMS = (
    "The {key} of {title} is {value}.",
    "{title}'s {key} is listed as {value}.",
    "{title} has the {key} {value}.",
    "For {title}, the {key} is {value}.",
    "{value} is the {key} of {title}.",
)


def table_claim(premise: str, others: list[str], random: Random) -> Edit | None:
    """A key's value against the value of the same key in another table, or a key that the table lacks."""
    title, fields = table_fields(premise)
    usable = [
        key for key, value in fields.items() if 0 < len(value) < 60 and len(key) < 25 and not _NO_NOUN.search(key)
    ]
    if not title or not usable:
        return None
    key, form = random.choice(usable), random.choice(_FORMS)
    right = form.format(key=key.lower(), title=title, value=fields[key])
    elsewhere = [table_fields(other)[1] for other in others]
    same = [
        t[key]
        for t in elsewhere
        if key in t and 0 < len(t[key]) < 60 and not set(terms(t[key])) & set(terms(fields[key]))
    ]
    if same and random.random() < 0.85:
        bad_key, value, contradiction = key, random.choice(same), 1
    else:
        missing = [
            (k, v)
            for t in elsewhere
            for k, v in t.items()
            if k not in fields and 0 < len(v) < 60 and v not in premise and not _NO_NOUN.search(k)
        ]
        if not missing:
            return None
        (bad_key, value), contradiction = random.choice(missing), 0
    wrong = form.format(key=bad_key.lower(), title=title, value=value)
    start = wrong.index(value)
    return Edit(wrong, [(start, start + len(value))], contradiction, right)
