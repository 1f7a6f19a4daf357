"""What the judge costs without its model: `python -m benchmarks judge_overhead`.

The whole client side of a call, as the judge's worker runs it: prompt from 3 claims and 4 passages of about 60 words,
budget in a real Valkey, breaker, HTTP, reply ladder, quote check. The endpoint is a process of its own that waits a
fixed time and answers; this process is bound to one core. One call at a time gives the overhead: the call's time less
the endpoint's wait. 64 at a time give the concurrency and the CPU of a call.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from aftercheck_schemas import Claim, Interaction, Passage
from aftercheck_worker import embedded
from aftercheck_worker.judge.budget import Budget, Limits, client
from aftercheck_worker.judge.engine import Judge, JudgePlan
from aftercheck_worker.judge.guard import Guarded
from aftercheck_worker.models.openai_compatible import Endpoint, OpenAICompatible

KEYS = ("judge",)
ALONE = 300
TOGETHER = 2_000
CONCURRENT = 64
SHORT, LONG = 0.02, 0.5
"""Seconds that the endpoint waits: alone, and together, where it has to hold 64 calls open at once."""
PLAN = JudgePlan(repeats=1, triad=False)
_SENTENCE = "The quarterly revenue of the retail segment rose by four percent while operating costs stayed flat."


def run() -> dict[str, float]:
    """Measure.

    Returns:
        `judge.overhead_ms_p50`, `judge.overhead_ms_p99`: wall time of one call beyond the endpoint's wait;
        `judge.concurrent_calls`: most calls that the endpoint saw open at once, from one process on one core;
        `judge.cpu_ms_per_call`: CPU of this process per call at 64; `judge.calls_per_s`: of the same run;
        `judge.prompt_tokens_per_claim`: four characters per token, instructions included.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with tempfile.TemporaryDirectory() as home, embedded.start(Path(home)) as services:
            if services.redis_url is None:
                raise RuntimeError("the embedded Valkey did not start")
            with _endpoint(SHORT, cores) as url:
                alone, tokens = asyncio.run(_alone(url, services.redis_url))
            with _endpoint(LONG, cores) as url:
                seconds, cpu = asyncio.run(_together(url, services.redis_url))
                most = _most(url)
    finally:
        os.sched_setaffinity(0, cores)
    return {
        "judge.overhead_ms_p50": statistics.median(alone) * 1000,
        "judge.overhead_ms_p99": statistics.quantiles(alone, n=100)[98] * 1000,
        "judge.concurrent_calls": float(most),
        "judge.cpu_ms_per_call": cpu / TOGETHER * 1000,
        "judge.calls_per_s": TOGETHER / seconds,
        "judge.prompt_tokens_per_claim": tokens / (3 * ALONE),
    }


@contextmanager
def _endpoint(latency: float, cores: set[int]) -> Generator[str]:
    """The endpoint on the other cores, where there are any."""
    others = cores - {min(cores)} or cores
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks._judge_endpoint", str(latency)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    try:
        os.sched_setaffinity(process.pid, others)
        if process.stdout is None:
            raise RuntimeError("the endpoint has no output")
        port = int(process.stdout.readline())
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.communicate()


def _most(url: str) -> int:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/most", timeout=5) as reply:
        return int(cast("dict[str, int]", json.load(reply))["most"])


def _answer(number: int) -> tuple[Interaction, tuple[Claim, ...], tuple[Passage, ...]]:
    passages = tuple(Passage(source_id=f"s{n}", text=" ".join([f"Part {n}.", *[_SENTENCE] * 4])) for n in range(4))
    texts = [f"{_SENTENCE[:-1]} in region {n}." for n in range(3)]
    claims = tuple(Claim(id=f"c{n}", text=text, start=0, end=len(text)) for n, text in enumerate(texts, 1))
    interaction = Interaction(
        trace_id=f"{number:032x}", span_id="a", app="bench", question="How was it?", answer=" ".join(texts)
    )
    return interaction, claims, passages


@contextmanager
def _judge(url: str, redis_url: str) -> Generator[tuple[Judge, Guarded]]:
    endpoint = Endpoint(url=url, model="m", concurrency=CONCURRENT)
    purse = Budget(client(redis_url), "bench", Limits(tokens=10**12, dollars=1e6, prompt_price=1.0))
    guarded = Guarded(OpenAICompatible(endpoint), purse)
    yield Judge(guarded), guarded


async def _alone(url: str, redis_url: str) -> tuple[list[float], int]:
    with _judge(url, redis_url) as (judge, guarded):
        taken: list[float] = []
        for number in range(ALONE + 20):
            answer = _answer(number)
            began = time.perf_counter()
            found = await judge.judge(*answer, PLAN)
            taken.append(time.perf_counter() - began - SHORT)
            if [claim.status for claim in found.claims] != ["supported"] * 3:
                raise RuntimeError(f"the judgement is not what the endpoint said: {found}")
            if number == 19:  # connections and caches are warm
                guarded.spent.take()
        tokens = guarded.spent.prompt_tokens
        await guarded.close()
    return taken[20:], tokens


async def _together(url: str, redis_url: str) -> tuple[float, float]:
    with _judge(url, redis_url) as (judge, guarded):
        await asyncio.gather(*(judge.judge(*_answer(number), PLAN) for number in range(CONCURRENT)))
        began, cpu = time.perf_counter(), time.process_time()
        waiting = asyncio.Semaphore(2 * CONCURRENT)  # a worker holds a batch of answers, not thousands

        async def one(number: int) -> None:
            async with waiting:
                await judge.judge(*_answer(number), PLAN)

        await asyncio.gather(*(one(number) for number in range(TOGETHER)))
        found = time.perf_counter() - began, time.process_time() - cpu
        await guarded.close()
    return found


if __name__ == "__main__":
    for name, value in run().items():
        sys.stdout.write(f"{name} {value:.3f}\n")
