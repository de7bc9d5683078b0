"""Reading of a YAML file of settings, with limits for size, nesting, numbers and quotes in messages.

A key that is given twice is refused: YAML would keep only the last one. With a duplicate section all
values under the first would be lost, possibly a token.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

#: Bytes of a file.
LARGEST_FILE: Final = 1024 * 1024
#: Characters of a number: 1:59:59... with many sixties takes minutes to read, and cannot be shown.
_LONGEST_NUMBER: Final = 100
#: Characters of a key or value in a message.
LONGEST_SHOWN: Final = 120
#: The tag of the key `<<`, which brings the keys of other mappings in.
_MERGE: Final = "tag:yaml.org,2002:merge"


class UnusableFile(Exception):
    """The file cannot be read; the message gives the reason, and quotes nothing that may be a secret."""


class _Loader(yaml.SafeLoader):
    """Refuses very long numbers."""


def _short_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    if len(node.value) > _LONGEST_NUMBER:
        raise ConstructorError(None, None, "found a very long number", node.start_mark)
    is_whole = node.tag.endswith(":int")
    return loader.construct_yaml_int(node) if is_whole else loader.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _short_number)


def shorten(text: str) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def read_yaml(path: Path) -> Any:
    """The content of a YAML file; None for an empty one. Raises `UnusableFile`."""
    loader: _Loader | None = None
    try:
        loader = _Loader(_read_text(path))
        root = loader.get_single_node()
        if root is None:
            return None
        _refuse_doubles(root, path)
        return loader.construct_document(root)
    except OSError as error:
        raise UnusableFile(f"file {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnusableFile(f"file {path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Neither the parser's excerpt nor its message: both may quote a secret.
        raise UnusableFile(
            f"file {path} is not valid YAML{_place(error)}; check the lines around it"
        ) from None
    finally:
        if loader is not None:
            loader.dispose()


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise UnusableFile(
            f"file {path} has more than {LARGEST_FILE:,} bytes, which no configuration needs; "
            "give the YAML file that has the settings"
        )
    return content.decode("utf-8-sig")


def _refuse_doubles(root: yaml.Node, path: Path) -> None:
    """Raise `UnusableFile` for a key that a mapping has twice."""
    seen, waiting = set[int](), [("", root)]
    while waiting:
        where, node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _refuse_twice(where, node, path)
            waiting += [(shorten(f"{where}{_name(key)}."), value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(where, each) for each in node.value]


def _refuse_twice(where: str, node: yaml.MappingNode, path: Path) -> None:
    keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
    counts = Counter(key.value for key in keys)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if not twice:
        return
    if where == "vaults.":
        raise UnusableFile(
            f"vaults in file {path} names {shorten(twice[0])!r} twice; give each vault a name of its own"
        )
    lines = [key.start_mark.line + 1 for key in keys if key.value == twice[0]]
    raise UnusableFile(
        f"file {path} gives {shorten(where + twice[0])} twice, on lines {lines[0]} and {lines[1]}; "
        "keep one of them, with all that belongs to it"
    )


def _name(key: yaml.Node) -> str:
    return key.value if isinstance(key, yaml.ScalarNode) else "?"


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ""
    what = f": {error.problem}" if isinstance(error, yaml.scanner.ScannerError) and error.problem else ""
    return f" at line {mark.line + 1}, column {mark.column + 1}{what}"
