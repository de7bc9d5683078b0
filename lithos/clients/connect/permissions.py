"""`--allow-reads`: let the tools of Lithos that only read run without a question, if the person agrees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from attrs import frozen

from lithos.clients.connect.clients import Surroundings
from lithos.clients.connect.files import CannotUse
from lithos.clients.connect.formats import CannotEdit
from lithos.clients.connect.rule_files import Rule, RulePlace, allow, disallow
from lithos.clients.connect.rules import ReadRules, find_rules
from lithos.clients.connect.writing import ClientEntry
from lithos.server.command.output import agrees
from lithos.server.command.session import CommandSession
from lithos.server.settings import ServerConfig

Action = Literal["allowed", "already allowed", "not allowed", "removed", "not removed"]


@frozen
class RuleResult:
    """Result of a change of the rules. `notes` are lines for the person."""

    action: Action
    notes: tuple[str, ...] = ()
    path: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The result in the JSON answer."""
        return {"action": self.action, "path": self.path}


def add_rules(session: CommandSession, entry: ClientEntry, around: Surroundings) -> RuleResult:
    """Write the rules if the person wants them: by `--allow-reads`, or by an answer at the terminal.

    Rules of an earlier call are renewed, so that a tool that no longer only reads loses its rule.
    """
    is_wanted = bool(session.typed.get("allow_reads"))
    try:
        found = find_rules(entry, around, ())
        has_rules = found.place is not None and found.place.read_record().rules_at(found.place) != ()
        if not found.refusal and not has_rules and not _agrees(session, entry, found, is_wanted=is_wanted):
            return RuleResult("not allowed", tuple(_hints(session, entry, around, is_wanted=is_wanted)))
        if is_wanted or has_rules or not found.refusal:
            return _write(entry, find_rules(entry, around, _read_tools(session)))
    except (CannotUse, CannotEdit) as error:
        # The entry is written already, so this is not a failure of the command.
        lines = (f"The rules for the tools that only read were not written: {error}",) if is_wanted else ()
        return RuleResult("not allowed", lines)
    return RuleResult("not allowed")


def _read_tools(session: CommandSession) -> Sequence[str]:
    local = session.invocation.local
    assert local is not None, "main passes the functions of this process to each command"
    return local.read_tools(session.config.of(ServerConfig))


def _write(entry: ClientEntry, found: ReadRules) -> RuleResult:
    """Write the rules, or return how to write them by hand. Raises `CannotUse`."""
    place = found.place
    if place is None or found.refusal:
        return RuleResult("not allowed", (found.refusal,))
    try:
        changed = allow(place, found.rules)
    except CannotEdit as error:
        note = f"{place.path} is unchanged. {error} To allow the tools that only read, add this to the file:"
        return RuleResult("not allowed", (note, *_text_of(found)))
    note = (
        f"{entry.client.title} runs the {len(found.rules)} tools of Lithos that only read without a "
        f"question. The rules are in {place.path}."
    )
    return RuleResult("allowed" if changed else "already allowed", (note,), str(place.path))


def _agrees(session: CommandSession, entry: ClientEntry, found: ReadRules, *, is_wanted: bool) -> bool:
    """Return whether the person wants the rules.

    `--allow-reads` is not an answer for an effect on other settings, so that is asked at the terminal.
    """
    if is_wanted and not found.caution:
        return True
    question = f"Let {entry.client.title} run the tools of Lithos that only read without a question?"
    return not session.as_json and agrees(" ".join(filter(None, (found.caution, question))))


def _hints(
    session: CommandSession, entry: ClientEntry, around: Surroundings, *, is_wanted: bool
) -> Iterator[str]:
    """Yield how to allow the tools. Raises `CannotUse` and `CannotEdit`."""
    if not is_wanted:
        title = entry.client.title
        yield f"To let {title} run the tools that only read without a question, add --allow-reads."
        return
    found = find_rules(entry, around, _read_tools(session))
    assert found.place is not None
    yield f"{found.caution} Lithos asks at a terminal before it changes that. Or add this to the file:"
    yield from _text_of(found)


def _text_of(found: ReadRules) -> Sequence[str]:
    """Return the lines of a new file with these rules."""
    assert found.place is not None
    place = found.place
    return (place.put(None, [place.with_rules(found.rules)])[0] or b"").decode().splitlines()


@contextmanager
def rules_removed(entry: ClientEntry, around: Surroundings) -> Iterator[RuleResult | None]:
    """Take the rules of Lithos out before the block, and put them back if the block raises an error."""
    taken: Sequence[Rule] = ()
    place, result = None, None
    try:
        place = find_rules(entry, around, ()).place
        taken = disallow(place) if place is not None else ()
    except (CannotUse, CannotEdit) as error:
        result = RuleResult(
            "not removed", (f"The rules for the tools that only read were not removed: {error}",)
        )
    if place is None or not taken:
        yield result
        return
    try:
        note = f"The {len(taken)} rules that Lithos added are removed from {place.path}."
        yield RuleResult("removed", (note,), str(place.path))
    except BaseException:
        allow(place, taken)
        raise


def place_of_rules(entry: ClientEntry, around: Surroundings) -> RulePlace | None:
    """Return the place of the rules, or None if the client has no file for them, or it cannot be read."""
    try:
        return find_rules(entry, around, ()).place
    except (CannotUse, CannotEdit):
        return None  # `change_entry` reads the same file, and reports why it cannot be read.
