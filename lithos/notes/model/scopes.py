"""Write scopes: which paths of the vault an agent may change, and where its changes wait for a person.

docs/spec/scopes.md §1. A scope is two lists of globs over paths in the vault. In a glob `*` and `?` stay
within one name, `**` as a whole part spans folders, a glob that ends with `/` means all below that folder,
and one that begins with `!` excludes. Of a list the last glob that matches decides; paths are compared
case-sensitively, after Unicode normalisation (NFC).
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

#: Access of a caller to a path: changes are made at once, kept as a proposal, or refused.
PathAccess = Literal["write", "propose", "outside", "protected"]
EVERYTHING: Final = ("**",)
#: How the path of every note ends.
_NOTE: Final = ".md"


@frozen
class Scope:
    """The paths that one token or agent may change; the default may change everything."""

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
        """Both lists with their names."""
        return ("write", self.write), ("propose", self.propose)


def make_scope(write: Sequence[str] | None, propose: Sequence[str] | None) -> Scope | None:
    """Return the scope with the given globs; None if neither is given, which limits nothing.

    An agent that may only propose makes no change at once. Raises `ValueError` for globs that cannot be used.
    """
    if write is None and propose is None:
        return None
    return Scope(check_globs(write or ()), check_globs(propose or ()))


def check_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """Return the globs, normalised. Raises `ValueError`, which says which one cannot be used and why."""
    if len(globs) > MOST_GLOBS:
        raise ValueError(f"a list has at most {MOST_GLOBS} patterns, not {len(globs)}")
    checked = tuple(normalize("NFC", glob.strip()) for glob in globs)
    for glob in checked:
        reason = _problem_of(glob.removeprefix("!"))
        if reason is not None:
            raise ValueError(f"the pattern {glob[:80]!r} {reason}")
    if checked and checked[0].startswith("!"):
        raise ValueError(
            f"the pattern {checked[0][:80]!r} comes first, so it takes nothing away; begin with what is "
            "meant, such as **"
        )
    return checked


def check_typed(globs: Sequence[str]) -> tuple[str, ...]:
    """Return the globs that a person typed, like `check_globs`, but refuse globs that can match no note.

    A folder's name alone would match nothing, and so protect or allow nothing. Raises `ValueError`.
    """
    checked = check_globs(globs)
    for glob in checked:
        last = glob.removeprefix("!").rpartition("/")[2]
        if last and not last.endswith(_NOTE) and not any(sign in last for sign in "*?"):
            raise ValueError(
                f"the pattern {glob[:80]!r} matches no note, whose path ends in {_NOTE}; for all below a "
                f"folder give {f'{glob[:80]}/'!r}"
            )
    return checked


def scopes_of_agents(given: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, Scope]:
    """Return the scopes of section `agents` of the configuration, by the agents' names and by those folded.

    Raises `ValueError` for a pattern that cannot be used; it begins with the key, such as `agents.ann.write`.
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
    """Return `check_typed` of a setting, whose key begins the message of the `ValueError`."""
    try:
        return check_typed(globs)
    except ValueError as problem:
        raise ValueError(f"{key}: {problem}") from None


def chosen_scope(write: Sequence[str], propose: Sequence[str]) -> Scope | None:
    """Return the scope of what a person chose in a form: writes there, or everywhere, but where changes wait.

    None where neither was given. Raises `ValueError` as `check_typed`.
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
        return "is not a path in the vault: leave out a leading / and all parts that are empty, . or .."
    return None


def covers(globs: Sequence[str], path: str) -> bool:
    """Return whether a list of globs covers a path: the last one that matches decides."""
    names = normalize("NFC", path).split("/")
    for glob in reversed(globs):
        if _matches(glob.removeprefix("!"), names):
            return not glob.startswith("!")
    return False


def _matches(glob: str, names: Sequence[str]) -> bool:
    """Return whether a glob matches the whole of a path; takes time in proportion to the product of both
    lengths.
    """
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
    """Match a sequence against a pattern in which `star` matches any number of items.

    Backtracking is to the last star alone, since the matches of earlier ones need never change.
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


#: Returns the current scope of a named token, None if it has no scope.
ScopeOfToken: TypeAlias = Callable[[Principal], Scope | None]


@frozen
class WriteScopes:
    """Access to paths: the scopes of tokens, of agents by the name they give, and paths that only people
    change.

    `of_token` returns the current scope of a named token, None if it has no scope.
    """

    protected: tuple[str, ...] = ()
    agents: Mapping[str, Scope] = field(factory=dict)
    of_token: ScopeOfToken = lambda _: None

    def place_of(self, by: Principal | None, agent: str, path: str) -> PathAccess:
        """Return the access to a path for a caller under an agent's name; `by` None is Lithos's own work."""
        if self.protected and covers(self.protected, path) and not is_person(by, agent):
            return "protected"
        scope = self.scope_of(by, agent)
        return "write" if scope is None else scope.place_of(path)

    def limits(self, by: Principal | None, agent: str) -> bool:
        """Return whether this caller may not change some path at once."""
        return bool(self.protected) or self.scope_of(by, agent) is not None

    def scope_of(self, by: Principal | None, agent: str) -> Scope | None:
        """The scope that counts: the token's own, else that of the agent's name; None limits nothing."""
        own = None if by is None else self.of_token(by)
        if own is not None:
            return own
        if by is not None and by.is_person:
            return None
        if not self.agents:
            return None
        # `Junior` and one with an invisible character read as `junior`, and may not change more.
        return self.agents.get(agent) or self.agents.get(fold_name(agent))


def is_person(by: Principal | None, agent: str) -> bool:
    """Return whether a person changes something: at the console, by a command under no agent's name, or with
    an `admin` token that is bound to no agent.
    """
    if by is None or by.agent is not None or not by.may("admin"):
        return False
    if by.is_own:
        return by.is_person or is_reserved(agent)
    return by not in (OWNER, ANYONE)


def refusal_of(place: PathAccess, path: str, agent: str, scope: Scope | None) -> Forbidden:
    """Return the refusal for a path that the caller may not change; it names the path and the scope."""
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
        f"{shown} is outside of what {agent[:60]} may change ({scope}). Nothing was changed; write where the "
        "scope allows it, or ask a person to widen it.",
        path=path,
        scope=str(scope),
    )
