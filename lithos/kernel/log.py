"""Logging: one line per event on stderr, as JSON for machines or as text for people.

`get_logger(__name__).info("commit", trigger="age", docs=12)` logs a lower-case event with fields. Log records
of other libraries and Python warnings have the same format. This module imports no other module of Lithos.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TextIO
from urllib.parse import quote

LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
FORMATS: Final = ("json", "text")

#: Libraries with info lines that repeat Lithos's own lines or appear once per request.
NOISY: Final = (
    "asyncio",
    "filelock",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "huggingface_hub",
    "hypercorn.access",
    "hypercorn.error",
    "mcp",
    "model2vec",
    "quart.app",
    "quart.serving",
    "sse_starlette",
    "urllib3",
)

#: The vault for which a task or thread runs, if the process has several vaults. Log lines contain its name.
WORKING_FOR: Final[ContextVar[str | None]] = ContextVar("vault", default=None)

_HIDDEN: Final = "***"
_HEAD: Final = ("timestamp", "level", "logger", "message")
_RESERVED: Final = frozenset({*_HEAD, "exception"})
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:token|secret|password|api_?key|authorization|cookie)$", re.IGNORECASE
)
_QUERY_TOKEN: Final = re.compile(r"(access(?:_|%5f)token(?:=|%3d))[^&\s\"'#;<>)\]}]+", re.IGNORECASE)
_BEARER: Final = re.compile(r"\b(bearer\s+)[\w.~+/=-]{4,}", re.IGNORECASE)
#: Minimum length of a secret in characters. Shorter secrets are not replaced, because that would make the log
#: unreadable.
_SHORTEST_SECRET: Final = 4
_FIELDS: Final = "lithos_fields"
#: Errors of a record with wrong `%` arguments, or of a field with a failing `__str__`.
_UNPRINTABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Logger:
    """A named logger.

    The methods of the logger take an event with fields. If the level is switched off, they format nothing.
    """

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, /, **fields: Any) -> None:
        """Log an event for developers."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: Any) -> None:
        """Log a normal event that operators should see."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, /, *, exc: BaseException | None = None, **fields: Any) -> None:
        """Log a problem that does not stop the service.

        With `exc`, the traceback is added as the field `exception`.
        """
        self._log(logging.WARNING, event, fields, exc)

    def error(self, event: str, /, *, exc: BaseException | None = None, **fields: Any) -> None:
        """Log a failure. With `exc`, the traceback is added as the field `exception`."""
        self._log(logging.ERROR, event, fields, exc)

    def exception(self, event: str, /, **fields: Any) -> None:
        """Log an error together with the exception that is being handled."""
        self._log(logging.ERROR, event, fields, sys.exception())

    def _log(
        self, level: int, event: str, fields: Mapping[str, Any], exc: BaseException | None = None
    ) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=exc, extra={_FIELDS: fields})


def get_logger(name: str) -> Logger:
    """Return the logger with this name. Modules can call this at import time, before `configure_logging`."""
    return Logger(logging.getLogger(name))


def configure_logging(level: str, fmt: str, stream: TextIO, *, secrets: Iterable[str] = ()) -> None:
    """Write all records of at least `level` (a key of `LEVELS`) to `stream` in format `fmt`.

    `fmt` is `json` or `text`.

    Each of `secrets` is replaced wherever it would appear in a line. A later call replaces all settings of an
    earlier call. The stream is never closed. If the reader of the stream has ended, lines are dropped
    silently.
    """
    if level not in LEVELS or fmt not in FORMATS:
        allowed = f"one of {', '.join(LEVELS)} and one of {', '.join(FORMATS)}"
        raise ValueError(f"unknown log level {level!r} or format {fmt!r}; give {allowed}")
    formatter = _JsonFormatter(secrets) if fmt == "json" else _TextFormatter(secrets)
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _LineHandler)]:
        root.removeHandler(handler)
    line_handler = _LineHandler(stream)
    line_handler.setFormatter(formatter)
    root.addHandler(line_handler)
    root.setLevel(LEVELS[level])
    for name in NOISY:
        logging.getLogger(name).setLevel(max(LEVELS[level], logging.WARNING))
    logging.captureWarnings(True)


def ensure_logging(stream: TextIO) -> None:
    """Log as JSON to `stream`, unless `configure_logging` was called.

    Failures before that call are therefore logged too.
    """
    if not any(isinstance(handler, _LineHandler) for handler in logging.getLogger().handlers):
        configure_logging("info", "json", stream)


class Redactor:
    """A filter that removes secrets from texts and from JSON-like values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in (secret, quote(secret, safe=""))}
        long_enough = sorted((form for form in forms if len(form) >= _SHORTEST_SECRET), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, long_enough))) if long_enough else None

    def clean_text(self, text: str) -> str:
        """Return the text without known secrets, `access_token` values and bearer tokens."""
        if self._known is not None:
            text = self._known.sub(_HIDDEN, text)
        lowered = text.lower()
        if "access" in lowered:
            text = _QUERY_TOKEN.sub(rf"\1{_HIDDEN}", text)
        if "bearer" in lowered:
            text = _BEARER.sub(rf"\1{_HIDDEN}", text)
        return text

    def clean(self, value: Any, name: str = "") -> Any:
        """Return a JSON-compatible copy without secrets.

        Text in a field with a name such as `auth_token` is always hidden.
        """
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, Mapping):
            return {self.clean_text(str(key)): self.clean(item, str(key)) for key, item in value.items()}
        if isinstance(value, list | tuple | Set):
            return [self.clean(item, name) for item in value]
        if _SECRET_NAME.search(name):
            return _HIDDEN
        return self.clean_text(_describe(value))


