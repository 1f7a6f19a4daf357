"""`aftercheck drill`: a small app hallucinates for a while and mends, so that you see a page come and go."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output, program
from aftercheck_worker.cli.sampling import actor
from aftercheck_worker.cli.services import located, postgres
from aftercheck_worker.demo import drill as exchanges
from aftercheck_worker.demo import model
from aftercheck_worker.storage import sampling as rates

Row = dict[str, str]
WRONG: Final = "wrong"


def paced(rate: float, wrong: float, right: float) -> Iterator[Row]:
    """Yield rows at a steady rate: wrong ones for `wrong` seconds, then right ones for `right` seconds."""
    began = time.monotonic()
    for number, exchange in enumerate(itertools.cycle(exchanges.EXCHANGES)):
        due = number / rate
        if due >= wrong + right:
            return
        time.sleep(max(0.0, began + due - time.monotonic()))
        if number == 0 and wrong > 0:
            output.say(f"The app now hallucinates, {rate:g} answers a second, for {wrong:g} s.")
        if due >= wrong > due - 1 / rate:
            output.say(f"The app is well again, for {right:g} s.")
        # The stub finds its answer by the whole prompt: the passage says in front which kind this is.
        kind = WRONG if due < wrong else "right"
        yield {"id": str(number), "query": exchange.question, "context": f"[{kind}] {exchange.passage}"}


def replies() -> dict[str, str]:
    """What the model behind the drill says to each prompt of `programs/demo_app.py`."""
    return {
        f"Context:\n[{kind}] {exchange.passage}\n\nQuestion: {exchange.question}": text
        for exchange in exchanges.EXCHANGES
        for kind, text in ((WRONG, exchange.wrong), ("right", exchange.right))
    }


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def drill(
        wrong: Annotated[float, typer.Option(min=0, max=3600, help="Seconds of invented answers.")] = 120,
        right: Annotated[float, typer.Option(min=0, max=7200, help="Seconds of right answers after them.")] = 420,
        rate: Annotated[float, typer.Option(min=0.05, max=50, help="Answers a second.")] = 1,
        json: output.Json = False,
    ) -> None:
        """Let a small app hallucinate and mend, to see an alert fire and resolve.

        Needs a running fleet (`aftercheck up`). The app is called "drill" and is sampled at 100 %; its answers are
        production answers of that app alone. With the defaults FaithfulnessLow fires and resolves within ten minutes.

        Example: aftercheck drill --wrong 120 --right 420
        """
        with located(settings.current()) as where:
            with postgres(where, name="drill") as connection:
                rates.set_rate(connection, where.settings.tenant, exchanges.APP, 1.0, "trace", actor=actor())
                connection.commit()
            with model.serving(replies()) as base_url:
                environ = where.child_environ(
                    REDIS_URL=where.redis_url, OPENAI_BASE_URL=base_url, NO_PROXY="127.0.0.1,localhost"
                )
                rows = paced(rate, wrong, right)
                arguments = [exchanges.APP]
                with program.running("demo_app", rows, arguments=arguments, environ=environ) as lines:
                    told = list(lines)
        asked, last = len(told) - 1, told[-1]
        if json:
            output.as_json({"app": exchanges.APP, "answers": asked, "left": last["left"], "dropped": last["dropped"]})
        else:
            output.say(f"The drill is over: {asked} answers of the app {exchanges.APP!r}.")
