"""Builds the typer application and turns every error into one line and an exit code (U10, U11, U15).

Exit codes: 0 ok, 1 gate failed or verdict "block", 2 wrong usage, 3 inconclusive, 64..78 sysexits (errors.py),
130 Ctrl-C. Data goes to stdout, words for humans to stderr.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from aftercheck_worker.cli import output
from aftercheck_worker.errors import AftercheckError

EXIT_USAGE: Final = 2
EXIT_INTERNAL: Final = 70
EXIT_INTERRUPTED: Final = 130

GROUPS: Final = (
    "demo",
    "up",
    "processes",
    "push",
    "evaluate",
    "explain",
    "stats",
    "fatigue",
    "drill",
    "sampling",
    "dlq",
    "judge",
    "models",
    "serve",
    "erase",
    "recheck",
    "doctor",
    "config",
    "version",
)
"""Modules beside this one; each has `register(app)`. Their order is the order of `aftercheck --help`."""


PROCESSES: Final = ("worker", "intake", "exporter", "migrate")
"""Commands of `processes`. They load no other group: an exporter stays small, and a worker starts sooner."""


def build(first: str = "") -> typer.Typer:
    """Return the application with all command groups, or with the one that the first word names."""
    app = typer.Typer(
        name="aftercheck",
        help="Checks LLM answers after they have left.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")] = False,
    ) -> None:
        """Checks LLM answers after they have left."""
        _ = debug

    for group in ("processes",) if first in PROCESSES else GROUPS:
        importlib.import_module(f"aftercheck_worker.cli.{group}").register(app)
    return app


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"]
    if debug:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    else:  # commands say what matters themselves; the long-running ones install their own handler
        logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(run(arguments, debug=debug))


def run(arguments: Sequence[str], *, debug: bool = False) -> int:
    """Run one command.

    Args:
        arguments: the words after `aftercheck`.
        debug: let exceptions through, with their traceback.

    Returns:
        The exit code.
    """
    try:
        code = build(next(iter(arguments), ""))(args=list(arguments), prog_name="aftercheck", standalone_mode=False)
    except AftercheckError as error:
        if debug:
            raise
        output.error(str(error))
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        output.error("Interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0
    except typer.Exit as leave:
        return leave.exit_code
    except Exception as error:
        show = getattr(error, "show", None)
        if callable(show):  # typer's own usage errors; their class moved between typer versions
            show()
            return int(getattr(error, "exit_code", EXIT_USAGE))
        if debug:
            raise
        output.error(f"{type(error).__name__}: {error} Fix: this is a bug; run again with --debug and report it.")
        return EXIT_INTERNAL
    return code if isinstance(code, int) else 0
