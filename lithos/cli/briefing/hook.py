"""`lithos brief --hook`: a briefing for a client that starts, or nothing at all (integration spec, 2).

Whatever goes wrong, it prints nothing, exits 0 and is gone within a second: a client must not suffer from a
server that is not there. It imports only what it needs, when it needs it: with all that other commands load
it would take twice as long.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lithos.cli.briefing.asking import HOOK_BUDGET, TOKEN_BYTES, TOOL, arguments_of, concern_of

if TYPE_CHECKING:
    from lithos.cli.options import Invocation

#: Seconds after which the process ends, whatever it waits for; Python itself takes a tenth beside.
DEADLINE: Final = 0.7
#: Bytes of an answer: the text, and what is told of each of its notes.
_LARGEST_ANSWER: Final = 1_000_000
_LARGEST_RECORD: Final = 65_536


class NothingToTell(Exception):
    """There is no server that answers as it should."""


def promise_silence() -> None:
    """From now on the process ends with 0 at the deadline, also in a call that blocks, and at a bug."""
    sys.excepthook = lambda *_: os._exit(0)
    watchdog = threading.Timer(DEADLINE, os._exit, (0,))
    watchdog.daemon = True
    watchdog.start()


def run_hook(invocation: Invocation) -> int:
    """Print what is new, and return 0 whatever comes of it."""
    from lithos.stores.told import SessionBusy

    # What a server, a file or a configuration can do wrong: not there, not readable, of another shape.
    failures = (
        *(NothingToTell, SessionBusy, OSError, RecursionError),
        *(ValueError, TypeError, LookupError, AttributeError),
    )
    with suppress(*failures):
        _brief(invocation)
    return 0


def _brief(invocation: Invocation) -> None:
    until = time.monotonic() + DEADLINE
    data, token = _find_data(invocation)
    url, own_token = _find_owner(data)
    typed = dict(invocation.typed)
    if not typed.get("query") and not typed.get("task"):
        typed["query"] = concern_of(Path.cwd())
    typed["budget"] = min(typed.get("budget", HOOK_BUDGET), HOOK_BUDGET)
    session = typed.get("session")
    if session is None:
        _print(_ask(url, own_token or token, arguments_of(typed, None), until), invocation)
        return
    from lithos.stores.told import sessions_folder, told_session

    with told_session(sessions_folder(os.environ), data, session, DEADLINE) as told:
        answer = _ask(url, own_token or token, arguments_of(typed, told.cursor), until)
        _print(answer, invocation)
        if isinstance(answer["cursor"], str) and answer["cursor"]:
            told.store(answer["cursor"])


def _find_data(invocation: Invocation) -> tuple[Path, str | None]:
    """The data directory and the configured token, as the configuration has them.

    A data directory that is named wins over everything else, so that nothing need be read to know it.
    """
    token = os.environ.get("LITHOS_SERVER__AUTH_TOKEN") or os.environ.get("LITHOS_AUTH_TOKEN")
    if invocation.data_dir is not None:
        return invocation.data_dir.expanduser(), token
    for name in ("LITHOS_STORAGE__DATA_DIR", "LITHOS_DATA_DIR"):
        if os.environ.get(name, "").strip():
            return Path(os.environ[name]).expanduser(), token
    vaults = ("LITHOS_STORAGE__VAULT", "LITHOS_VAULT")
    if invocation.config is None and "vault" not in invocation.typed and not any(map(os.environ.get, vaults)):
        return Path("data"), token
    return _load_configured(invocation)


def _load_configured(invocation: Invocation) -> tuple[Path, str | None]:
    from lithos.config.load import load_config
    from lithos.config.sources import ConfigError

    typed = {"storage.vault": invocation.typed["vault"]} if "vault" in invocation.typed else {}
    try:
        config = load_config(config_path=invocation.config, environment=os.environ, overrides=typed).config
    except ConfigError as error:
        raise NothingToTell(str(error)) from error
    return config.storage.data_dir, config.server.auth_token


def _find_owner(data: Path) -> tuple[str, str | None]:
    """Address and token of the server that owns the data directory now; a record may be of one that died."""
    lock = data / ".lithos" / "lock"
    with lock.open("rb") as file:
        record = json.loads(file.read(_LARGEST_RECORD))
    if not isinstance(record.get("url"), str):
        raise NothingToTell("the owner has no address")
    from lithos.stores.lock import is_owned

    if not is_owned(lock):
        raise NothingToTell("the owner has gone")
    return record["url"], record.get("token")


def _ask(url: str, token: str | None, arguments: Mapping[str, Any], until: float) -> dict[str, Any]:
    """The answer of the tool."""
    import http.client
    from urllib.parse import urlsplit

    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": TOOL, "arguments": dict(arguments)},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    parts = urlsplit(url)
    left = max(0.01, until - time.monotonic())
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=left)
    try:
        connection.request("POST", "/mcp", json.dumps(message), headers)
        response = connection.getresponse()
        content = response.read(_LARGEST_ANSWER + 1)
    except http.client.HTTPException as failure:
        raise NothingToTell(str(failure)) from failure
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK or len(content) > _LARGEST_ANSWER:
        raise NothingToTell(f"the server answered {response.status}")
    result = json.loads(content)["result"]
    if result.get("isError"):
        raise NothingToTell("the server refused")
    answer: dict[str, Any] = result["structuredContent"]
    if not isinstance(answer["text"], str) or not isinstance(answer["tokens"], int):
        raise NothingToTell("the answer is of another shape")
    size = max(answer["tokens"], len(answer["text"].encode("utf-8", "replace")) / TOKEN_BYTES)
    if size > HOOK_BUDGET:
        raise NothingToTell("the answer is larger than was asked for")
    return answer


def _print(answer: Mapping[str, Any], invocation: Invocation) -> None:
    """The text, in one write; nothing when there is nothing new."""
    from lithos.cli.printable import make_printable

    if not answer["text"].strip():
        return
    text = "\n".join(map(make_printable, answer["text"].rstrip("\n").split("\n")))
    if invocation.as_json:
        text = json.dumps({"text": text, "tokens": answer["tokens"], "cursor": answer["cursor"]})
    encoding = sys.stdout.encoding or "utf-8"
    data = f"{text}\n".encode(encoding, "backslashreplace")
    try:
        os.write(1, data)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
