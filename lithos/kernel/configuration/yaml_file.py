"""YAML reader for settings files.

The reader limits the file size, the nesting, the length of numbers, and quotes in messages.

Duplicate keys are refused, because YAML would use only the last value. With a duplicate section, all settings
in the first section would be lost, possibly including a token.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError

from lithos.kernel.values.graphemes import beginning

#: Maximum size of a file in bytes.
LARGEST_FILE: Final = 1024 * 1024
#: Maximum length of a number in characters. Reading 1:59:59... with many sixties would take minutes, and the
#: result could not be printed.
_LONGEST_NUMBER: Final = 100
#: Maximum number of characters of a key or value in a message.
LONGEST_SHOWN: Final = 120
#: Tag of the key `<<`, which merges keys from other mappings.
_MERGE: Final = "tag:yaml.org,2002:merge"


class UnusableFile(Exception):
    """Error for a file that cannot be read.

    The message gives the reason and quotes no text that may be a secret.
    """


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses very long numbers."""


def _short_number(loader: _Loader, node: yaml.ScalarNode) -> object:
    if len(node.value) > _LONGEST_NUMBER:
        raise ConstructorError(None, None, "found a very long number", node.start_mark)
    is_whole = node.tag.endswith(":int")
    return loader.construct_yaml_int(node) if is_whole else loader.construct_yaml_float(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _short_number)


def shorten(text: str) -> str:
    """Return the beginning of a text for a message."""
    return text if len(text) <= LONGEST_SHOWN else beginning(text, LONGEST_SHOWN) + "..."


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file, or None if it is empty. Raises `UnusableFile`."""
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
        # The message omits the parser's message and excerpt, because both may quote a secret.
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
    """Raise `UnusableFile` if a mapping contains a key twice."""
    seen, waiting = set[int](), [("", root)]
    while waiting:
        where, node = waiting.pop()
        if id(node) in seen:  # The node is an alias.
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
            f"vaults in file {path} names {shorten(twice[0])!r} twice; give each vault a different name"
        )
    lines = [key.start_mark.line + 1 for key in keys if key.value == twice[0]]
    raise UnusableFile(
        f"file {path} gives {shorten(where + twice[0])} twice, on lines {lines[0]} and "
        f"{lines[1]}; keep only one of them"
    )


def _name(key: yaml.Node) -> str:
    return key.value if isinstance(key, yaml.ScalarNode) else "?"


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return ""
    what = f": {error.problem}" if isinstance(error, yaml.scanner.ScannerError) and error.problem else ""
    return f" at line {mark.line + 1}, column {mark.column + 1}{what}"
