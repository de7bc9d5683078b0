"""Write scopes: the paths that an agent may change, and the paths where changes need approval.

See docs/spec/scopes.md §1. A scope has two lists of globs for paths in the vault. In a glob, `*` and `?`
match within one name, and a part that is `**` spans folders. A glob that ends with `/` covers everything
below that folder. A glob that begins with `!` excludes paths. The last matching glob of a list decides. Paths
are compared case-sensitively after Unicode normalisation (NFC).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias
from unicodedata import normalize

from attrs import field, frozen

from lithos.kernel.values.errors import Forbidden
from lithos.kernel.values.principals import ANYONE, OWNER, Principal, fold_name, is_reserved
from lithos.kernel.values.projects import same_project
from lithos.text.words.analysis import name_key

#: Maximum number of globs in one list, and maximum number of characters in one glob.
MOST_GLOBS: Final = 100
LONGEST_GLOB: Final = 500

#: Access of a caller to a path: `write` allows changes, `propose` only proposals. `outside` and `protected`
#: allow neither.
PathAccess = Literal["write", "propose", "outside", "protected"]
EVERYTHING: Final = ("**",)
#: Suffix of all note paths.
_NOTE: Final = ".md"


@frozen
class Scope:
    """The paths that one token or agent may change. The default scope allows all paths."""

    write: tuple[str, ...] = EVERYTHING
    propose: tuple[str, ...] = ()

    def place_of(self, path: str) -> PathAccess:
        """Return the access that this scope gives to the path of a note."""
        if covers(self.write, path):
            return "write"
        return "propose" if covers(self.propose, path) else "outside"

    def reaches(self, folder: str) -> bool:
        """Return whether a note below a folder may be changed or proposed. Case is ignored."""
        return any(_reaches(globs, folder) for _, globs in self.lists)

    def __str__(self) -> str:
        parts = [f"{name} {' '.join(globs)}" for name, globs in self.lists if globs]
        return "; ".join(parts) or "write nothing"

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the two lists of globs with their names."""
        return ("write", self.write), ("propose", self.propose)


def make_scope(write: Sequence[str] | None, propose: Sequence[str] | None) -> Scope | None:
    """Return the scope with the given globs. If neither list is given, return None, which means no limits.

    An agent that has only a `propose` list cannot change anything directly. Raises `ValueError` for invalid
    globs.
    """
    if write is None and propose is None:
        return None
    return Scope(check_globs(write or ()), check_globs(propose or ()))


def check_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """Return the normalised globs. Raises `ValueError` for an invalid glob, with the glob and the reason."""
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
    """Return globs that a person typed, like `check_globs`. Globs that cannot match a note are refused.

    For example, a folder name without `/` matches no note, so the glob would protect or allow nothing. Raises
    `ValueError` for invalid and refused globs.
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
    """Return the scopes in the configuration section `agents`, by agent name.

    Each scope is also listed by the folded name.

    Raises `ValueError` for an invalid pattern. The message begins with the setting, such as
    `agents.ann.write`.
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
    """Return the checked globs of a setting, like `check_typed`.

    A `ValueError` message begins with the `key`.
    """
    try:
        return check_typed(globs)
    except ValueError as problem:
        raise ValueError(f"{key}: {problem}") from None


def chosen_scope(write: Sequence[str], propose: Sequence[str]) -> Scope | None:
    """Return the scope that a person entered in a form. An empty `write` list allows all paths.

    Paths in `propose` are excluded from `write`, so changes of these paths need approval. If both lists are
    empty, the result is None. Raises `ValueError` like `check_typed`.
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
    """Return whether a list of globs covers a path. The last matching glob of the list decides."""
    names = normalize("NFC", path).split("/")
    for glob in reversed(globs):
        if _matches(glob.removeprefix("!"), names):
            return not glob.startswith("!")
    return False


def _reaches(globs: Sequence[str], folder: str) -> bool:
    """Return whether a list of globs covers some path below a folder."""
    names = name_key(folder.strip("/")).split("/")
    for number, glob in enumerate(globs):
        is_inside = not glob.startswith("!") and _may_lead_into(name_key(glob).split("/"), names)
        if is_inside and not any(_excludes(each, names) for each in globs[number + 1 :]):
            return True
    return False


def _may_lead_into(parts: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether a glob may match a path below the folder with these names."""
    for part, name in zip(parts, names, strict=False):
        if part in ("**", ""):
            return True
        if not _name_matches(part, name):
            return False
    return len(parts) > len(names)


