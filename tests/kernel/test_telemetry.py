"""Log lines: format, redaction of secrets, and output after the reader of the stream has gone away."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.configuration.load import LOG_FORMATS, LOG_LEVELS
from lithos.kernel.log import FORMATS, LEVELS, NOISY, WORKING_FOR, Redactor, configure_logging, get_logger

SECRET = 'hunter2"\\&x'


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """Restore the logging of the process after a test."""
    names = (None, *NOISY)
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    logging.captureWarnings(False)
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers


class Lines(io.StringIO):
    """A stream whose content can be read back as JSON lines."""

    def read_all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def read_one(self) -> dict[str, Any]:
        (line,) = self.read_all()
        return line


def configured(level: str = "info", fmt: str = "json", **more: Any) -> Lines:
    stream = Lines()
    configure_logging(level, fmt, stream, **more)
    logging.getLogger().handlers[:-1] = []  # pytest's handlers print tracebacks for invalid records
    return stream


def test_log_line_names_its_vault_when_several_are_served() -> None:
    stream, log = configured(), get_logger("lithos.actors.indexer")
    token = WORKING_FOR.set("work")
    try:
        log.info("commit", docs=12)
        log.info("unavailable", vault="home")
    finally:
        WORKING_FOR.reset(token)
    log.info("commit", docs=12)
    assert [line.get("vault") for line in stream.read_all()] == ["work", "home", None]


def test_event_is_one_json_line_with_its_fields() -> None:
    stream = configured()
    get_logger("lithos.actors.indexer").info(
        "commit", trigger="age", docs=12, share=0.5, ids=("a", "b"), none=None
    )
    line = stream.read_one()
    fields = ["trigger", "docs", "share", "ids", "none"]
    assert list(line) == ["timestamp", "level", "logger", "message", *fields]
    assert (line["level"], line["logger"], line["message"]) == ("info", "lithos.actors.indexer", "commit")
    assert (line["trigger"], line["docs"], line["share"], line["ids"]) == ("age", 12, 0.5, ["a", "b"])
    assert datetime.fromisoformat(line["timestamp"]).utcoffset() == timedelta(0)


def test_traceback_stays_on_the_line_of_its_event() -> None:
    stream = configured()
    log = get_logger("lithos.x")
    try:
        raise ExceptionGroup("two", [ValueError("first"), KeyError("second")])
    except ExceptionGroup as caught:
        log.exception("crash", actor="writer")
        log.error("crash", exc=caught)
    log.error("refused", error=ValueError("bad\nvalue"))
    crash, again, refused = stream.read_all()
    assert crash["exception"] == again["exception"]
    assert "ValueError: first" in crash["exception"]
    assert "test_telemetry.py" in crash["exception"]
    assert refused["error"] == "ValueError: bad\nvalue"
    assert "exception" not in refused


def test_field_cannot_replace_a_key_of_the_line() -> None:
    stream = configured()
    get_logger("lithos.x").info("moved", message="m", level="l", exception="e", event="kept")
    line = stream.read_one()
    assert (line["message"], line["level"], line["event"]) == ("moved", "info", "kept")
    assert (line["message_"], line["level_"], line["exception_"]) == ("m", "l", "e")


def test_text_log_is_one_readable_line_with_indented_traceback() -> None:
    stream = configured(fmt="text")
    log = get_logger("lithos.x")
    log.info("commit", trigger="age", title="two words", empty="", count=3, list=["a"])
    log.warning("odd", exc=ValueError("why"))
    commit, odd, *trace = stream.getvalue().splitlines()
    assert commit.endswith(
        ' info     lithos.x: commit trigger=age title="two words" empty="" count=3 list=["a"]'
    )
    assert odd.endswith(" warning  lithos.x: odd")
    assert trace == ["    ValueError: why"]


def test_field_value_cannot_forge_a_text_log_line() -> None:
    stream = configured(fmt="text")
    get_logger("lithos.x").info("read\nforged", path="a\n2026 info forged", colour="\x1b[31m")
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert "read\\nforged" in line


def test_log_message_is_not_formatted_when_its_level_is_off() -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    stream = configured("warning")
    log = get_logger("lithos.x")
    log.info("quiet", value=Costly())
    log.debug("quiet", value=Costly())
    assert stream.getvalue() == ""
    log.error("loud")
    assert "loud" in stream.getvalue()


def test_unprintable_value_does_not_fail_the_caller() -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    stream = configured()
    get_logger("lithos.x").info("odd", value=Broken())
    logging.getLogger("other").warning("%d apples", "many")
    first, second = stream.read_all()
    assert (first["event"], first["reason"]) == ("odd", "RuntimeError")
    assert (second["event"], second["logger"]) == ("%d apples", "other")


def test_library_log_records_and_warnings_have_the_same_format() -> None:
    stream = configured()
    logging.getLogger("quart.app").error("GET /x %s", "failed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        configure_logging("info", "json", stream)  # inside the test, because pytest replaces the hook itself
        warnings.warn("soon gone", UserWarning, stacklevel=1)
    library, warning = stream.read_all()
    assert (library["logger"], library["message"]) == ("quart.app", "GET /x failed")
    assert warning["logger"] == "py.warnings"
    assert "soon gone" in warning["message"]


def test_noisy_libraries_are_logged_only_from_warning_level() -> None:
    stream = configured("debug")
    for name in ("mcp.server.lowlevel.server", "hypercorn.access", "httpx", "sse_starlette.sse"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("heard")
    assert [line["message"] for line in stream.read_all()] == ["heard"] * 4


def test_configuring_again_replaces_the_stream() -> None:
    first, second = configured(), configured()
    get_logger("lithos.x").info("once")
    assert first.getvalue() == ""
    assert len(second.read_all()) == 1


def test_unknown_log_level_or_format_is_refused() -> None:
    for level, fmt in (("loud", "json"), ("info", "xml"), ("INFO", "json")):
        with pytest.raises(ValueError, match="debug, info, warning"):
            configure_logging(level, fmt, io.StringIO())


@pytest.mark.parametrize("fmt", ["json", "text"])
def test_secrets_are_hidden_wherever_they_appear(fmt: str) -> None:
    stream = configured(fmt=fmt, secrets=[SECRET, "", "ab"])
    log = get_logger("lithos.x")
    log.info(f"given {SECRET}", note=f"x{SECRET}x", nested={"k": [SECRET], SECRET: 1})
    log.error("crash", exc=ValueError(SECRET))
    logging.getLogger("other").warning("path %s", "/events?t=hunter2%22%5C%26x")
    shown = stream.getvalue()
    assert "hunter2" not in shown
    assert "***" in shown


def test_fields_with_secret_names_are_hidden() -> None:
    stream = configured()
    get_logger("lithos.x").info(
        "call",
        auth_token="t1",
        api_key="k1",
        headers={"Authorization": "Basic q1", "Accept": "a"},
        tokens=5,
        token_count=6,
    )
    line = stream.read_one()
    assert (line["auth_token"], line["api_key"]) == ("***", "***")
    assert line["headers"] == {"Authorization": "***", "Accept": "a"}
    assert (line["tokens"], line["token_count"]) == (5, 6)


def test_tokens_are_removed_from_text() -> None:
    due = {
        "GET /events?access_token=abc&since=1": "GET /events?access_token=***&since=1",
        "GET /events?since=1&ACCESS_TOKEN=a%20b HTTP/1.1": "GET /events?since=1&ACCESS_TOKEN=*** HTTP/1.1",
        "/events?access%5Ftoken=abc": "/events?access%5Ftoken=***",
        "{'authorization': 'Bearer abc.def-1'}": "{'authorization': 'Bearer ***'}",
        "the bearer of news": "the bearer of news",
        "nothing here": "nothing here",
    }
    assert {text: Redactor().clean_text(text) for text in due} == due


@given(
    event=st.text(max_size=20),
    value=st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(),
            st.binary(max_size=5),
            st.datetimes(),
        ),
        lambda each: (
            st.lists(each, max_size=3) | st.dictionaries(st.integers() | st.text(), each, max_size=3)
        ),
        max_leaves=6,
    ),
    fmt=st.sampled_from(["json", "text"]),
)
def test_any_logged_value_makes_exactly_one_line(event: str, value: Any, fmt: str) -> None:
    stream = configured(fmt=fmt)
    get_logger("lithos.x").info(event, value=value)
    text = stream.getvalue()
    assert text.endswith("\n")
    assert len(text.splitlines()) == 1
    if fmt == "json":
        assert text.isascii()
        json.loads(text, parse_constant=pytest.fail)


def test_log_line_is_written_to_a_stream_with_another_encoding() -> None:
    raw = io.BytesIO()
    configure_logging("info", "text", io.TextIOWrapper(raw, encoding="ascii"))
    get_logger("lithos.x").info("привет", surrogate="\ud800")
    assert b"\\u043f" in raw.getvalue()


def test_logging_continues_when_the_stream_is_closed() -> None:
    stream = configured()
    stream.close()
    get_logger("lithos.x").info("unheard")
    later = configured()
    get_logger("lithos.x").info("heard")
    assert "heard" in later.getvalue()


def test_logging_continues_when_the_reader_has_closed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stream:
        configure_logging("info", "json", stream)
        for _ in range(3):
            get_logger("lithos.x").info("unheard")
    later = configured()
    get_logger("lithos.x").info("heard")
    assert "heard" in later.getvalue()


@pytest.mark.slow
def test_process_keeps_exit_code_when_stderr_reader_has_gone() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    program = (
        "import sys; from lithos.kernel.log import configure_logging, get_logger;"
        "configure_logging('info', 'json', sys.stderr); get_logger('x').info('unheard'); print('done')"
    )
    try:
        ended = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writing, check=False, timeout=30
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stdout) == (0, b"done\n")


def test_log_levels_match_the_configuration() -> None:
    assert tuple(LEVELS) == LOG_LEVELS
    assert FORMATS == LOG_FORMATS
