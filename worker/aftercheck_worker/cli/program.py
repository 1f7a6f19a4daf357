"""Runs a program of `programs/` and talks to it in JSON lines.

The programs import the producer; the worker must not (import rule 1). So they are processes, as real apps are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import msgspec

import aftercheck_worker
from aftercheck_worker.errors import AftercheckError

Line = dict[str, object]


@contextmanager
def running(
    name: str, rows: Iterable[object], *, arguments: Iterable[str] = (), environ: Mapping[str, str]
) -> Generator[Iterator[Line], None, None]:
    """Start `programs/NAME.py`, feed it rows, and yield an iterator over its answers.

    Raises:
        AftercheckError: the program ended with an error; the message quotes its last line.
    """
    path = Path(aftercheck_worker.__file__).parent / "programs" / f"{name}.py"
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, str(path), *arguments],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
        )
        feeder = threading.Thread(target=_feed, args=(cast("IO[bytes]", process.stdin), rows), daemon=True)
        feeder.start()
        try:
            yield _answers(name, process, complaints)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(10)
            cast("IO[bytes]", process.stdout).close()
            feeder.join(5)


def _feed(pipe: IO[bytes], rows: Iterable[object]) -> None:
    try:
        with pipe:
            for row in rows:
                pipe.write(msgspec.json.encode(row) + b"\n")
                pipe.flush()
    except (BrokenPipeError, ValueError):
        return  # the program has ended; its exit code says why


def _answers(name: str, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> Iterator[Line]:
    for line in cast("IO[bytes]", process.stdout):
        yield msgspec.json.decode(line, type=Line)
    if process.wait() != 0:
        complaints.seek(0)
        told = complaints.read().decode("utf-8", "replace").strip().splitlines()
        raise AftercheckError(
            f"The program {name} ended with {process.returncode}",
            why=told[-1][:300] if told else "it wrote nothing",
            fix="run again with --debug, or check that aftercheck[demo] is installed",
        )
