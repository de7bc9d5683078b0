"""The release script `.ci/bundle.py` as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def load_bundle() -> Any:
    """Return the module. Python cannot import it from a folder that begins with a dot."""
    path = Path(__file__).parents[1] / ".ci" / "bundle.py"
    spec = importlib.util.spec_from_file_location("release_bundle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bundle = load_bundle()
