"""Printing: one JSON document, or text for a person."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    """One JSON document on one line of stdout."""
    json.dump(document, sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_pairs(title: str, pairs: dict[str, Any]) -> None:
    """A heading and aligned values."""
    print(title)
    width = max(map(len, pairs), default=0) + 1
    for name, value in pairs.items():
        print(f"  {name + ':':<{width}} {value}")
