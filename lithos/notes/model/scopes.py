"""Write scopes: the paths that an agent may change, and the paths where its changes need approval.

See docs/spec/scopes.md §1. A scope has two lists of globs over paths in the vault. In a glob, `*` and `?`
match within one name, and `**` as a whole part spans folders. A glob that ends with `/` covers everything
below that folder, and a glob that begins with `!` excludes paths. The last matching glob of a list decides.
Paths are compared case-sensitively after Unicode normalisation (NFC).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias
from unicodedata import normalize

from attrs import field, frozen

from lithos.kernel.values.errors import Forbidden
from lithos.kernel.values.principals import ANYONE, OWNER, Principal, fold_name, is_reserved

#: Maximum number of globs in one list, and of characters in one glob.
MOST_GLOBS: Final = 100
LONGEST_GLOB: Final = 500

#: Access of a caller to a path: it may change the path, only propose changes, or neither.
PathAccess = Literal["write", "propose", "outside", "protected"]
EVERYTHING: Final = ("**",)
#: Suffix of every note path.
_NOTE: Final = ".md"


@frozen
class Scope:
    """The paths that one token or agent may change. By default, it may change every path."""

    write: tuple[str, ...] = EVERYTHING
    propose: tuple[str, ...] = ()

    def place_of(self, path: str) -> PathAccess:
        """Return the access to the path of a note in this scope."""
        if covers(self.write, path):
            return "write"
        return "propose" if covers(self.propose, path) else "outside"

    def __str__(self) -> str:
        parts = [f"{name} {' '.join(globs)}" for name, globs in self.lists if globs]
        return "; ".join(parts) or "write nothing"

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return both lists with their names."""
        return ("write", self.write), ("propose", self.propose)


def make_scope(write: Sequence[str] | None, propose: Sequence[str] | None) -> Scope | None:
    """Return the scope with the given globs, or None (no limits) if neither list is given.

    An agent with only a `propose` list changes nothing directly. Raises `ValueError` for invalid globs.
    """
    if write is None and propose is None:
        return None
    return Scope(check_globs(write or ()), check_globs(propose or ()))


def check_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """Return the normalised globs. Raises `ValueError` with the invalid glob and the reason."""
    if len(globs) > MOST_GLOBS:
        raise ValueError(f"a list has at most {MOST_GLOBS} patterns, not {len(globs)}")
    checked = tuple(normalize("NFC", glob.strip()) for glob in globs)
    for glob in checked:
        reason = _problem_of(glob.removeprefix("!"))
        if reason is not None:
            raise ValueError(f"the pattern {glob[:80]!r} {reason}")
    if checked and checked[0].startswith("!"):
        raise ValueError(
            f"the pattern {checked[0][:80]!r} comes first, so it excludes nothing; begin with a "
            "pattern that includes, such as **"
        )
    return checked


def check_typed(globs: Sequence[str]) -> tuple[str, ...]:
    """Return globs that a person typed, like `check_globs`, but refuse globs that can match no note.

    For example, a folder name without `/` matches no note, so it would protect or allow nothing. Raises
    `ValueError`.
    """
    checked = check_globs(globs)
    for glob in checked:
        last = glob.removeprefix("!").rpartition("/")[2]
        if last and not last.endswith(_NOTE) and not any(sign in last for sign in "*?"):
            raise ValueError(
                f"the pattern {glob[:80]!r} matches no note, because note paths end in {_NOTE}; "
                f"for everything below a folder write {f'{glob[:80]}/'!r}"
            )
    return checked


def scopes_of_agents(given: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Scope]:
    """Return the scopes in section `agents` of the configuration, by agent name and by folded name.

    Raises `ValueError` for an invalid pattern. The message begins with the key, such as `agents.ann.write`.
    """
    scopes: dict[str, Scope] = {}
    for agent, lists in given.items():
        checked = {name: typed_under(f"agents.{agent}.{name}", globs) for name, globs in lists.items()}
        scope = make_scope(checked.get("write"), checked.get("propose"))
        if scope is not None:
            scopes[normalize("NFC", agent)] = scope
    for agent, scope in list(scopes.items()):
        scopes.setdefault(fold_name(agent), scope)
    return scopes


def typed_under(key: str, globs: Sequence[str]) -> tuple[str, ...]:
    """Return `check_typed` for a setting. A `ValueError` message begins with its `key`."""
    try:
        return check_typed(globs)
    except ValueError as problem:
        raise ValueError(f"{key}: {problem}") from None


def chosen_scope(write: Sequence[str], propose: Sequence[str]) -> Scope | None:
    """Return the scope that a person entered in a form. An empty `write` list means everywhere.

    Paths in `propose` are excluded from `write`, so changes there wait for approval. Return None if both
    lists are empty. Raises `ValueError` like `check_typed`.
    """
    if not (write or propose):
        return None
    waiting = check_typed(propose)
    return Scope(check_globs((*(check_typed(write) or EVERYTHING), *map(_turned, waiting))), waiting)