def _excludes(glob: str, names: Sequence[str]) -> bool:
    """Return whether a glob excludes the whole folder with these names."""
    if not glob.startswith("!"):
        return False
    # A wildcard that matches these two paths matches the path of every note below the folder.
    inside = ("\0.md",), ("\0", "\0.md")
    return all(_matches(name_key(glob[1:]), [*names, *path]) for path in inside)


def _matches(glob: str, names: Sequence[str]) -> bool:
    """Return whether a glob matches a whole path.

    The time is proportional to the product of the two lengths.
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
    """Return whether a pattern matches a sequence. `star` in the pattern matches any number of items.

    Only the last star is matched again after a mismatch, because the matches of earlier stars never need to
    change.
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


#: Function that returns the current scope of a named token, or None if the token has no scope.
ScopeOfToken: TypeAlias = Callable[[Principal], Scope | None]


@frozen
class WriteScopes:
    """Access to paths, determined by token scopes, agent name scopes and protected paths.

    `of_token` returns the current scope of a named token, or None if the token has no scope.
    """

    protected: tuple[str, ...] = ()
    agents: Mapping[str, Scope] = field(factory=dict)
    of_token: ScopeOfToken = lambda _: None
    #: Projects of folders (`projects` of the configuration).
    projects: Mapping[str, str] = field(factory=dict)

    def place_of(self, by: Principal | None, agent: str, path: str) -> PathAccess:
        """Return the access to a path for a caller that uses an agent name.

        If `by` is None, the caller is Lithos itself.
        """
        if self.protected and covers(self.protected, path) and not is_person(by, agent):
            return "protected"
        scope = self.scope_of(by, agent)
        return "write" if scope is None else scope.place_of(path)

    def limits(self, by: Principal | None, agent: str) -> bool:
        """Return whether this caller is prevented from changing some paths directly."""
        return bool(self.protected) or self.scope_of(by, agent) is not None

    def keeps_out_of(self, project: str, by: Principal | None, agent: str) -> Scope | None:
        """Return the scope if it reaches none of the project's folders. Else return None.

        A project without configured folders belongs to no folder, so every agent may name the project.
        """
        folders = [folder for folder, key in self.projects.items() if same_project(key, project)]
        scope = self.scope_of(by, agent) if folders else None
        return None if scope is None or any(map(scope.reaches, folders)) else scope

    def scope_of(self, by: Principal | None, agent: str) -> Scope | None:
        """Return the scope of the token, or else the scope of the agent name. None means no limits."""
        own = None if by is None else self.of_token(by)
        if own is not None:
            return own
        if by is not None and by.is_person:
            return None
        if not self.agents:
            return None
        # `Junior`, or a name with an invisible character, gets the scope of `junior` rather than wider
        # access.
        return self.agents.get(agent) or self.agents.get(fold_name(agent))


def is_person(by: Principal | None, agent: str) -> bool:
    """Return whether a person, not an agent, makes the change.

    A person uses the console, a command without an agent name, or an `admin` token that is not bound to an
    agent.
    """
    if by is None or by.agent is not None or not by.may("admin"):
        return False
    if by.is_own:
        return by.is_person or is_reserved(agent)
    return by not in (OWNER, ANYONE)


def foreign_project(project: str, agent: str, scope: Scope) -> Forbidden:
    """Return the error for a project whose folders the caller may not change."""
    return Forbidden(
        f"The project {project} has folders in the setting projects, and {agent[:60]} may change none of "
        f"them ({scope}). Nothing was changed. Leave project out, or ask a person to widen the scope.",
        project=project,
        scope=str(scope),
    )


def refusal_of(place: PathAccess, path: str, agent: str, scope: Scope | None) -> Forbidden:
    """Return the error for a path that the caller may not change.

    The error names the path and the scope.
    """
    shown = path[:300]
    if place == "protected":
        return Forbidden(
            f"{shown} is protected (storage.protected): only people can change it, in an editor "
            "or in the console. Nothing was changed. Ask a person to make the change, or write a "
            "new note at another path.",
            path=path,
            scope="protected",
        )
    return Forbidden(
        f"{shown} is outside of what {agent[:60]} may change ({scope}). Nothing was changed. "
        "Write to a path in this scope, or ask a person to widen the scope.",
        path=path,
        scope=str(scope),
    )
