"""What careless or hostile clients and programs leave: on the wire, and in the folder."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient, call, connected
from tests.e2e.process import START_BOUND, STOP_BOUND, Lithos, running_lithos

pytestmark = pytest.mark.slow

HEAD = b"Host: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
LIST_TOOLS = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
ODD_NAMES = (
    "line\nbreak.md",
    "quo\"te's.md",
    "tab\t and  spaces .md",
    "back\\slash.md",
    "-rf.md",
    "%2e%2e.md",
    "\u202egnirts.md",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lithos]:
    data = tmp_path_factory.mktemp("bad") / "data"
    with running_lithos(data, env={"LITHOS_STORAGE__MAX_CONTENT_SIZE_BYTES": "100000"}) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log()
        assert '"level":"error"' not in running.log()


def exchange(server: Lithos, sent: bytes) -> bytes:
    """Send bytes, end the sending side, and return all that comes back."""
    with socket.create_connection(server.address, timeout=STOP_BOUND) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server answered before it had all
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received


def post(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST /mcp HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % size + body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"POST /mcp HTT", b"400"),
        (b"POST /mcp HTTP/1.1\r\nHost: local", b"400"),
        (post(b'{"jsonrpc":', 100), b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"431"),
        (post(b"{" * 2_000_000), b"413"),
        (post(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud83d"}}'), b"400"),
        (post(b"not json"), b"400"),
        (post(b"[" * 30_000), b"400"),
        (post(b"[" * 50_000), b"413"),
        (post(b'"\xff\xfe"'), b"400"),
        (post(b"{}"), b"400"),
    ],
)
def test_broken_requests_are_refused_and_the_next_one_is_served(
    server: Lithos, sent: bytes, status: bytes
) -> None:
    answer = exchange(server, sent)
    assert answer[9:12] == status, answer[:300]
    assert b'"lithos_write"' in exchange(server, post(LIST_TOOLS))


def test_a_client_that_hangs_up_in_the_middle_of_its_answer_is_forgotten(server: Lithos) -> None:
    for _ in range(20):
        with socket.create_connection(server.address) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            connection.sendall(post(LIST_TOOLS))
    assert b'"lithos_write"' in exchange(server, post(LIST_TOOLS))


async def test_odd_arguments_are_refused_or_stored_but_never_crash(server: Lithos) -> None:
    """behaviours 8, 36, 173"""
    async with WireClient.open(server.address) as client:
        for title in (
            "a\x00b",
            "\u202e",
            "../../etc/passwd",
            "x" * 5_000,
            "\ud83d\ude00",
            "---",
            "# #",
            "[[x]]",
        ):
            answer = await client.call("lithos_write", title=title, content="---\nx: [\n---", agent="a")
            assert answer["status"] in ("created", "error"), answer
        for path in ("../up", "/etc", "a/../../b", "a\x00b", "C:\\x", "." * 300, "x" * 300):
            answer = await client.call("lithos_write", title=f"P {path}", content="", agent="a", path=path)
            assert answer["status"] in ("created", "error"), answer
        answer = await client.call("lithos_write", title="Big", content="é" * 50_001, agent="a")
        assert answer["code"] == "content_too_large"
        answer = await client.call("lithos_write", title="Big", content="é" * 50_000, agent="a")
        assert answer["status"] == "created"
        for query in (
            '"',
            "((((",
            "a AND",
            "*",
            "\x00",
            "title:",
            "-",
            "\ud83d\ude00",
            "x" * 20_000,
            "+" * 500,
        ):
            answer = await client.call("lithos_search", query=query)
            assert "results" in answer or answer["code"] == "invalid_input", answer


async def test_odd_files_are_served_or_skipped_with_a_word_in_the_log(tmp_path: Path) -> None:
    """behaviours 22, 176, 182"""
    data = tmp_path / "data"
    folder = data / "knowledge"
    folder.mkdir(parents=True)
    big = (
        "\n\n".join(f"Paragraph {number} of the big note." for number in range(150_000))
        + "\n\nlastwordofall\n"
    )
    assert len(big) > 5_000_000
    (folder / "big.md").write_text(big)
    (folder / "binary.md").write_bytes(bytes(range(256)) * 20)
    (folder / "malformed.md").write_text("---\ntitle: [unclosed\n---\nbody\n")
    (folder / "bomb.md").write_text("---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n---\nbody\n")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (tmp_path / "secret.md").write_text("# Secret\n\nclassified\n")
    (folder / "outside.md").symlink_to(tmp_path / "secret.md")
    (folder / "away").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.md").symlink_to(tmp_path / "nothing.md")
    (folder / os.fsdecode(b"latin-\xe9.md")).write_text("latin")
    for number, name in enumerate(ODD_NAMES):
        (folder / name).write_text(f"The odd file oddtoken{number}.\n")
    with running_lithos(data) as server:
        async with connected("mcp", url=server.url) as client:
            with trio.fail_after(START_BOUND):  # it answers before all is indexed
                while "indexing" in await call(client, "lithos_list", limit=1):
                    await trio.sleep(0.05)
            for number, name in enumerate(ODD_NAMES):
                answer = await call(client, "lithos_search", query=f"oddtoken{number}", mode="fulltext")
                assert [row["path"] for row in answer["results"]] == [name]
                read = await call(client, "lithos_read", id=answer["results"][0]["id"])
                assert f"oddtoken{number}" in read["content"]
            answer = await call(client, "lithos_search", query="lastwordofall", mode="fulltext")
            assert [row["path"] for row in answer["results"]] == ["big.md"]
            assert (await call(client, "lithos_search", query="classified"))["results"] == []
            paths = {row["path"] for row in (await call(client, "lithos_list", limit=1000))["items"]}
            assert paths >= {"big.md", *ODD_NAMES}
            assert not paths & {
                "binary.md",
                "malformed.md",
                "outside.md",
                "dangling.md",
                "folder.md",
                "pipe.md",
            }
        assert server.stop() == 0
        events = [json.loads(line) for line in server.log().splitlines()]
    skipped = {event["path"] for event in events if event["message"] == "file not indexed"}
    assert {"binary.md", "malformed.md"} <= skipped
    assert not [event for event in events if "exception" in event or event["level"] == "error"]
    assert (folder / "big.md").read_text() == big
