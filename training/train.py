"""The training run: phases of encoded rows, resumable, scheduled by rows seen and never by the clock.

Warm-up, stable rate, decay. The decay starts when the plan's rows are spent or when the file `decay-now`
appears in the work folder, so that the run yields a finished model at any time.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import nn

from .batches import epoch_order, make_batch
from .encode import Encoded
from .loss import accuracy, prior_loss, total_loss
from .model import Verifier
from .release import load_release
from .settings import Settings, load_settings

RATE_BODY = 1.2e-4
RATE_HEAD = 1e-3
WARM_STEPS = 80
EMA = 0.996
SAVE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows of `<name>.npz`, trained on until `rows` of them were seen, in batches of `budget` padded tokens."""

    name: str
    rows: int
    budget: int


FRESH = (Phase("a", 45_000, 1536), Phase("b", 18_000, 4096), Phase("c", 2_000, 4096), Phase("d", 60_000, 4096))
CONTINUED = (Phase("e", 90_000, 4096), Phase("f", 200_000, 4096))
CONTINUED_PEAK = 0.6
DECAY_ROWS = 14_000


@dataclass(slots=True)
class State:
    """Where the run stands: rows and steps; the decay began at row decay_at (or -1) and lasts decay_rows rows.

    peak: share of the full rate that warm-up ends at.
    """

    phase: int = 0
    epoch: int = 0
    batch: int = 0
    phase_seen: int = 0
    seen: int = 0
    step: int = 0
    decay_at: int = -1
    decay_rows: int = DECAY_ROWS
    peak: float = 1.0
    loss: float = 0.0
    support: float = 0.0
    share: float = 0.5
    right: float = 0.5


@dataclass(slots=True)
class Run:
    """The live objects of a run."""

    settings: Settings
    model: Verifier
    optimizer: torch.optim.AdamW
    average: dict[str, torch.Tensor]
    plan: tuple[Phase, ...] = FRESH
    state: State = field(default_factory=State)
    saved: float = field(default_factory=time.monotonic)


def _optimizer(model: Verifier) -> torch.optim.AdamW:
    body = [p for p in model.encoder.parameters() if p.requires_grad]
    heads = [*model.rows.parameters(), *model.tokens.parameters()]
    groups = [{"params": body, "base": RATE_BODY}, {"params": heads, "base": RATE_HEAD}]
    return torch.optim.AdamW(groups, lr=RATE_BODY, weight_decay=0.01, betas=(0.9, 0.98), foreach=True)


def start(settings: Settings, release: Path | None = None) -> Run:
    """A fresh run, one that starts from a release folder, or the one that the checkpoint holds."""
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    model = Verifier()
    if release is not None:
        model.load_state_dict(load_release(release))
    average = {k: v.detach().clone() for k, v in model.state_dict().items()}
    plan, peak = (CONTINUED, CONTINUED_PEAK) if release is not None else (FRESH, 1.0)
    run = Run(settings, model, _optimizer(model), average, plan, State(peak=peak))
    if settings.checkpoint.exists():
        saved = torch.load(settings.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        run.optimizer.load_state_dict(saved["optimizer"])
        run.average = saved["average"]
        run.state = State(**saved["state"])
        print(f"resumed at {run.state.seen} rows", flush=True)
    return run


def save(run: Run) -> None:
    """Write the checkpoint; a crash leaves the old one whole."""
    path = run.settings.checkpoint
    part = path.with_suffix(".part")
    value = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict(), "average": run.average}
    torch.save({**value, "state": asdict(run.state)}, part)
    part.replace(path)
    run.saved = time.monotonic()


def rate_scale(state: State) -> float:
    """Warm-up, then the peak, then linear to 0 over the decay."""
    warm = state.peak * min(1.0, (state.step + 1) / WARM_STEPS)
    if state.decay_at < 0:
        return warm
    return warm * max(0.0, 1.0 - (state.seen - state.decay_at) / state.decay_rows)


