"""Recordings of the whole output of the product.

Recordings from before and after a restructuring are compared byte for byte.

`python -m bench.golden record OUT --vault DIR` copies the vault, runs three servers on it with separate data
directories, runs every command, and writes `OUT/*.json`: sorted entries of requests and the text of their
answers. `python -m bench.golden compare A B` prints the entries that differ. It exits with 1 if there are
any. Two recordings of one commit have equal bytes, because `bench/golden_world.py` removes time and chance.
On a busy machine, commands that query a running server can take longer, which changes all later times and
nothing else. Record both revisions while no other work runs.

The product is used only from outside: `lithos.app.main` in this process, and HTTP and stdio connections to
the server that it starts. The same script can therefore record code whose modules have moved. It imports only
`lithos.app.main` and `docs.generate`.

Recordings mask these values: the temporary folder, the folder of the virtual environment, the server's port,
process ids, measured seconds and bytes of memory or disk (values of such metrics and of their histogram
buckets, all numbers on the console's system page), modification times of index files, and names of index
segments.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.golden_world import World

#: Environment variables of a recording. No other variables of this machine are passed on.
ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false", "LITHOS_LOG_LEVEL": "error", "LITHOS_SEARCH__TIER": "static",
    "LITHOS_SERVER__LEGACY_TOOLS": "true", "LITHOS_SERVER__ANSWERS": "full",
    "PYTHONWARNINGS": "ignore", "PYTHONFAULTHANDLER": "1",
}  # fmt: skip


def record(out: Path, vault: Path) -> None:
    """Run the whole script and write the recorded answers."""
    world = World()
    world.enter()
    from bench.golden_plays import play  # noqa: PLC0415 - they find the replaced modules
    from bench.golden_recording import Recording  # noqa: PLC0415

    root = Path(tempfile.mkdtemp(prefix="lithos-golden-"))
    os.environ["HOME"] = str(root / "home")
    try:
        (root / "home").mkdir()
        (root / "work").mkdir()
        os.chdir(root / "work")
        _copy(vault, root / "vault")
        recording = Recording(root, world)
        play(recording)
        recording.write(out)
        print(", ".join(f"{len(entries)} {name}" for name, entries in recording.sections.items()))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _copy(vault: Path, target: Path) -> None:
    """Copy a vault and give every file a fixed modification time."""
    shutil.copytree(vault, target)
    for number, path in enumerate(sorted(target.rglob("*"))):
        os.utime(path, (1_760_000_000 + number, 1_760_000_000 + number))


def compare(one: Path, other: Path) -> int:
    """Print the entries that differ. Return 1 if there are any, otherwise 0."""
    names = sorted({path.name for folder in (one, other) for path in folder.glob("*.json")})
    different = 0
    for name in names:
        first, second = (
            json.loads(path.read_text()) if (path := folder / name).exists() else {}
            for folder in (one, other)
        )
        for entry in sorted({*first, *second}):
            if first.get(entry) == second.get(entry):
                continue
            different += 1
            print(f"=== {name}: {entry[:300]}")
            before, after = (_in_lines(side.get(entry, "(missing)")) for side in (first, second))
            for line in list(difflib.unified_diff(before, after, str(one), str(other), lineterm="", n=1))[
                2:40
            ]:
                print(line[:500])
    print(f"{different} entries differ" if different else "nothing differs")
    return int(bool(different))


def _in_lines(text: str) -> list[str]:
    """Split a text into lines. JSON is split so that each value is on its own line."""
    return re.sub(r'(?<=[\]}"\d])(,)(?=["{\[])', r"\1\n", text).split("\n")


def main() -> None:
    """Run the `record` or `compare` command."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--vault", type=Path, required=True)
    comparing = actions.add_parser("compare")
    comparing.add_argument("one", type=Path)
    comparing.add_argument("other", type=Path)
    options = parser.parse_args()
    if options.action == "compare":
        raise SystemExit(compare(options.one, options.other))
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        paths = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
        environment = {**kept, **ENVIRONMENT, "PYTHONPATH": paths}
        os.execve(sys.executable, [sys.executable, "-m", "bench.golden", *sys.argv[1:]], environment)
    record(options.out.resolve(), options.vault.resolve())


if __name__ == "__main__":
    main()
