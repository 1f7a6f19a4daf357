"""Logs of the long-running processes: one JSON object or plain line per record on stderr, never any app text."""

from __future__ import annotations

import logging
import sys
import time
from typing import Final

import msgspec

from aftercheck_worker.settings import Settings

_PLAIN: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes time (UTC), level, logger, message and the `extra` fields; a traceback becomes the field `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        fields: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(fields, enc_hook=str).decode("utf-8", "replace")


def configure(settings: Settings) -> None:
    """Send all logs of this process to stderr in the configured format; calling it again changes nothing."""
    root = logging.getLogger()
    if any(getattr(handler, "aftercheck", False) for handler in root.handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else logging.Formatter(_PLAIN))
    handler.aftercheck = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for noisy in ("kombu", "amqp", "celery.utils.functional"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
