"""An app that answers at a steady rate, and whose model can be told to hallucinate.

The app is the demo's, as a user would write it: `aftercheck.init`, the `openai` client and its instrumentation in a
process of its own. Only the model behind its HTTP API is ours: it repeats facts of the context, or makes some up.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Final, Self

from aftercheck_worker.cli import program
from aftercheck_worker.demo import model

SENTENCES: Final = 5
FACTS: Final = (
    ("The red valve of the plant opens at noon.", "The red valve was designed by a team in Oslo."),
    ("The store in Leeds sells winter coats.", "The store also repairs bicycles for free."),
    ("Maria Lopez founded the company in 1998.", "Maria Lopez won a Nobel Prize in chemistry."),
    ("The library closes at eight in the evening.", "Members receive a discount on every ticket."),
    ("The bridge was painted green last summer.", "The bridge collapsed during a storm in 1974."),
    ("The ferry carries ninety cars across the bay.", "The ferry was built in a shipyard near Gdansk."),
    ("Parking costs four euros per hour.", "Residents may apply for a yearly permit."),
    ("The museum shows pottery from Crete.", "The museum owns a painting by Rembrandt."),
    ("Tomatoes grow best in full sun.", "Tomatoes were once thought to be poisonous."),
    ("The train to Lyon leaves from platform three.", "The restaurant car serves breakfast until ten."),
    ("The warranty covers the motor for two years.", "A lost receipt can be replaced at the counter."),
    ("Guests must return their keys before eleven.", "The pool on the roof is heated all year."),
)
"""A sentence of the context, and one that the context does not support. The shipped verifier tells all apart."""
HEALTHY: Final = (0.92, 0.20)
HALLUCINATING: Final = (0.50, 0.35)
"""Mean and standard deviation of an answer's chance that a sentence is supported (beta distributed)."""


def shape(mean: float, sd: float) -> tuple[float, float]:
    """Parameters of the beta distribution with this mean and standard deviation."""
    scale = mean * (1 - mean) / sd**2 - 1
    return mean * scale, (1 - mean) * scale


class App:
    """Runs while it is entered. `quality` may be changed at any time; `failure` says why the app ended early.

    Args:
        name: app label of its traces.
        environ: environment of its process; `REDIS_URL` and sampling come from here.
        per_second: questions.
        seed: of questions and answers.
    """

    def __init__(self, name: str, environ: Mapping[str, str], *, per_second: float, seed: int) -> None:
        self.name, self.quality, self.failure = name, HEALTHY, ""
        self._environ, self._period = environ, 1 / per_second
        self._chance, self._replies = random.Random(seed), dict[str, str]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        try:
            with model.serving(self._replies) as url:
                environ = {**self._environ, "OPENAI_BASE_URL": url, "NO_PROXY": "127.0.0.1,localhost"}
                with program.running("demo_app", self._rows(), arguments=[self.name], environ=environ) as lines:
                    for line in lines:
                        if line.get("dropped") or line.get("left"):
                            self.failure = f"spans did not leave the app: {line}"
        except Exception as error:  # noqa: BLE001 - whoever waits for the page is told; a thread has no caller
            self.failure = f"{type(error).__name__}: {error}"

    def _rows(self) -> Iterator[dict[str, object]]:
        began = time.monotonic()
        number = 0
        while not self._stop.wait(max(0.0, began + number * self._period - time.monotonic())):
            number += 1
            yield self._ask(number)

    def _ask(self, number: int) -> dict[str, object]:
        """Draw a question and put its answer where the model finds it."""
        facts = self._chance.sample(FACTS, SENTENCES)
        supported = self._chance.betavariate(*shape(*self.quality))
        told = [true if self._chance.random() < supported else made_up for true, made_up in facts]
        context = "\n".join(true for true, _ in facts)
        query = f"What do we know about matter {number}?"
        self._replies[f"Context:\n{context}\n\nQuestion: {query}"] = " ".join(told)
        return {"id": str(number), "query": query, "context": context}
