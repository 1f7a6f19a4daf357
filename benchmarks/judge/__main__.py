"""`python -m benchmarks.judge --venvs FOLDER`: the same replies to our judge, Ragas, DeepEval and TruLens.

FOLDER holds one virtual environment per tool, `ragas`, `deepeval`, `trulens`; `--install` makes the missing ones from
the package index. Writes results/judge.json and judge.md. What is right for a case is said by judge_replies.jsonl: a
reply without usable verdicts, or with some missing, has no score; a readable one has the score that the same tool
gives for the clean reply; an invented quote supports nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from aftercheck_schemas import Claim, Interaction, Passage
from aftercheck_worker.judge import Judge, JudgePlan
from aftercheck_worker.judge.stub.server import run as serve
from aftercheck_worker.models.endpoint import Endpoint as JudgeEndpoint
from aftercheck_worker.models.openai_compatible import OpenAICompatible
from benchmarks.judge.served import Case, Endpoint

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE.parent / "results"
CASES: Final = HERE.parents[1] / "tests" / "cases" / "judge_replies.jsonl"
QUESTION: Final = "What are the colours?"
PEERS: Final = {
    "ragas": ("ragas==0.4.3", "langchain-community<0.4"),
    "deepeval": ("deepeval==4.3.1",),
    "trulens": ("trulens==2.16.0", "trulens-providers-openai==2.16.0"),
}
"""What to install; Ragas 0.4.3 imports a module that langchain-community 0.4 no longer has."""
OWN_WORD: Final = {("deepeval", "jo-12")}
"""(tool, case): the unknown word of the case is a word of this tool, so its reply is a clean one."""
LONGEST: Final = 1800

Outcome = Literal["right", "nan", "false zero", "false one", "wrong score", "lost"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
"""lost: no score for a reply that can be read. A score where there should be none is false or wrong."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool made of a case. `executed`: commands that it ran because the judge's reply was code."""

    peer: str
    version: str
    id: str
    score: float | None = None
    error: str = ""
    executed: list[str] = []


def main() -> int:
    """Run and write the table; 1 when ours is not right everywhere or a prompt was not understood."""
    arguments = _arguments()
    cases = [msgspec.json.decode(line, type=Case) for line in CASES.read_bytes().splitlines()]
    endpoint = Endpoint(cases)
    rows: list[Row] = []
    with _serving(endpoint) as url:
        rows += [asyncio.run(_ours(url, case)) for case in cases]
        for name in arguments.peers:
            rows += _peer(name, Path(arguments.venvs), url, cases, install=arguments.install)
    for prompt in endpoint.unknown:
        print(f"not understood: {prompt}", file=sys.stderr)
    found: dict[tuple[str, str], Outcome] = {(row.peer, row.id): outcome(row, cases, rows) for row in rows}
    text = table(rows, found, cases)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "judge.md").write_text(text, encoding="utf-8")
    (RESULTS / "judge.json").write_text(json.dumps(keys(rows, found), indent=1) + "\n", encoding="utf-8")
    ours = all(found["aftercheck", case.id] == "right" for case in cases)
    return 0 if ours and not endpoint.unknown else 1


def outcome(row: Row, cases: Sequence[Case], rows: Sequence[Row]) -> Outcome:
    """Say what a row is worth, see the head of this file."""
    case = next(case for case in cases if case.id == row.id)
    wanted = _wanted(row, case, cases, rows)
    if row.score is not None and math.isnan(row.score):
        return "nan"
    if row.score is None:
        return "right" if wanted is None else "lost"
    if wanted is not None and abs(row.score - wanted) < 0.01:
        return "right"
    return "false zero" if row.score == 0 else "false one" if row.score == 1 else "wrong score"


def _wanted(row: Row, case: Case, cases: Sequence[Case], rows: Sequence[Row]) -> float | None:
    """The right score, None when there should be none."""
    parse = str(case.expected["parse"])
    if (row.peer, row.id) in OWN_WORD:
        return 1.0
    if parse in ("error", "partial"):
        return None
    if parse == "ok_downgraded":
        return 0.0
    control = next(one for one in cases if one.expected["parse"] == "ok" and one.claims == case.claims)
    clean = next(one for one in rows if one.peer == row.peer and one.id == control.id)
    return clean.score


