"""One prompt taken apart: question, history, context blocks, document parts, earlier statements of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_schemas import Message, Passage
from aftercheck_worker.stages.extraction.blocks import Template, parse
from aftercheck_worker.stages.extraction.seen import unescaped
from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_worker.stages.extraction.messages import Turn


class Prompt:
    """The turns that a model call was given.

    Attributes:
        turns: all of them, in order.
        system: text of the system turns.
        asked: text of the last user turn that says something; "" when no user turn does.
        template: `asked` taken apart.
        history: turns of user and assistant before the last question, templates taken off.
        statements: what the user said in earlier turns, as passages of kind `user_input`.
        turn: 1-based number of the question among the user's turns, 0 without a question.
        has_user: a user turn exists, although it may hold nothing that we can read.
        has_place: the prompt has a place for context, be it empty.
        unreadable: it holds a file or an image that we cannot read.
        unreadable_file: one of these is a document.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = turns
        self.system = "\n\n".join(text for turn in turns if turn.role == "system" and (text := turn.text))
        self._texts = [turn.text for turn in turns]
        users = [index for index, turn in enumerate(turns) if turn.role == "user" and self._texts[index].strip()]
        self.has_user = bool(users)
        self.turn = len(users)
        self.asked = self._texts[users[-1]] if users else ""
        self._templates = {index: parse(self._texts[index]) for index in users}
        self.template = self._templates[users[-1]] if users else Template(False, (), "", "")
        self._system_templates = [parse(turn.text) for turn in turns if turn.role == "system" and turn.text]
        self.has_place = any(template.found for template in (*self._system_templates, *self._templates.values()))
        media = [part for turn in turns if turn.role != "system" for part in turn.parts if part.kind == "media"]
        self.unreadable = bool(media)
        self.unreadable_file = any(part.name == "document" for part in media)
        self.history = self._history(users)
        self.statements = self._statements(users)
        self._shown: tuple[str, ...] | None = None

    @property
    def shown(self) -> tuple[str, ...]:
        """Text that documents can be in, normalised, as it is and with JSON escapes undone. Not the assistant's."""
        if self._shown is None:
            texts = [text for turn, text in zip(self.turns, self._texts, strict=True) if turn.role != "assistant"]
            texts.extend(
                part.content if isinstance(part.content, str) else str(part.content)
                for turn in self.turns
                for part in turn.parts
                if part.kind == "tool_result" and part.content is not None
            )
            joined = "\n".join(texts)
            plain = normalised(joined)
            self._shown = (plain, normalised(unescaped(joined))) if "\\" in plain else (plain,)
        return self._shown

    @property
    def blocks(self) -> list[Passage]:
        """Context blocks of the system prompt and of every user turn."""
        found = [block for template in self._system_templates for block in template.blocks]
        found += [block for template in self._templates.values() for block in template.blocks]
        return [
            Passage(source_id=block.source_id or f"block:{number}", text=block.text)
            for number, block in enumerate(found, 1)
        ]

    @property
    def documents(self) -> list[Passage]:
        """Documents that were attached as parts (context G)."""
        parts = [part for turn in self.turns for part in turn.parts if part.kind == "document" and part.text.strip()]
        return [
            Passage(source_id=part.name or f"document:{number}", text=part.text, name=part.name)
            for number, part in enumerate(parts, 1)
        ]

    def _history(self, users: list[int]) -> tuple[Message, ...]:
        if not users:
            return ()
        return tuple(
            Message(role=turn.role, text=text)
            for index, turn in enumerate(self.turns[: users[-1]])
            if turn.role in ("user", "assistant") and (text := self._said(index))
        )

    def _statements(self, users: list[int]) -> tuple[Passage, ...]:
        return tuple(
            Passage(source_id=f"user:{number}", text=text, kind="user_input")
            for number, index in enumerate(users[:-1], 1)
            if (text := self._said(index))
        )

    def _said(self, index: int) -> str:
        template = self._templates.get(index)
        if template is None:
            return self._texts[index].strip()
        return template.question or template.rest.strip()
