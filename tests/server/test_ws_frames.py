"""Invalid WebSocket frames.

The server answers each with a close frame and its code (RFC 6455, section 7.4.1).
"""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest
import trio

from tests.server.running import Front, read_all, read_until, running_front
from tests.server.streaming import broadcasting, open_ws

UPGRADE = (
    b"GET /events/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)
FIN, TEXT, BINARY, CLOSE, PING = 0x80, 1, 2, 8, 9
PROTOCOL_ERROR, BAD_DATA, TOO_LARGE = 1002, 1007, 1009


def frame(first: int, payload: bytes = b"", *, masked: bool = True, announced: int | None = None) -> bytes:
    size = len(payload) if announced is None else announced
    mask = 0x80 if masked else 0
    if size < 126:
        head = bytes([first, mask | size])
    elif size < 65536:
        head = bytes([first, mask | 126]) + struct.pack("!H", size)
    else:
        head = bytes([first, mask | 127]) + struct.pack("!Q", size)
    return head + (b"\0\0\0\0" if masked else b"") + payload


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(FIN | CLOSE, struct.pack("!H", code) + reason)


def frames_in(data: bytes) -> list[tuple[int, bytes]]:
    """Return the frames that a server sent, as pairs of opcode and payload."""
    found = []
    while len(data) >= 2:
        size, start = data[1], 2
        if size == 126:
            (size,), start = struct.unpack("!H", data[2:4]), 4
        found.append((data[0] & 15, data[start : start + size]))
        data = data[start + size :]
    return found


async def upgraded(front: Front) -> trio.SocketStream:
    stream = await front.connect()
    await stream.send_all(UPGRADE + b"\r\n")
    assert (await read_until(stream, b'"cursor":null}')).startswith(b"HTTP/1.1 101 ")
    return stream


async def is_admitted(front: Front) -> bool:
    """Return whether the server admits a new client.

    The library leaves a refused stream open, so this function closes it.
    """
    stream = await front.connect()
    async with stream:
        await stream.send_all(UPGRADE + b"\r\n")
        return (await read_until(stream, b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")


async def code_after(front: Front, sent: bytes) -> int | None:
    """Send frames. Return the code of the final close frame, or None if there is no close frame."""
    stream = await upgraded(front)
    async with stream:
        await stream.send_all(sent)
        ends = [payload for opcode, payload in frames_in(await read_all(stream)) if opcode == CLOSE]
    assert len(ends) <= 1
    return struct.unpack("!H", ends[0][:2])[0] if ends and ends[0] else None


BAD = {
    "bad UTF-8": (frame(FIN | TEXT, b"\xff\xfe"), BAD_DATA),
    "a surrogate": (frame(FIN | TEXT, b"\xed\xa0\x80"), BAD_DATA),
    "UTF-8 cut short": (frame(FIN | TEXT, b"\xe2\x82"), BAD_DATA),
    "UTF-8 cut short over frames": (frame(TEXT, b"\xe2") + frame(FIN, b"\x82"), BAD_DATA),
    "a reserved bit": (frame(FIN | 0x40 | TEXT, b"{}"), PROTOCOL_ERROR),
    "another reserved bit": (frame(FIN | 0x10 | PING), PROTOCOL_ERROR),
    "an unmasked frame": (frame(FIN | TEXT, b"{}", masked=False), PROTOCOL_ERROR),
    "a reserved opcode": (frame(FIN | 3, b"{}"), PROTOCOL_ERROR),
    "a reserved control opcode": (frame(FIN | 11), PROTOCOL_ERROR),
    "a control frame in pieces": (frame(PING, b"x"), PROTOCOL_ERROR),
    "a control frame that is too long": (frame(FIN | PING, b"x" * 126), PROTOCOL_ERROR),
    "a continuation of nothing": (frame(FIN, b"x"), PROTOCOL_ERROR),
    "a message within a message": (frame(TEXT, b"a") + frame(FIN | TEXT, b"b"), PROTOCOL_ERROR),
    "a length in too many bytes": (b"\x81\xfe\x00\x02\0\0\0\0{}", PROTOCOL_ERROR),
    "a length above 63 bits": (b"\x82\xff" + b"\xff" * 8 + b"\0\0\0\0", PROTOCOL_ERROR),
    "half a close code": (frame(FIN | CLOSE, b"\x03"), PROTOCOL_ERROR),
    "a close code of no meaning": (close(999), PROTOCOL_ERROR),
    "a close code for nobody's wire": (close(1005), PROTOCOL_ERROR),
    "another one": (close(1006), PROTOCOL_ERROR),
    "a reserved close code": (close(1004), PROTOCOL_ERROR),
    "an unassigned close code": (close(2999), PROTOCOL_ERROR),
    "a close reason that is no text": (close(1000, b"\xff"), BAD_DATA),
    "a message that is too large": (frame(FIN | TEXT, b" " * 70_000), TOO_LARGE),
    "a message too large in pieces": (frame(TEXT, b" " * 40_000) + frame(0, b" " * 40_000), TOO_LARGE),
}


async def test_invalid_frame_is_answered_with_its_close_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """behaviour 188"""
    async with broadcasting(tmp_path) as (_, front):
        for name, (frames, code) in BAD.items():
            sent = frames + close(1000) if code == TOO_LARGE else frames
            assert await code_after(front, sent) == code, name
            assert await code_after(front, b"".join([frame(FIN | PING, b"hi"), sent])) == code, name
            async with open_ws(front) as (client, hello):
                await client.send({"op": "subscribe", "types": []})
                assert hello["type"] == "hello", name
        for code in (1000, 1001, 3000, 4999):
            assert await code_after(front, close(code, b"Ende")) == code, "a close is answered with its code"
    assert "Traceback" not in capfd.readouterr().err


async def test_close_frame_is_received_despite_data_after_an_invalid_frame(tmp_path: Path) -> None:
    """A connection that is closed with unread input would be reset."""
    async with broadcasting(tmp_path) as (_, front):
        assert await code_after(front, frame(FIN | 3) + b"x" * 400_000) == PROTOCOL_ERROR


async def test_early_frames_are_refused_and_free_their_connection_slot(tmp_path: Path) -> None:
    async with broadcasting(tmp_path, limit=2) as (_, front):
        for _ in range(6):
            answer = await front.exchange(UPGRADE + b"\r\n" + frame(FIN | TEXT, b"{}"))
            assert answer.startswith(b"HTTP/1.1 400 ")
        with trio.fail_after(60):  # the slot is free again once the server has closed the connection
            while not await is_admitted(front):
                await trio.sleep(0.01)


async def test_handshake_with_a_body_or_invalid_fields_is_refused() -> None:
    lines = (b"Content-Length: 2", b"Transfer-Encoding: chunked", b"Sec-WebSocket-Protocol: \xff")
    async with running_front() as front:
        for line in lines:
            assert (await front.exchange(UPGRADE + line + b"\r\n\r\n")).startswith(b"HTTP/1.1 400 "), line
        assert front.rejected == ["bad_request"] * len(lines)


async def test_random_frames_cause_no_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    random = Random(11)
    async with broadcasting(tmp_path) as (_, front):
        for _ in range(150):
            stream = await upgraded(front)
            async with stream:
                for _ in range(random.randint(1, 4)):
                    payload = random.randbytes(random.choice([0, 1, 2, 125, 126, 300]))
                    sent = frame(random.randrange(256), payload, masked=random.random() < 0.9)
                    with trio.move_on_after(60) as patience:
                        try:
                            await stream.send_all(sent)
                        except trio.BrokenResourceError:
                            break
                    assert not patience.cancelled_caught
                try:
                    await stream.send_all(close(1000))
                    await stream.send_eof()
                except trio.BrokenResourceError:
                    continue
                with trio.fail_after(60):
                    await read_all(stream)
    assert "Traceback" not in capfd.readouterr().err


async def test_lower_case_method_opens_no_websocket(tmp_path: Path) -> None:
    """Hypercorn treats this method as GET, and its own WebSocket has no limits."""
    async with broadcasting(tmp_path) as (_, front):
        stream = await front.connect()
        async with stream:
            offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
            await stream.send_all(UPGRADE.replace(b"GET", b"get") + offer + b"\r\n")
            answer = await read_until(stream, b'"cursor":null}')
            assert b"permessage-deflate" not in answer
            await stream.send_all(frame(FIN | 3))
            ((opcode, payload),) = frames_in(await read_all(stream))
            assert (opcode, payload[:2]) == (CLOSE, struct.pack("!H", PROTOCOL_ERROR))
