"""What the user reads when an answer is held back, doubtful, or was not checked."""

from __future__ import annotations

import msgspec


class Notices(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of one language.

    Attributes:
        block: replaces an answer that was blocked. warn: follows a doubtful one.
        unavailable: follows an answer that could not be checked. unavailable_blocked: replaces it.
    """

    block: str
    warn: str
    unavailable: str
    unavailable_blocked: str


NOTICES = {
    "en": Notices(
        block="This answer was held back because its sources do not support it. Please ask for a source.",
        warn="Note: parts of this answer are not supported by its sources. Please verify them.",
        unavailable="Note: this answer could not be checked against its sources.",
        unavailable_blocked="This answer is held back because it could not be checked against its sources.",
    ),
    "de": Notices(
        block="Diese Antwort wird zurückgehalten: ihre Quellen belegen sie nicht. Bitte verlangen Sie eine Quelle.",
        warn="Hinweis: Teile dieser Antwort sind durch ihre Quellen nicht belegt. Bitte prüfen Sie sie.",
        unavailable="Hinweis: Diese Antwort konnte nicht an ihren Quellen geprüft werden.",
        unavailable_blocked="Diese Antwort wird zurückgehalten, weil sie nicht geprüft werden konnte.",
    ),
    "pl": Notices(
        block="Odpowiedź wstrzymano, ponieważ nie potwierdzają jej źródła. Poproś o podanie źródła.",
        warn="Uwaga: części tej odpowiedzi nie potwierdzają źródła. Sprawdź je.",
        unavailable="Uwaga: tej odpowiedzi nie udało się sprawdzić w źródłach.",
        unavailable_blocked="Odpowiedź wstrzymano, ponieważ nie udało się jej sprawdzić.",
    ),
    "ru": Notices(
        block="Ответ не показан: источники его не подтверждают. Попросите указать источник.",
        warn="Внимание: части этого ответа не подтверждены источниками. Проверьте их.",
        unavailable="Внимание: этот ответ не удалось сверить с источниками.",
        unavailable_blocked="Ответ не показан: его не удалось проверить.",
    ),
    "uk": Notices(
        block="Відповідь не показано: джерела її не підтверджують. Попросіть навести джерело.",
        warn="Увага: частини цієї відповіді не підтверджені джерелами. Перевірте їх.",
        unavailable="Увага: цю відповідь не вдалося звірити з джерелами.",
        unavailable_blocked="Відповідь не показано: її не вдалося перевірити.",
    ),
}
"""By language code."""
