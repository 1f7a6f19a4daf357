"""What the drill's app is asked, and its right and wrong answers.

Plain facts without numbers and quotes: only the faithfulness and hallucination alerts fire, and none that stays for a
quarter of an hour.
"""

from __future__ import annotations

from typing import Final

import msgspec

APP: Final = "drill"


class Exchange(msgspec.Struct, frozen=True):
    """A question with its passage, and an answer that stands on it and one that does not."""

    question: str
    passage: str
    right: str
    wrong: str


EXCHANGES: Final = (
    Exchange(
        "Who may open the greenhouse?",
        "The gardener opens the greenhouse in the morning. Visitors wait at the north gate.",
        "The gardener opens the greenhouse in the morning.",
        "The mayor of Lisbon owns the greenhouse and sells it to sailors.",
    ),
    Exchange(
        "Where are the old maps?",
        "The old maps are kept in the tower of the library. The librarian has the only key.",
        "The old maps are kept in the tower of the library.",
        "Submarines carried the old maps to a museum in Norway.",
    ),
    Exchange(
        "What does the baker sell?",
        "The baker sells rye bread and plum cake. The shop is closed on holidays.",
        "The baker sells rye bread and plum cake.",
        "The baker repairs violins and teaches astronomy to lawyers.",
    ),
    Exchange(
        "How is the tram powered?",
        "The tram is powered by overhead wires. Drivers change at the central depot.",
        "The tram is powered by overhead wires.",
        "Camels pull the tram across the desert every winter.",
    ),
    Exchange(
        "Which wood is the bridge made of?",
        "The footbridge is made of oak. It was painted green by the village.",
        "The footbridge is made of oak.",
        "Engineers from Peru poured the bridge from volcanic glass.",
    ),
    Exchange(
        "What do the bees feed on?",
        "The bees feed on clover and lime trees. The beekeeper moves the hives in spring.",
        "The bees feed on clover and lime trees.",
        "Ballet dancers trained the bees to guard a submarine.",
    ),
    Exchange(
        "Where does the river end?",
        "The river ends in the salt lake. Fishermen live on its southern shore.",
        "The river ends in the salt lake.",
        "Dentists bottled the river and shipped it to Iceland.",
    ),
    Exchange(
        "Who wrote the school song?",
        "The music teacher wrote the school song. The choir sings it at every feast.",
        "The music teacher wrote the school song.",
        "Pirates stole the school song from an opera house in Milan.",
    ),
)
