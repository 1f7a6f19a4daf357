"""Facts about a venue record: a true predicate and a false or unsupported one of the same form."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, cast

from .venue import AMBIENCE, CATEGORIES, CITIES, DAYS, FLAGS, PARKING, REVIEWS, STATES

Fact = tuple[str, str, int]
"""(true predicate, wrong predicate, contradiction of the wrong one: 1, 0 or -1)."""
Record = dict[str, Any]


def _article(text: str) -> str:
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def clock(text: str, style: int) -> str:
    """`21:0` as `9 pm`, `9:00 PM` or `21:00`."""
    hour, minute = (int(part) for part in text.split(":"))
    if style == 2:
        return f"{hour}:{minute:02d}"
    suffix = ("am", "pm") if style == 0 else ("AM", "PM")
    shown = (hour + 11) % 12 + 1
    minutes = "" if minute == 0 and style == 0 else f":{minute:02d}"
    return f"{shown}{minutes} {suffix[hour >= 12]}"


def _span(hours: str, random: Random) -> str:
    style = random.randrange(3)
    start, end = (clock(part, style) for part in hours.split("-"))
    return random.choice(["from {} to {}", "from {} until {}", "between {} and {}"]).format(start, end)


def _moved(hours: str, random: Random) -> str:
    start, end = hours.split("-")
    shift = random.choice([-3, -2, -1, 1, 2])
    if random.random() < 0.5:
        hour, minute = end.split(":")
        return f"{start}-{min(23, max(13, int(hour) + shift)) if int(hour) + shift != int(hour) else 13}:{minute}"
    hour, minute = start.split(":")
    return f"{max(1, int(hour) + shift)}:{minute}-{end}"


def hours_of_day(record: Record, random: Random) -> Fact | None:
    """Opening hours of one day; wrong: moved hours."""
    hours = cast(dict[str, str] | None, record["hours"])
    if not hours:
        return None
    day = random.choice(list(hours))
    wrong = _moved(hours[day], random)
    if wrong == hours[day]:
        return None
    plural = random.choice(["on {}", "on {}s"]).format(day)
    form = random.choice(["is open {1} {0}", "operates {0} {1}", "opens its doors {1} {0}"])
    return form.format(_span(hours[day], random), plural), form.format(_span(wrong, random), plural), 1


def closing(record: Record, random: Random) -> Fact | None:
    """Closing or opening time of a day; wrong: that of a different time."""
    hours = cast(dict[str, str] | None, record["hours"])
    if not hours:
        return None
    day, side = random.choice(list(hours)), random.randrange(2)
    style, true = random.randrange(3), hours[day].split("-")
    wrong = _moved(hours[day], random).split("-")
    if wrong[side] == true[side]:
        return None
    verb = ("opens", "closes")[side]
    return (f"{verb} at {clock(true[side], style)} on {day}s", f"{verb} at {clock(wrong[side], style)} on {day}s", 1)


def week(record: Record, random: Random) -> Fact | None:
    """On which days it opens."""
    hours = cast(dict[str, str] | None, record["hours"])
    if not hours:
        return None
    days = [day for day in DAYS if day in hours]
    every = ["is open seven days a week", "opens every day of the week"]
    if len(days) == 7:
        wrong = [
            f"is closed on {random.choice(DAYS)}s",
            f"is open from Monday to {random.choice(['Friday', 'Saturday'])} only",
        ]
        return random.choice([*every, f"is open on {random.choice(DAYS)}s"]), random.choice(wrong), 1
    return f"is open from {days[0]} to {days[-1]}", random.choice(every), 1


def flag(record: Record, random: Random) -> Fact | None:
    """A boolean attribute; null or absent ones give unsupported statements."""
    attributes = record["attributes"]
    known = [key for key in FLAGS if attributes.get(key) is not None]
    if not known:
        return None
    key = random.choice(known)
    noun, yes, no = FLAGS[key]
    true = f"{yes if attributes[key] else no} {noun}"
    if random.random() < 0.55:
        return true, f"{no if attributes[key] else yes} {noun}", 1
    other = random.choice([k for k in FLAGS if attributes.get(k) is None])
    return true, f"{FLAGS[other][1]} {FLAGS[other][0]}", 0


def two_flags(record: Record, random: Random) -> Fact | None:
    """A list of services, one of which is wrong."""
    attributes = record["attributes"]
    wanted = [k for k in FLAGS if FLAGS[k][1] in ("offers", "provides", "has")]
    true = [FLAGS[k][0] for k in wanted if attributes.get(k) is True]
    false = [(FLAGS[k][0], 1 if attributes.get(k) is False else 0) for k in wanted if attributes.get(k) is not True]
    if attributes.get("WiFi") == "free":
        true.append(random.choice(["free WiFi", "free Wi-Fi"]))
    if len(true) < 2 or not false:
        return None
    picked = random.sample(true, min(len(true), random.choice([2, 2, 3])))
    wrong, contradiction = random.choice(false)
    bad = list(picked)
    bad[random.randrange(len(bad))] = wrong
    verb = random.choice(["offers", "provides amenities such as", "has"])
    right, bent = (f"{verb} {', '.join(x[:-1])} and {x[-1]}" for x in (picked, bad))
    return right, bent, contradiction


def wifi(record: Record, random: Random) -> Fact | None:
    """WiFi free, paid, none or unknown."""
    value = record["attributes"].get("WiFi")
    forms = {"free": "offers free WiFi", "no": "does not offer WiFi", "paid": "offers paid WiFi"}
    if value is None:
        return None
    return forms[value], random.choice([v for k, v in forms.items() if k != value]), 1


def parking(record: Record, random: Random) -> Fact | None:
    """A kind of parking that is there against one that is not."""
    kinds = record["attributes"].get("BusinessParking")
    if not kinds:
        return None
    there, absent = [k for k in PARKING if kinds[k]], [k for k in PARKING if not kinds[k]]
    if not there or not absent:
        return ("has no parking of its own", f"provides {random.choice(PARKING)} parking", 1) if not there else None
    verb = random.choice(["provides", "has", "offers"])
    return f"{verb} {random.choice(there)} parking", f"{verb} {random.choice(absent)} parking", 1


def ambience(record: Record, random: Random) -> Fact | None:
    """An atmosphere that is marked against one that is not."""
    marks = record["attributes"].get("Ambience")
    if not marks:
        return None
    there, absent = [k for k in AMBIENCE if marks[k]], [k for k in AMBIENCE if not marks[k]]
    form = random.choice(
        ["has a {} atmosphere", "has a {} ambience", "is known for a {} setting", "offers a {} vibe"]
    )
    return _article(form.format(random.choice(there))), _article(form.format(random.choice(absent))), 1


def place(record: Record, random: Random) -> Fact:
    """Where it is."""
    city, state = random.choice([c for c in CITIES if c[0] != record["city"]])
    form = random.choice(["is located in {}, {}", "is a business in {}, {}", "can be found in {}, {}"])
    right = (record["city"], random.choice([record["state"], STATES[record["state"]]]))
    wrong = random.choice([(city, STATES[state]), (city, record["state"])])
    return form.format(*right), form.format(*wrong), 1


def stars(record: Record, random: Random) -> Fact:
    """The rating."""
    value = float(record["business_stars"])
    wrong = random.choice([v for v in (2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0) if v != value])
    form = random.choice(
        ["has a rating of {:.1f} stars", "is rated {:g} out of 5 stars", "holds {:g} stars", "has {:.1f} stars"]
    )
    return form.format(value), form.format(wrong), 1


def category(record: Record, random: Random) -> Fact:
    """What it is listed under."""
    own = str(record["categories"]).split(", ")
    wrong = random.choice([c for c in CATEGORIES if c not in own])
    form = random.choice(["is listed under {}", "falls into the category {}", "is known for {}", "specializes in {}"])
    return form.format(random.choice(own)), form.format(wrong), 0


def review(record: Record, random: Random) -> Fact | None:
    """What a reviewer said, in other words, against what none of them said."""
    text = " ".join(str(r["review_text"]) for r in record["review_info"])
    said = [claim for sentence, claim in REVIEWS if sentence in text]
    unsaid = [claim for sentence, claim in REVIEWS if sentence not in text]
    who = random.choice(
        ["has a reviewer who {}", "was visited by a customer who {}", "got a review by someone who {}"]
    )
    return who.format(random.choice(said)), who.format(random.choice(unsaid)), 0


FACTS: tuple[Callable[[Record, Random], Fact | None], ...] = (
    hours_of_day,
    closing,
    week,
    flag,
    flag,
    two_flags,
    wifi,
    parking,
    ambience,
    place,
    stars,
    category,
    review,
    review,
)
