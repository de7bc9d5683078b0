"""Microseconds to find a token among many: the right one, a wrong one, and none at all, in turn.

Run as `python -m bench.tokens [--tokens 1000]`; prints one JSON line. No server is started: this is what
looking for the token adds to each request.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from lithos.services.keyring import TokenRing
from lithos.stores.tokens import Token, digest_of

#: Looks in one round.
LOOKS = 2_000


def measure(act: Callable[[], object]) -> float:
    """Microseconds of one call, over a round of them."""
    began = time.perf_counter()
    for _ in range(LOOKS):
        act()
    return (time.perf_counter() - began) / LOOKS * 1e6


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    now = datetime.now(UTC)
    secrets = [os.urandom(32).hex().encode() for _ in range(options.tokens)]
    with tempfile.TemporaryDirectory() as folder:
        ring = TokenRing(Path(folder), lambda: datetime.now(UTC), "configured")
        ring._tokens = tuple(
            Token(f"t{number}", digest_of(secret), "read", None, now, None)
            for number, secret in enumerate(secrets)
        )
        ring._arrange()
        kinds = {"first": secrets[0], "last": secrets[-1], "configured": b"configured", "wrong": b"x" * 50}
        rounds: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, secret in kinds.items():
                rounds[kind].append(measure(lambda secret=secret: ring.find(secret)))
    figures = {kind: round(median(times), 2) for kind, times in rounds.items()}
    print(json.dumps({"tokens": options.tokens, "microseconds": figures, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