def step(run: Run, data: Encoded, rows: list[int]) -> None:
    """One optimiser step on one batch, and the running averages of the log."""
    state, batch = run.state, make_batch(data, rows)
    for group in run.optimizer.param_groups:
        group["lr"] = group["base"] * rate_scale(state)
    with torch.autocast("cpu", torch.bfloat16):
        row_logits, token_logits = run.model(batch.ids, batch.types, batch.mask)
    loss, support = total_loss(row_logits.float(), token_logits.float(), batch)
    run.optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    run.optimizer.step()
    keep = min(0.99, state.step / (state.step + 1.0))
    right = accuracy(row_logits[:, 0].detach(), batch.support)
    for name, value in (
        ("loss", loss.item()),
        ("support", float(support)),
        ("right", right),
        ("share", float(batch.support.mean())),
    ):
        setattr(state, name, keep * getattr(state, name) + (1 - keep) * value)
    state.step += 1
    state.seen += len(rows)
    state.phase_seen += len(rows)
    state.batch += 1
    _update_average(run)


@torch.no_grad()
def _update_average(run: Run) -> None:
    """Exponential moving average of the weights; short memory early on."""
    keep = min(EMA, (1.0 + run.state.step) / (20.0 + run.state.step))
    live = run.model.state_dict()
    pairs = [(run.average[k], v) for k, v in live.items() if v.dtype.is_floating_point]
    torch._foreach_lerp_([a for a, _ in pairs], [b for _, b in pairs], 1.0 - keep)


def report(run: Run, began: float, first: int) -> None:
    """One log line: the support loss against the loss of the label prior."""
    s = run.state
    speed = (s.seen - first) / max(1e-9, time.monotonic() - began)
    print(
        f"phase {run.plan[s.phase].name} epoch {s.epoch} step {s.step} seen {s.seen} loss {s.loss:.3f} "
        f"support {s.support:.3f} prior {prior_loss(s.share):.3f} accuracy {s.right:.3f} "
        f"rate {rate_scale(s):.3f} rows/s {speed:.1f} {time.strftime('%H:%M:%S')}",
        flush=True,
    )


def _decay_done(run: Run) -> bool:
    """Start the decay where it is due; true when it has run its length."""
    state, last = run.state, run.state.phase == len(run.plan) - 1
    due = run.settings.decay_now.exists() or (last and state.phase_seen >= run.plan[-1].rows - DECAY_ROWS)
    if state.decay_at < 0 and due:
        state.decay_at = state.seen
        print(f"decay starts at {state.seen} rows", flush=True)
    return state.decay_at >= 0 and state.seen >= state.decay_at + state.decay_rows


def train_phase(run: Run, began: float, first: int) -> bool:
    """Train the current phase to its end; true when the whole run is done."""
    state, phase = run.state, run.plan[run.state.phase]
    path = run.settings.rows / f"{phase.name}.npz"
    while not path.exists():
        time.sleep(5)
    data = Encoded.load(path)
    print(f"phase {phase.name}: {len(data)} rows", flush=True)
    while True:
        order = epoch_order(data, run.settings.seed + state.phase, state.epoch, phase.budget)
        while state.batch < len(order):
            step(run, data, order[state.batch])
            if state.step % 20 == 0:
                report(run, began, first)
            if time.monotonic() - run.saved > SAVE_SECONDS:
                save(run)
            if _decay_done(run):
                return True
            if state.phase < len(run.plan) - 1 and state.phase_seen >= phase.rows:
                state.phase, state.epoch, state.batch, state.phase_seen = state.phase + 1, 0, 0, 0
                return False
        state.epoch, state.batch = state.epoch + 1, 0


def finish(run: Run) -> None:
    """Write the final weights, live and averaged."""
    save(run)
    torch.save(run.model.state_dict(), run.settings.work / "final.pt")
    torch.save(run.average, run.settings.work / "final-average.pt")
    print("done", flush=True)


def anneal_again(state: State, rows: int) -> None:
    """A second cycle for a finished run: half the rate, falling to 0 over `rows` more rows."""
    state.decay_at, state.decay_rows = state.seen - rows, 2 * rows


def main() -> None:
    """Run or resume; `--from RELEASE` starts from a release, `--again ROWS` adds a cycle to a finished run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="release", type=Path)
    parser.add_argument("--again", type=int, default=0)
    options = parser.parse_args()
    settings = load_settings()
    (settings.work / "pid").write_text(str(os.getpid()))
    run = start(settings, options.release)
    if options.again:
        anneal_again(run.state, options.again)
    run.model.train()
    began, first = time.monotonic(), run.state.seen
    while not train_phase(run, began, first):
        save(run)
    finish(run)


if __name__ == "__main__":
    main()