def table(rows: Sequence[Row], found: dict[tuple[str, str], Outcome], cases: Sequence[Case]) -> str:
    """Markdown: one row per case, then the counts."""
    peers = list(dict.fromkeys(row.peer for row in rows))
    versions = {row.peer: row.version for row in rows}
    by_key = {(row.peer, row.id): row for row in rows}
    lines = [
        "# The same judge replies, read by four tools",
        "",
        "Run again: `python -m benchmarks.judge --venvs FOLDER --install`.",
        "Versions: " + ", ".join(f"{peer} {versions[peer]}" for peer in peers) + ".",
        "",
        "| case | " + " | ".join(peers) + " |",
        "|---|" + "---|" * len(peers),
    ]
    for case in cases:
        cells = [f"{_shown(by_key[peer, case.id])} {found[peer, case.id]}" for peer in peers]
        lines.append(f"| {case.id}: {case.expected['parse']} | " + " | ".join(cells) + " |")
    lines += ["", "| of 14 replies | " + " | ".join(peers) + " |", "|---|" + "---|" * len(peers)]
    for name in OUTCOMES:
        counts = [str(sum(found[peer, case.id] == name for case in cases)) for peer in peers]
        lines.append(f"| {name} | " + " | ".join(counts) + " |")
    ran = [str(sum(bool(by_key[peer, case.id].executed) for case in cases)) for peer in peers]
    lines.append("| reply run as code | " + " | ".join(ran) + " |")
    return "\n".join(lines) + "\n"


def keys(rows: Sequence[Row], found: dict[tuple[str, str], Outcome]) -> dict[str, float]:
    """Flat keys: how many replies of each tool end how."""
    counts = Counter((peer.replace(" evaluate()", "_evaluate"), name) for (peer, _), name in found.items())
    peers = dict.fromkeys(row.peer.replace(" evaluate()", "_evaluate") for row in rows)
    return {
        f"judge.replies_{peer}_{name.replace(' ', '_')}": float(counts[peer, name])
        for peer in peers
        for name in OUTCOMES
    }


def _shown(row: Row) -> str:
    if row.score is None:
        return "no score"
    return "NaN" if math.isnan(row.score) else f"{row.score:.2f}"


async def _ours(url: str, case: Case) -> Row:
    """Our judge over HTTP, its re-asks included; an incomplete or unreadable reply has no score."""
    generator = OpenAICompatible(JudgeEndpoint(url=f"{url}/aftercheck/{case.id}/v1", model="m", mode="plain"))
    passages = tuple(Passage(source_id=f"s{n}", text=text) for n, text in enumerate(case.context, 1))
    interaction = Interaction(
        trace_id="a" * 32, span_id="b" * 16, app="t", question=QUESTION, answer=case.answer, passages=passages
    )
    claims = [Claim(id=f"c{n}", text=text, start=0, end=len(text)) for n, text in enumerate(case.claims, 1)]
    try:
        judgement = await Judge(generator).judge(interaction, claims, passages, JudgePlan(triad=False))
    finally:
        await generator.close()
    score = judgement.faithfulness[0] if judgement.faithfulness else None
    return Row(peer="aftercheck", version=metadata.version("aftercheck"), id=case.id, score=score)


def _peer(name: str, venvs: Path, url: str, cases: Sequence[Case], *, install: bool) -> list[Row]:
    python = venvs / name / "bin" / "python"
    if not python.exists():
        if not install:
            raise SystemExit(f"{python} is missing. Fix: --install, or --peers without {name}")
        subprocess.run([sys.executable, "-m", "venv", str(venvs / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]], check=True)
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "cases.jsonl", Path(folder) / "rows.jsonl"
        asked = [
            {"id": case.id, "question": QUESTION, "answer": case.answer, "context": case.context} for case in cases
        ]
        given.write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
        command = [str(python), str(HERE / f"{name}_peer.py"), url, str(given), str(out)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST, check=False)
        if done.returncode:
            raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
        # Python's reader: a tool's NaN is not JSON.
        return [msgspec.convert(json.loads(line), Row) for line in out.read_text(encoding="utf-8").splitlines()]


@contextmanager
def _serving(endpoint: Endpoint) -> Generator[str]:
    stop, up, urls = threading.Event(), threading.Event(), list[str]()

    def ready(url: str) -> None:
        urls.append(url)
        up.set()

    thread = threading.Thread(
        target=serve, args=(endpoint.app(),), kwargs={"host": "127.0.0.1", "port": 0, "stop": stop, "ready": ready}
    )
    thread.start()
    up.wait()
    try:
        yield urls[0]
    finally:
        stop.set()
        thread.join()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge", description=__doc__)
    parser.add_argument("--venvs", default=".peers", help="folder of the tools' virtual environments")
    parser.add_argument("--install", action="store_true", help="make the missing ones")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
