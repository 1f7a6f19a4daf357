"""Words that name the places of a prompt template, in English, Polish, Ukrainian, Russian and German."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

LabelKind = Literal["context", "weak_context", "question", "answer", "history"]


class Label(NamedTuple):
    """A label in a text: where its line starts, where its content starts, and what it names."""

    start: int
    end: int
    kind: LabelKind


_CONTEXT: Final = """
context|contexts|context information|provided context|retrieved context|given context|relevant context|the context|
documents|document|retrieved documents|relevant documents|sources|source documents|passages|passage|excerpts|excerpt|
search results|retrieval results|knowledge|knowledge base|background|background information|evidence|references|
relevant information|retrieved information|snippets|
kontekst|podany kontekst|dokumenty|dokument|źródła|fragmenty|fragment|baza wiedzy|wiedza|wyniki wyszukiwania|
контекст|наданий контекст|документи|документ|джерела|фрагменти|уривки|база знань|результати пошуку|
документы|источники|фрагменты|отрывки|база знаний|результаты поиска|предоставленный контекст|
kontext|gegebener kontext|dokumente|quellen|auszüge|abschnitte|wissensbasis|hintergrund|suchergebnisse
"""
_WEAK: Final = """
information|info|facts|data|text|article|content|notes|material|materials|policy|source text|
informacje|dane|tekst|artykuł|materiały|notatki|інформація|дані|текст|стаття|матеріали|
информация|данные|статья|материалы|informationen|daten|artikel|materialien|fakten|fakty|факты|факти
"""
_QUESTION: Final = """
question|questions|query|user question|user query|user's question|user input|user|input|request|user request|q|
current question|follow up input|follow-up question|customer question|task|
pytanie|zapytanie|pytanie użytkownika|użytkownik|zapytanie użytkownika|
запитання|питання|запит|запитання користувача|питання користувача|запит користувача|користувач|
вопрос|запрос|вопрос пользователя|запрос пользователя|пользователь|
frage|anfrage|suchanfrage|benutzerfrage|nutzerfrage|frage des benutzers|frage des nutzers|benutzer|nutzer
"""
_ANSWER: Final = """
answer|helpful answer|final answer|your answer|response|assistant|a|
odpowiedź|asystent|відповідь|асистент|ответ|ассистент|antwort|hilfreiche antwort|assistent
"""
_HISTORY: Final = """
chat history|conversation history|history|conversation|previous conversation|previous messages|dialogue|
historia|historia rozmowy|історія|історія розмови|історія чату|история|история диалога|история чата|
verlauf|chatverlauf|gesprächsverlauf|bisheriges gespräch
"""


def _words(text: str) -> list[str]:
    return [word for line in text.split("\n") for word in line.strip().split("|") if word]


_KINDS: Final[dict[str, LabelKind]] = {
    **dict.fromkeys(_words(_WEAK), "weak_context"),
    **dict.fromkeys(_words(_CONTEXT), "context"),
    **dict.fromkeys(_words(_QUESTION), "question"),
    **dict.fromkeys(_words(_ANSWER), "answer"),
    **dict.fromkeys(_words(_HISTORY), "history"),
}

_CUE: Final = re.compile(
    r"context|document|source|passage|excerpt|knowledge|information|retriev|search result|reference|below|following|"
    r"facts|"
    r"kontekst|dokument|źród|fragment|wiedz|informacj|poniż|następując|"
    r"контекст|документ|джерел|фрагмент|знан|інформац|нижче|наступн|источник|информац|ниже|следующ|"
    r"kontext|quelle|auszüge|abschnitt|wissen|unten|folgend|nachstehend",
    re.IGNORECASE,
)


def kind_of(label: str) -> LabelKind | None:
    """What a label names, None for any other word. Case, and words such as "Retrieved" before it, do not matter."""
    return _KINDS.get(label.strip().casefold())


def cue(text: str) -> bool:
    """True when the text speaks of context, documents or knowledge that is given."""
    return _CUE.search(text) is not None
