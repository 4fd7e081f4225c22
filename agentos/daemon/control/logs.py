"""The daemon's log: JSON lines in ``logs/daemon.log``, rotated by size; plain lines on a console."""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog

_KEPT = 3
_LEVELS = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))  # logging's and syslog's


class _JournalFormatter(structlog.stdlib.ProcessorFormatter):
    """Puts in front of a line what the journal takes for its level; it has times of its own."""

    def format(self, record: logging.LogRecord) -> str:
        level = next((number for least, number in _LEVELS if record.levelno >= least), 7)
        return f"<{level}>{super().format(record)}"


def _formatter() -> type[structlog.stdlib.ProcessorFormatter]:
    """For the console: the journal, where systemd put it there."""
    journal = "JOURNAL_STREAM" in os.environ and not sys.stderr.isatty()
    return _JournalFormatter if journal else structlog.stdlib.ProcessorFormatter


def set_up_logs(path: Path, level: str, size_mb: int, *, console: bool) -> None:
    """Route structlog and the libraries' own logging (DBOS) to the file, and to a console if asked."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    file = RotatingFileHandler(path, maxBytes=size_mb << 20, backupCount=_KEPT, encoding="utf-8")
    file.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=True),
            ],
        )
    )
    handlers: list[logging.Handler] = [file]
    if console:
        screen = logging.StreamHandler(sys.stderr)
        screen.setFormatter(
            _formatter()(
                foreign_pre_chain=shared,
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.dev.ConsoleRenderer(
                        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
                    ),
                ],
            )
        )
        handlers.append(screen)
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    # DBOS narrates every start and writes to the console by itself.
    library = logging.getLogger("dbos")
    library.handlers = []
    library.propagate = True
    library.setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
