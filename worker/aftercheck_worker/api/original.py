"""A text of the caller beside its redacted form, and the way from a span of one to the span of the other."""

from __future__ import annotations


class Original:
    """A caller's text.

    Args:
        raw: the caller's words.
        clean: the same with placeholders.
        origin: offset in `raw` of each offset in `clean`, None when the two are equal.
    """

    __slots__ = ("_origin", "clean", "raw")

    def __init__(self, raw: str, clean: str, origin: list[int] | None) -> None:
        self.raw, self.clean, self._origin = raw, clean, origin

    @property
    def changed(self) -> bool:
        """Something was redacted."""
        return self._origin is not None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of `raw` that `clean[start:end]` stands for; a cut placeholder counts whole."""
        if self._origin is None:
            return start, end
        last = end
        while 0 < last < len(self._origin) - 1 and self._origin[last] == self._origin[last - 1]:
            last += 1
        return self._origin[start], self._origin[last]