def _describe(value: Any) -> str:
    if isinstance(value, BaseException):
        return "".join(traceback.format_exception_only(value)).strip()
    return str(value)


class _RecordFormatter(logging.Formatter):
    """Base class of both formatters. It extracts and redacts the fields of a record."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._redactor = Redactor(secrets)

    def _read(self, record: logging.LogRecord) -> dict[str, Any]:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor.clean_text(record.getMessage()),
        }
        if (vault := WORKING_FOR.get()) is not None:
            line["vault"] = vault
        fields: Mapping[str, Any] = getattr(record, _FIELDS, {})
        for name, value in fields.items():
            line[name + "_" if name in _RESERVED else name] = self._redactor.clean(value, name)
        trace = self._trace(record)
        if trace:
            line["exception"] = self._redactor.clean_text(trace)
        return line

    def _trace(self, record: logging.LogRecord) -> str:
        if record.exc_info and record.exc_info[1] is not None:
            return "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return record.exc_text or ""


class _JsonFormatter(_RecordFormatter):
    def format(self, record: logging.LogRecord) -> str:
        # ASCII escapes keep each record on one printable line, whatever encoding the stream has.
        return json.dumps(self._read(record), separators=(",", ":"))


class _TextFormatter(_RecordFormatter):
    def format(self, record: logging.LogRecord) -> str:
        line = self._read(record)
        time, level, logger, message = (line.pop(name) for name in _HEAD)
        trace: str = line.pop("exception", "")
        head = f"{time} {level:<8} {logger}: {_printable(message)}"
        fields = "".join(f" {name}={_word(value)}" for name, value in line.items())
        return head + fields + "".join(f"\n    {_printable(part)}" for part in trace.splitlines())


def _word(value: Any) -> str:
    """Return a field value. Unless it is a single plain word, it is returned as a JSON string."""
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "='):
        return value
    return _printable(json.dumps(value, ensure_ascii=False))


def _printable(text: str) -> str:
    """Escape control characters, so that a record can neither forge log lines nor control a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class _LineHandler(logging.Handler):
    """A log handler that writes each record in one call and ignores write errors (closed pipe, full disk)."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        self._write(self._render(record) + "\n")

    def _render(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except _UNPRINTABLE as error:
            # Log the problem, instead of losing the event or failing in the caller.
            event = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
            record.msg, record.args = "log record could not be printed", None
            record.__dict__[_FIELDS] = {"event": event, "reason": type(error).__name__}
            return self.format(record)

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            self._stream.flush()
        except BrokenPipeError:
            _silence(self._stream)
        except (OSError, ValueError):  # The disk is full or the stream is closed: the error cannot be logged.
            return


def _silence(stream: TextIO) -> None:
    """Redirect the stream to the null device.

    Without the redirection, flushing the stream's buffer would fail again at exit, with exit code 120.
    """
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nothing, stream.fileno())
        finally:
            os.close(nothing)
