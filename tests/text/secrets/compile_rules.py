"""Compile the rules of Betterleaks (MIT licence) into `lithos/text/secrets/rules.json`.

`python -m tests.text.secrets.compile_rules betterleaks.toml VERSION` reads the file that the program
`betterleaks` embeds. Only rules for keys with a fixed beginning are taken: such a key is recognised without
the words around it, and a scan finds its beginning fast. A key without a fixed beginning is found by the name
in front of it (`assignments.py`).

The pattern of a rule is written for Go. It is translated, and what it demands of the neighbours of a key is
left out, because `rules.py` demands it for all keys.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

# The standard library has no public parser of patterns. This module runs only by hand.
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

#: Words in the ids of rules for values that are not secret, such as addresses and public keys.
_PUBLIC: Final = re.compile(
    r"(?:^|-)(?:url|host|name|id|username|user|domain|public|client-sdk-key|file|uri|connection-string|jwt"
    r"|private-key|short-lived)(?:-|\.|$)(?!token)"
)
#: Rules that are left out: their beginnings are those of ordinary names, or their shapes those of hashes.
_LEFT_OUT: Final = frozenset(
    {
        "brave-search-api-key", "clickhouse-cloud-api-secret-key", "exoscale-api-key", "lark-app-id",
        "square-access-token", "twilio-api-key", "artifactory-reference-token", "octopus-deploy-api-key",
        "proof-full-access-api-key", "lichess-personal-access-token", "gitlab-session-cookie",
        "miro-access-token", "grafana-api-key", "thunderstore-api-token.1", "flutterwave-encryption-key",
        "anthropic-api-key", "anthropic-admin-api-key", "openai-api-key", "huggingface-access-token",
        "huggingface-organization-api-token", "jwt",
    }
)  # fmt: skip
#: Fewest characters of a fixed beginning.
_LEAST: Final = 3
#: Most beginnings of one rule.
_MOST: Final = 12
#: End of a Go pattern that demands a quote, a blank or the end of the text after a key.
_ENDS: Final = (
    r"""(?:\\?['"\x60]|[\s;]|\\[nr]|$)""", r"(?:$|[^A-Za-z0-9_-])", r"(?:[^\w-]|\z)", r"(?:[^\w\/+=-]|\z)",
    r"(?:[\x60'\"\s;]|\\[nr]|$|\b)", r"(?:[^a-zA-Z0-9+/]|\z)", r"(?:[^A-Za-z0-9_-]|$)", r"\b",
)  # fmt: skip
_BEGINS: Final = (r"(?:^|[^A-Za-z0-9_-])", r"\b")
#: Quantifiers without an upper limit.
_ENDLESS: Final = re.compile(r"(?:(?<=[\])])|(?<=\\[dw]))[+*]")
_FLAG: Final = "(?i)"
#: Part of a pattern for the words in front of a key. The name in front of a key is read by `assignments.py`.
_CONTEXT: Final = re.compile(r"\\w\.-\]\{0,20\}|\{0,(?:16|32)\}\?|^curl")
_OPENING: Final = re.compile(r"\((?!\?)|\(\?P<\w+>")


def compiled(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rules in the form of `rules.json`."""
    for rule in given["rules"]:
        if rule["confidence"] != "high" or rule["id"] in _LEFT_OUT or _PUBLIC.search(rule["id"]):
            continue
        pattern = translated(rule.get("regex", ""))
        if _CONTEXT.search(pattern):
            continue
        starts = beginnings(pattern)
        if not starts or _is_short(starts):
            continue
        entropy = re.search(r'entropy\(finding\["secret"\]\) <=? ([\d.]+)', rule.get("filter", ""))
        yield {
            "id": rule["id"],
            "kind": kind_of(rule["id"]),
            "starts": sorted(starts),
            "pattern": pattern,
            "entropy": float(entropy[1]) if entropy else 0.0,
        }


def _is_short(starts: set[str]) -> bool:
    """Return whether beginnings are too short, above all if they consist of letters alone."""
    shortest = min(map(len, starts))
    return shortest < _LEAST or (shortest <= _LEAST and all(map(str.isalpha, starts)))


def kind_of(name: str) -> str:
    """Return the name of a kind of secret for people, such as `github token`."""
    words = re.sub(r"\.\d+$", "", name).split("-")
    return " ".join("token" if word == "pat" else word for word in words)


def translated(pattern: str) -> str:
    """Return a Go pattern as a Python pattern, without its demands on the neighbours of a key."""
    changed = True
    while changed:
        changed = False
        for end in _ENDS:
            if pattern.endswith(end) and pattern != end:
                pattern, changed = pattern.removesuffix(end), True
        for begin in _BEGINS:
            for flag in ("", _FLAG):
                if pattern.startswith(flag + begin):
                    pattern, changed = flag + pattern.removeprefix(flag + begin), True
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z").replace(r"\x60", "`")
    pattern = _OPENING.sub("(?:", pattern)
    pattern = re.sub(r"\{(\d+),\}", lambda found: f"{{{found[1]},{int(found[1]) + 900}}}", _scoped(pattern))
    return _ENDLESS.sub(lambda found: "{1,200}" if found[0] == "+" else "{0,200}", pattern)


def _scoped(pattern: str) -> str:
    """Return the pattern with each flag `(?i)` limited to the rest of its group, as in Go."""
    at = pattern.find(_FLAG)
    while at >= 0:
        depth, end = 0, at + len(_FLAG)
        while end < len(pattern) and depth >= 0:
            depth += {"(": 1, ")": -1}.get(pattern[end], 0) if pattern[end - 1] != "\\" else 0
            end += depth >= 0
        inner = pattern[at + len(_FLAG) : end]
        pattern = f"{pattern[:at]}(?i:{inner}){pattern[end:]}"
        at = pattern.find(_FLAG)
    return pattern


def beginnings(pattern: str) -> set[str]:
    """Return the fixed beginnings of all texts that a pattern matches, as the pattern spells them."""
    try:
        found, _ = _expand(list(parser.parse(pattern)))
    except (re.error, OverflowError):
        return set()
    return found if len(found) <= _MOST else set()


def _expand(tokens: list[Any]) -> tuple[set[str], bool]:
    """Return the beginnings of a sequence, and whether the whole sequence is fixed."""
    done = {""}
    for code, value in tokens:
        if code is opcodes.LITERAL:
            options, is_fixed = {chr(value)}, True
        elif code is opcodes.IN and all(c is opcodes.LITERAL for c, _ in value) and len(value) <= _MOST:
            options, is_fixed = {chr(v) for _, v in value}, True
        elif code is opcodes.SUBPATTERN:
            options, is_fixed = _expand(list(value[3]))
        elif code is opcodes.BRANCH:
            parts = [_expand(list(each)) for each in value[1]]
            options, is_fixed = {text for each, _ in parts for text in each}, all(f for _, f in parts)
        else:
            return done, False
        if len(done) * len(options) > _MOST:
            return done, False
        done = {begin + option for begin in done for option in options}
        if not is_fixed:
            return done, False
    return done, True


def main(source: str, version: str) -> None:
    """Write `rules.json`."""
    rules = list(compiled(tomllib.loads(Path(source).read_text(encoding="utf-8"))))
    told = {
        "source": "Betterleaks (github.com/betterleaks/betterleaks), its embedded rules, compiled by "
        "tests/text/secrets/compile_rules.py",
        "version": version,
        "licence": "MIT, see the file LICENSE next to this file",
    }
    target = Path(__file__).parents[3] / "lithos" / "text" / "secrets" / "rules.json"
    lines = ",\n".join(f"    {json.dumps(rule)}" for rule in rules)
    head = json.dumps(told, indent=2).removesuffix("\n}")
    target.write_text(f'{head},\n  "rules": [\n{lines}\n  ]\n}}\n', encoding="utf-8")
    sys.stdout.write(f"{len(rules)} rules, {target.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
