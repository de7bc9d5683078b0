"""The release scripts of `.ci/` as modules."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

# Python cannot import a package whose name begins with a dot. As the last folder, it hides no other module.
sys.path.append(str(Path(__file__).parents[1] / ".ci"))
plugins, bundle, release, try_wheel = map(import_module, ("plugins", "bundle", "release", "try_wheel"))
names = import_module("names").NAMES