def _turned(glob: str) -> str:
    """Return the pattern with the opposite effect."""
    return glob.removeprefix("!") if glob.startswith("!") else f"!{glob}"


def _problem_of(glob: str) -> str | None:
    if not glob:
        return "is empty"
    if len(glob) > LONGEST_GLOB:
        return f"has more than {LONGEST_GLOB} characters"
    if not glob.isprintable():
        return "has characters that cannot be printed"
    if glob.startswith("/") or "//" in glob or any(part in (".", "..") for part in glob.split("/")):
        return "is not a path in the vault: remove a leading / and all parts that are empty, . or .."
    return None


def covers(globs: Sequence[str], path: str) -> bool:
    """Return whether a list of globs covers a path. The last matching glob decides."""
    names = normalize("NFC", path).split("/")
    for glob in reversed(globs):
        if _matches(glob.removeprefix("!"), names):
            return not glob.startswith("!")
    return False


def _matches(glob: str, names: Sequence[str]) -> bool:
    """Return whether a glob matches a whole path. The time is proportional to the product of both lengths."""
    parts = glob.split("/")
    if parts[-1] == "":
        parts[-1] = "**"
        if len(names) < len(parts):
            return False
    return _match(parts, names, "**", _name_matches)


def _name_matches(pattern: str, name: str) -> bool:
    return _match(pattern, name, "*", lambda sign, character: sign in ("?", character))


def _match(
    pattern: Sequence[str], text: Sequence[str], star: str, is_one: Callable[[str, str], bool]
) -> bool:
    """Return whether a sequence matches a pattern in which `star` matches any number of items.

    Only the last star is tried again, because the matches of earlier stars need never change.
    """
    at = place = 0
    back, taken = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == star:
            back, taken = place, at
            place += 1
        elif place < len(pattern) and is_one(pattern[place], text[at]):
            place, at = place + 1, at + 1
        elif back >= 0:
            taken += 1
            place, at = back + 1, taken
        else:
            return False
    return all(each == star for each in pattern[place:])


#: Returns the current scope of a named token, or None if it has no scope.
ScopeOfToken: TypeAlias = Callable[[Principal], Scope | None]


@frozen
class WriteScopes:
    """Access to paths, from the scopes of tokens, the scopes of agent names, and the protected paths.

    `of_token` returns the current scope of a named token, or None if it has no scope.
    """

    protected: tuple[str, ...] = ()
    agents: Mapping[str, Scope] = field(factory=dict)
    of_token: ScopeOfToken = lambda _: None

    def place_of(self, by: Principal | None, agent: str, path: str) -> PathAccess:
        """Return the access of a caller under an agent name to a path.

        With `by` None, Lithos itself is the caller.
        """
        if self.protected and covers(self.protected, path) and not is_person(by, agent):
            return "protected"
        scope = self.scope_of(by, agent)
        return "write" if scope is None else scope.place_of(path)

    def limits(self, by: Principal | None, agent: str) -> bool:
        """Return whether there are paths that this caller may not change directly."""
        return bool(self.protected) or self.scope_of(by, agent) is not None

    def scope_of(self, by: Principal | None, agent: str) -> Scope | None:
        """Return the scope of the token, or else of the agent name. None means no limits."""
        own = None if by is None else self.of_token(by)
        if own is not None:
            return own
        if by is not None and by.is_person:
            return None
        if not self.agents:
            return None
        # `Junior`, or a name with an invisible character, is treated as `junior` and gets no wider access.
        return self.agents.get(agent) or self.agents.get(fold_name(agent))


def is_person(by: Principal | None, agent: str) -> bool:
    """Return whether a person makes the change.

    A person uses the console, a command without an agent name, or an `admin` token that is not bound to an
    agent.
    """
    if by is None or by.agent is not None or not by.may("admin"):
        return False
    if by.is_own:
        return by.is_person or is_reserved(agent)
    return by not in (OWNER, ANYONE)


def refusal_of(place: PathAccess, path: str, agent: str, scope: Scope | None) -> Forbidden:
    """Return the refusal for a path that the caller may not change.

    The refusal names the path and the scope.
    """
    shown = path[:300]
    if place == "protected":
        return Forbidden(
            f"{shown} is protected (storage.protected): only people can change it, in an editor or in "
            "the console. Nothing was changed. Ask a person to make the change, or write a new note in "
            "another place.",
            path=path,
            scope="protected",
        )
    return Forbidden(
        f"{shown} is outside of what {agent[:60]} may change ({scope}). Nothing was changed. "
        "Write to a path in this scope, or ask a person to widen the scope.",
        path=path,
        scope=str(scope),
    )
