"""Separate process that reads files within limits (docs/spec/attachments.md §5)."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile

import pytest
import trio

from lithos.attachments.extraction import extractor as module
from lithos.attachments.extraction.extractor import DrawingFailed
from lithos.attachments.model.kinds import MOST_PARTS, FileKind
from lithos.attachments.model.parts import FilePart
from tests.attachments.extraction.liar import LIES
from tests.attachments.extraction.pdf_files import content, document, encrypted, join, pdf, stream
from tests.attachments.extraction.reading import draw, read, running

LIAR = "tests.attachments.extraction.liar"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc, and a clock of another process")
#: PDF whose third page is found only after 10 ** 40 steps. No reader gets that far.
SLOW_THIRD_PAGE = join(
    document([stream(content("one")), stream(content("two"))])
    | {2: b"<</Type/Pages/Count 3/Kids[11 0 R 13 0 R 20 0 R]>>"}
    | {
        20 + at: b"<</Type/Pages/Count 1/Kids[%s]>>" % (b"%d 0 R " % min(21 + at, 59) * 10)
        for at in range(40)
    }
)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_pdf_is_read_page_by_page():
    """behaviour 290"""
    data = pdf("First (page)", "", "Exam-\nple größe\nnext line")
    async with running() as extractor:
        got = await read(extractor, data)
        assert (got.told.state, got.told.reason, got.told.digest) == ("whole", "", sha256(data).hexdigest())
        assert got.parts == [FilePart("1", "First (page)", 1), FilePart("3", "Example größe\nnext line", 3)]
        assert sys.platform != "linux" or 5 << 20 < (extractor.memory() or 0) < 200 << 20


@pytest.mark.parametrize(
    ("kind", "name", "data", "part"),
    [
        ("canvas", "a.canvas", b'{"nodes":[{"id":"k","type":"text","text":"card"}]}', FilePart("k", "card")),
        ("drawing", "a.excalidraw.md", b"# Text Elements\ntext ^abcdefgh\n", FilePart("abcdefgh", "text")),
        (
            "drawing",
            "a.excalidraw",
            b'{"elements":[{"id":"e","type":"text","text":"t"}]}',
            FilePart("e", "t"),
        ),
        ("text", "a.csv", b"\na,b\n", FilePart("2", "a,b")),
        ("html", "a.html", b"<p>seen<!-- not -->", FilePart("1", "seen")),
    ],
)
async def test_files_of_other_kinds_are_read_by_one_process(
    kind: FileKind, name: str, data: bytes, part: FilePart
):
    """behaviour 290"""
    async with running() as extractor:
        got = await read(extractor, data, kind, name)
        assert (got.told.state, list(got.parts)) == ("whole", [part])
        again = await read(extractor, data, kind, name, got.told.digest)
        assert (again.told.state, again.told.digest, again.parts) == ("unchanged", got.told.digest, [])
        assert (await read(extractor, data + b" ", kind, name, got.told.digest)).told.state == "whole"


async def test_pdf_with_empty_password_is_read_and_locked_pdf_fails():
    async with running() as extractor:
        assert (await read(extractor, encrypted("for all", b""))).texts == ["for all"]
        told = (await read(extractor, encrypted("secret", b"word"))).told
        assert (told.state, told.reason) == ("failed", "it is encrypted and needs a password")


async def test_file_above_the_limit_is_read_in_part_and_marked():
    """behaviour 291"""
    async with running() as extractor:
        pages = await read(extractor, pdf(*("page",) * (MOST_PARTS + 1)))
        assert (pages.told.state, pages.told.parts) == ("cut", MOST_PARTS)
        assert pages.told.reason == "only the first 2,000 of 2,001 pages"
        lines = await read(extractor, b"x" * 5_000_000, "text")
        assert (lines.told.state, lines.told.reason) == ("cut", "only its first 2,000 places")
        wide = await read(extractor, "語".encode() * 2_000_000, "text")
        assert (wide.told.state, wide.told.reason) == ("cut", "more than 4 MB of text")
        assert sum(len(text.encode()) for text in wide.texts) <= 4 << 20
        huge = await read(extractor, 300 << 20)
        assert (huge.told.state, huge.told.digest) == ("failed", None)
        assert huge.told.reason == "it has 314,572,800 bytes, and the limit is 256 MB"


async def test_slow_page_ends_the_reading_of_its_file():
    """behaviour 291"""
    async with running(page_seconds=0.3) as extractor:
        got = await read(extractor, SLOW_THIRD_PAGE)
        assert (got.told.state, got.texts) == ("cut", ["one", "two"])
        assert got.told.reason == "page 3 took longer than 0.3 s"
        assert got.told.digest == sha256(SLOW_THIRD_PAGE).hexdigest()
        assert (await read(extractor, pdf("next"))).texts == ["next"]


async def test_wall_clock_limits_reading_when_processor_time_is_unknown(monkeypatch: pytest.MonkeyPatch):
    """behaviour 291"""

    def refuse(_: int) -> float:
        raise OSError

    monkeypatch.setattr(module.time, "clock_gettime", refuse)
    async with running(page_seconds=0.5) as extractor:
        got = await read(extractor, SLOW_THIRD_PAGE)
        assert (got.told.state, got.told.reason) == ("cut", "page 3 took longer than 0.5 s")


async def test_missing_pdf_library_is_reported_with_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pypdfium2_raw.py").write_text("raise ModuleNotFoundError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with running() as extractor:
        got = await read(extractor, pdf("one"))
        assert (got.told.state, got.parts) == ("missing", [])
        assert "pip install 'lithos-server[pdf]'" in got.told.reason
        assert (await read(extractor, b"text", "text")).texts == ["text"]
        with pytest.raises(DrawingFailed, match="pip install"):
            await draw(extractor, pdf("one"), 1, 100)


async def test_page_image_is_drawn_within_bounds():
    data = pdf("one", "two")
    async with running() as extractor:
        for page, width, size in ((1, 306, (306, 396)), (2, 5_000, (1_600, 2_071))):
            picture = await draw(extractor, data, page, width)
            assert struct.unpack(">II", picture[16:24]) == size
        high = join(document([stream(b"0 0 5 5 re f")], page=b"/MediaBox[0 0 1 1000000]"))
        assert struct.unpack(">II", (await draw(extractor, high, 1, 800))[16:24]) == (1, 4_000)
        for wrong, page in ((data, 3), (data, 0), (b"no", 1), (encrypted("x", b"word"), 1)):
            with pytest.raises(DrawingFailed, match=r"page does not exist|not a PDF|password"):
                await draw(extractor, wrong, page, 100)


@LINUX
async def test_reader_process_has_few_rights_and_leaves_no_files():
    before = open_files()
    async with running() as extractor:
        await read(extractor, pdf("one"))
        assert extractor._child is not None
        process = Path(f"/proc/{extractor._child.pid}")
        limits = {
            line[:26].strip(): line[26:].split()[0] for line in (process / "limits").read_text().splitlines()
        }
        assert limits["Max file size"] == limits["Max core file size"] == "0"
        assert 512 << 20 <= int(limits["Max address space"]) < 513 << 20  # the limit includes the mapped file
        assert int(limits["Max open files"]) < 100
        assert os.getpriority(os.PRIO_PROCESS, extractor._child.pid) == 10
        assert os.sched_getscheduler(extractor._child.pid) == os.SCHED_BATCH
        # The process closes the file shortly after its last answer.
        with trio.fail_after(20):
            while len(os.listdir(process / "fd")) > 4:
                await trio.sleep(0.01)
        held = sorted(os.readlink(each).partition(":")[0] for each in (process / "fd").iterdir())
        assert held == ["/dev/null"] * 3 + ["socket"]
        names = {each.partition(b"=")[0] for each in (process / "environ").read_bytes().split(b"\0")}
        assert names <= {b"", b"PYTHONPATH", b"PYTHONHOME", b"LD_LIBRARY_PATH"}
        assert os.readlink(process / "cwd") == "/"
    assert not process.exists()
    assert open_files() == before


@pytest.mark.slow
async def test_long_extraction_has_the_lowest_priority():
    async with running() as extractor:
        await read(extractor, b"a\n \n" * 2_000_000, "text")
        await read(extractor, b"&lt " * 4_000_000, "html")
        assert extractor._child is not None
        assert extractor._child.used() > 1.0
        assert os.getpriority(os.PRIO_PROCESS, extractor._child.pid) == 19


async def test_idle_process_ends_and_next_file_gets_a_new_process():
    async with running(idle_seconds=0.05) as extractor:
        await read(extractor, b"one", "text")
        assert extractor._child is not None
        first = extractor._child.pid
        with trio.fail_after(20):
            while extractor._child is not None or is_running(first):
                await trio.sleep(0.01)
        assert (await read(extractor, b"two", "text")).texts == ["two"]


async def test_exception_of_the_receiver_ends_the_process():
    async def refuse(_: Sequence[FilePart]) -> None:
        raise ZeroDivisionError

    async with running() as extractor:
        with TemporaryFile() as file:
            file.write(b"text")
            file.flush()
            with pytest.raises(ZeroDivisionError):
                await extractor.extract(file.fileno(), "text", "a", None, refuse)
        assert extractor._child is None
        assert (await read(extractor, b"two", "text")).texts == ["two"]


async def test_cancelled_reading_ends_its_process():
    taken, pids = list[FilePart](), list[int]()

    async with running() as extractor:

        async def wait(parts: Sequence[FilePart]) -> None:
            assert extractor._child is not None
            taken.extend(parts)
            pids.append(extractor._child.pid)
            scope.cancel()
            await trio.sleep_forever()

        with TemporaryFile() as file, trio.CancelScope() as scope:
            file.write(pdf("page"))
            file.flush()
            await extractor.extract(file.fileno(), "pdf", "a", None, wait)
        assert scope.cancelled_caught
        assert taken
        assert not is_running(pids[0])
        assert (await read(extractor, b"two", "text")).texts == ["two"]


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
async def test_process_with_invalid_output_is_ended(lie: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MODULE", LIAR)
    async with running(file_seconds=2.0) as extractor:
        got = await read(extractor, b"x", "text", lie)
        assert got.told.state in (("failed", "cut") if lie != "a picture of rubbish" else ("whole",))
        assert got.told.state == "whole" or "the file reader sent" in got.told.reason
        with pytest.raises(DrawingFailed, match="the file reader sent an invalid answer"):
            await draw(extractor, b"x", 1, 100)
        monkeypatch.undo()
        await extractor.close()
        assert (await read(extractor, b"true", "text")).texts == ["true"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "seconds", "why"),
    [
        ("nothing", 0.05, "reading it took longer than 0.05 s"),
        ("busy", 0.05, "reading it took longer than 0.05 s"),
        ("leaves", 30.0, "the file reader crashed (status 3)"),
        ("hangs up", 30.0, "the file reader crashed (signal 9)"),
    ],
)
async def test_process_that_never_answers_is_ended(
    lie: str, seconds: float, why: str, monkeypatch: pytest.MonkeyPatch
):
    """behaviour 291: covers a process that works and a process that waits."""
    monkeypatch.setattr(module, "_MODULE", LIAR)
    async with running(file_seconds=seconds) as extractor:
        got = await read(extractor, b"x", "text", lie)
        assert (got.told.state, got.told.reason, got.told.digest) == ("failed", why, None)


@pytest.mark.slow
async def test_output_from_before_a_kill_is_kept():
    """behaviour 291"""
    taken: list[FilePart] = []
    async with running() as extractor:

        async def kill(parts: Sequence[FilePart]) -> None:
            if extractor._child is not None and not taken:
                os.kill(extractor._child.pid, signal.SIGKILL)
            taken.extend(parts)

        with TemporaryFile() as file:
            file.write(pdf(*("\n".join(["a long line of text"] * 50),) * 1_900))
            file.flush()
            told = await extractor.extract(file.fileno(), "pdf", "a", None, kill)
        assert (told.state, told.reason) == ("cut", "the file reader crashed (signal 9)")
        assert 0 < told.parts == len(taken) < 1_900
        assert [part.page for part in taken] == list(range(1, told.parts + 1))


@pytest.mark.slow
async def test_death_of_an_idle_process_does_not_affect_next_file():
    async with running() as extractor:
        for _ in range(3):
            assert (await read(extractor, b"one", "text")).texts == ["one"]
            assert extractor._child is not None
            os.kill(extractor._child.pid, signal.SIGKILL)
            os.waitid(os.P_PID, extractor._child.pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.slow
async def test_concurrent_callers_are_served_one_after_another():
    async with running() as extractor, trio.open_nursery() as nursery:

        async def one(number: int) -> None:
            assert (await read(extractor, pdf(f"page {number}"))).texts == [f"page {number}"]
            assert (await draw(extractor, pdf("x"), 1, 10)).startswith(b"\x89PNG")

        for number in range(10):
            nursery.start_soon(one, number)


PROGRAM = """
import os, tempfile, trio
from lithos.attachments.extraction.extractor import Extractor
from tests.attachments.extraction.test_extractor import SLOW_THIRD_PAGE
async def main():
    extractor = Extractor(page_seconds=600, file_seconds=600)
    async def take(parts): pass
    async def leave():
        while extractor._child is None or extractor._child.used() < 0.5:
            await trio.sleep(0.05)
        print(extractor._child.pid, flush=True)
        os._exit(0)
    with tempfile.TemporaryFile() as file:
        file.write(SLOW_THIRD_PAGE)
        file.flush()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave)
            await extractor.extract(file.fileno(), "pdf", "a", None, take)
trio.run(main)
"""


@pytest.mark.slow
@LINUX
async def test_reader_process_dies_with_its_server_at_any_time():
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    pid = int(told.stdout)
    assert pid > 1
    # The time limit for async tests ends this loop if necessary.
    while is_running(pid) and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        await trio.sleep(0.01)


@pytest.mark.slow
def test_reader_process_imports_few_modules():
    unwanted = {
        "numpy",
        "trio",
        "tantivy",
        "apsw",
        "asyncio",
        "logging",
        "ssl",
        "ctypes",
        "pypdfium2_raw",
        "PIL",
    }
    program = f"import sys, lithos.attachments.files.worker; print(*sorted({unwanted!r} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []
