"""Trio runner for tests. It runs each `async def test_…` with `trio.run`.

Mark a test `autojump` to run it on a clock that jumps over sleeps. Every async test has a deadline: a hang
becomes a failure with a traceback and does not block the test run. If a fixture returns an async context
manager, it is entered in the same `trio.run` as the test.

Test files are kept in memory if there is enough space, because most tests would otherwise mostly wait for
disk syncs. Mark tests that kill processes at random times with `disk`. Processes are then also killed during
syncs.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import logging
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from trio.testing import MockClock

import lithos.app.capabilities
from lithos.kernel.log import NOISY
from tests.kernel.actors.watched import WatchedHouse
from tests.servers import Clock, Lithos, serving

#: Deadline of an async test in seconds. It is longer than any wait in a test, because a failed wait has the
#: better error message.
DEADLINE = 300.0
#: Folder of test files. `.ci/run` sets it to a separate folder and removes this folder.
MEMORY = Path(os.environ.get("TESTS_MEMORY", "/dev/shm"))
#: Minimum free memory in bytes. All tests together use less than a third of it at one time.
ROOM = 4 << 30
#: Expected seconds of a slow test that has no mark `takes`.
USUAL = 4.0
#: The gate tries the same examples of every property each time, so a commit always gets the same result.
#: Other test runs try different examples.
_COMMON = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("fast", _COMMON, max_examples=15)
settings.register_profile("gate", _COMMON, derandomize=True)
settings.register_profile("nightly", _COMMON, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Bytecode is always stored, whatever the environment says. Otherwise each program that a test starts would be
# compiled again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: With glibc, test workers keep freed memory for the next server. Otherwise the memory would be returned to
#: the system and requested again, which takes a sixth of a server's time. Programs that the workers start do
#: not keep freed memory.
KEPT_MEMORY = {"MMAP_THRESHOLD_": 32 << 20, "TRIM_THRESHOLD_": 256 << 20, "TOP_PAD_": 32 << 20}
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in KEPT_MEMORY:
        os.environ.pop(f"MALLOC_{_name}", None)

#: Garbage collector functions that servers call. Tests replace them unless they use `frozen_by_servers`.
FREEZING = {"freeze": gc.freeze, "unfreeze": gc.unfreeze}

#: Commands that tests run in this process do not load the accurate tier. Tests of that tier select it.
os.environ.setdefault("LITHOS_SEARCH__TIER", "static")

#: The multilingual model is imported from the tree. A source distribution of Lithos does not contain it.
sys.path.append(str(Path(__file__).parent.parent / "models" / "accurate-multi"))
HAS_MULTILINGUAL = find_spec("lithos_accurate_multi") is not None and find_spec("onnxruntime") is not None

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processors plus one, because tests wait for a third of their time."""
    return (os.cpu_count() or 1) + 1


def pytest_xdist_setupnodes() -> None:
    os.environ.update({f"MALLOC_{name}": str(size) for name, size in KEPT_MEMORY.items()})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "disk: the test's folder is on a disk, not in memory")
    config.addinivalue_line("markers", "takes(seconds): about how long; files that take longest begin first")
    config.addinivalue_line("markers", "autojump: run this async test on an autojumping mock clock")
    config.addinivalue_line("markers", "needs(packages): leaves without which there is nothing to test")
    config.addinivalue_line(
        "markers", "multilingual: needs the model in models/accurate-multi and onnxruntime"
    )
    config.addinivalue_line("markers", "deadline(seconds): allow this async test more time than usual")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker compile a part of the test files if a fresh clone has no bytecode.

    All workers import the same circular list of files, but each starts at another position. The first worker
    that imports a file stores its bytecode for the others.
    """
    gc.disable()  # imported and collected objects are not garbage
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    of = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if of > 1 and session.config.args == session.config.getini("testpaths"):
        root = session.config.rootpath
        names = [
            ".".join(path.relative_to(root).with_suffix("").parts) for path in root.glob("tests/**/test_*.py")
        ]
        names.sort()
        begin = len(names) * worker // of
        for name in names[begin:] + names[:begin]:
            with suppress(Exception, pytest.skip.Exception):  # the file's collection will report the error
                importlib.import_module(name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that no worker has to start a slow file at the end.

    With `--no-loadscope-reorder`, xdist distributes the files in this order.
    """
    seconds: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("slow"):
            marked = item.get_closest_marker("takes")
            seconds[item.path] += marked.args[0] if marked else USUAL
    items.sort(key=lambda item: -seconds[item.path])
    gc.freeze()  # imported objects stay in memory, and every later collection would scan them all
    gc.enable()
    for name in FREEZING:  # a server that stops would unfreeze these objects
        setattr(gc, name, lambda: None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test with the mark `needs` or `multilingual` if a package that it needs is missing."""
    if item.get_closest_marker("multilingual") and not HAS_MULTILINGUAL:
        pytest.skip("there is no lithos_accurate_multi, or no onnxruntime")
    for mark in item.iter_markers("needs"):
        if gone := [name for name in mark.args if find_spec(f"lithos.{name}") is None]:
            pytest.skip(f"there is no lithos.{gone[0]}")


@pytest.fixture
def frozen_by_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let servers freeze and unfreeze objects in the garbage collector, as they do outside tests."""
    for name, function in FREEZING.items():
        monkeypatch.setattr(gc, name, function)
    yield
    FREEZING["freeze"]()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return pytest's folder. For tests with the mark `disk`, return a folder on a disk."""
    if request.node.get_closest_marker("disk") is None:
        yield tmp_path
    else:
        with TemporaryDirectory(prefix="lithos-test-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lithos(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[Lithos]:
    """Return a server for one test.

    If the test also requests the fixture `clock`, the server uses this clock.
    """
    if "clock" in request.fixturenames:
        return serving(tmp_path, clock=request.getfixturevalue("clock"))
    return serving(tmp_path)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[WatchedHouse]:
    """Yield the catalogue, writer and watcher of one folder. The test controls them."""
    house = WatchedHouse(tmp_path)
    house.settle(house.scan())
    yield house
    house.close()


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Restore the logging settings after a test. Commands that run in this process change them."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in NOISY}
    interval = sys.getswitchinterval()
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    for name, before in {"": level, **levels}.items():
        if (logger := logging.getLogger(name)).level != before:  # a new level clears every logger's cache
            logger.setLevel(before)
    sys.setswitchinterval(interval)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    arguments: dict[str, Any] = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters
    }
    marked = pyfuncitem.get_closest_marker("deadline")
    seconds = max(DEADLINE, marked.args[0] if marked else 0.0)
    autojump = pyfuncitem.get_closest_marker("autojump") is not None

    async def bounded() -> None:
        with trio.fail_after(1e9 if autojump else seconds):
            async with AsyncExitStack() as stack:
                for name, given in arguments.items():
                    if isinstance(given, AbstractAsyncContextManager):
                        arguments[name] = await stack.enter_async_context(given)
                await function(**arguments)

    trio.run(bounded, clock=MockClock(autojump_threshold=0) if autojump else None)
    return True
