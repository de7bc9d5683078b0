"""`lithos connect CLIENT --hooks`: install and remove the hooks of a client."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lithos.clients.connect.clients import CLIENTS, ConfigScope, Surroundings
from lithos.clients.connect.files import CannotUse
from lithos.clients.connect.formats import CannotEdit, InvalidText
from lithos.clients.hook_files.formats import IsOurs
from lithos.clients.hook_files.opencode import make_plugin
from lithos.clients.hook_files.places import HOOK_PLACES, HookFile
from lithos.clients.hook_files.writing import HookChange, change_hooks
from lithos.clients.hooks.entries import Hooks, guarded, hooks_for, is_hook_of
from lithos.server.command.output import tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing
from lithos.server.command.starting import find_options, find_program


def run_hooks(session: CommandSession) -> int:
    """Install the hooks of a client, or remove them with `--remove`. Raises `CommandFailed`."""
    typed = session.typed
    client = _client_of(typed)
    files = _files_of(client, typed)
    options = find_options(session)
    is_ours = is_hook_of(client, options)
    more = ("--agent", typed["agent"]) if "agent" in typed else ()
    if typed.get("remove"):
        changes = [(file, _change(client, file, None, is_ours)) for file in files]
        file, change = next((each for each in changes if each[1].action == "removed"), changes[0])
        return _report(session, client, file, change)
    program = find_program()
    if client == "opencode":
        hooks = make_plugin((*program, *options), more)
    else:
        hooks = hooks_for(client, guarded(program, options), f" {shlex.join(more)}" if more else "")
    change = _change(client, files[0], hooks, is_ours)
    for other in files[1:]:  # The client would run the hooks of both files.
        _change(client, other, None, is_ours)
    return _report(session, client, files[0], change)


def _client_of(typed: Mapping[str, Any]) -> str:
    """Return the client. Raises `CommandFailed` if it has no hooks, or for options without an effect here."""
    client = typed.get("client")
    if unused := [
        f"--{name}" for name in ("write", "list", "plugin", "transport", "name") if typed.get(name)
    ]:
        raise CommandFailed(f"Use --hooks without {', '.join(unused)}.", 2)
    known = ", ".join(HOOK_PLACES)
    if client is None:
        raise CommandFailed(f"The client is missing. Name one of {known}.", 2)
    if client not in HOOK_PLACES:
        title = CLIENTS[client].title if client in CLIENTS else client
        why = "has no hooks"
        if client == "windsurf":
            why = "has hooks, but they cannot give the model any text"
        raise CommandFailed(
            f"{title} {why}, so there is nothing to install. Clients with hooks: {known}. For {title}, run "
            "lithos connect --instructions with the file of instructions that it reads.",
            2,
        )
    return str(client)


def _files_of(client: str, typed: Mapping[str, Any]) -> tuple[HookFile, ...]:
    scope: ConfigScope = typed.get("scope", "user")
    files = HOOK_PLACES[client].files(Surroundings.here())[scope]
    if "file" not in typed:
        return files
    path: Path = typed["file"].expanduser().absolute()
    form = next((file.form for file in files if file.path.suffix == path.suffix), files[0].form)
    return (HookFile(path, form),)


def _change(client: str, file: HookFile, hooks: Hooks | None, is_ours: IsOurs) -> HookChange:
    """Change a file. Raises `CommandFailed` if the file must not be changed."""
    title = CLIENTS[client].title
    with refusing(CannotUse):
        try:
            return change_hooks(file, hooks, is_ours)
        except InvalidText as error:
            raise CommandFailed(
                f"{file.path} is not valid, so it is unchanged: {error}. {title} cannot read it either. "
                "Correct it in an editor, then try again."
            ) from error
        except CannotEdit as error:
            raise CommandFailed(f"{file.path} is unchanged. {error} {_by_hand(client, hooks)}") from error


def _by_hand(client: str, hooks: Hooks | None) -> str:
    """Return what a person must do instead."""
    if client == "opencode":
        return "Move the file away or delete it, then try again."
    if hooks is None:
        return f"Delete the hooks with `--hook --client {client}` in an editor."
    return "Add this in an editor:\n" + json.dumps({"hooks": hooks}, indent=2, ensure_ascii=False)


def _report(session: CommandSession, client: str, file: HookFile, change: HookChange) -> int:
    notes = [
        f"The backup {path} is kept, because it has settings that are missing from the file."
        for path in change.kept
    ]
    if change.action in ("installed", "updated"):
        notes.append(HOOK_PLACES[client].then)
        notes.append(f"Remove the hooks with: lithos connect {client} --hooks --remove")
    document = {"client": client, "action": change.action, "path": str(file.path), "notes": notes}
    tell(session, document, [f"{CLIENTS[client].title}: hooks {change.action} ({file.path}).", *notes])
    return 0
