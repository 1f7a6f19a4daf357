"""The judge's pure half: prompts from data, verdicts from replies, quotes from sources."""

from __future__ import annotations

from aftercheck_worker.stages.judging.reply import JudgedClaim, ParsedReply, parse_reply

__all__ = ["JudgedClaim", "ParsedReply", "parse_reply"]
