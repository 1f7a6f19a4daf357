"""Why an answer span cannot be judged. A wrong reason hides a defect, so every rule is one line and ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aftercheck_schemas.vocabulary import NotAssessableReason
    from aftercheck_worker.stages.extraction.calls import Call
    from aftercheck_worker.stages.extraction.context import Context
    from aftercheck_worker.stages.extraction.prompt import Prompt

_OUTPUTS = (
    "gen_ai.output.messages",
    "gen_ai.completion",
    "llm.output_messages",
    "langfuse.observation.output",
    "ai.response.",
    "gen_ai.choice:",
)
_STREAMING = ("gen_ai.is_streaming", "llm.is_streaming", "gen_ai.request.stream")


def output_reason(call: Call) -> NotAssessableReason | None:
    """What is wrong with the output alone, None when there is an answer."""
    if is_abandoned(call):
        return "abandoned_stream"
    if call.span.status == "error" or call.finish == "error":
        return "error_span"
    if not call.content.output_intact:
        return "answer_truncated" if call.texts else "invalid_json"
    if call.wants_tools:
        return "tool_calls_only"
    if call.texts:
        return "answer_truncated" if _cut_by_us(call) else None
    if call.is_empty:
        return "no_content"
    return "no_answer_text"


def input_reason(call: Call, prompt: Prompt, context: Context) -> NotAssessableReason | None:
    """What is wrong with the input of an answer, None when the answer can be judged."""
    evidence = any(passage.kind != "user_input" for passage in context.passages)
    if context.source == "recorded" and evidence:
        return None
    if not call.content.input_intact:
        return "invalid_json"
    if not prompt.has_user and not prompt.system and not evidence:
        return "input_missing"
    if not prompt.has_user and not _has_tool_results(prompt):
        return "input_missing"
    if prompt.unreadable_file and not evidence:
        return "input_missing"
    return None if context.expected else "no_evidence_expected"


def is_abandoned(call: Call) -> bool:
    """A stream that nobody read to its end: OpenLLMetry leaves no finish reason, the official family an error."""
    if call.span.status == "error":
        return "abandoned" in call.span.status_message.lower()
    streaming = any(call.span.attributes.get(key) in (True, "true", "True") for key in _STREAMING)
    return streaming and call.finish == "" and not call.wants_tools


def _cut_by_us(call: Call) -> bool:
    return any(name.startswith(_OUTPUTS) for name in call.span.truncated)


def _has_tool_results(prompt: Prompt) -> bool:
    return any(part.kind == "tool_result" for turn in prompt.turns for part in turn.parts)
