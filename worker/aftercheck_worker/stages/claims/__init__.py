"""Claims of an answer: which spans say something that can be checked, and of what type (R9, R18).

No model and no rewriting: a claim is a sentence, a list item, a table row, a clause that stands for itself, an
item of an enumeration, or an argument in code. Everything that is skipped is kept with a reason code, so that the
extractor's recall can be measured.
"""

from __future__ import annotations

from aftercheck_worker.stages.claims.abstention import abstains
from aftercheck_worker.stages.claims.reader import ACTION_KINDS
from aftercheck_worker.stages.claims.selection import SKIP_REASONS
from aftercheck_worker.stages.claims.splitting import split

__all__ = ["ACTION_KINDS", "SKIP_REASONS", "abstains", "split"]
