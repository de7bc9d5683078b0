"""The tools as one caller has them: what its token allows, under the identity that it is bound to.

docs/spec/integration.md §3. Which right a tool needs follows from its hints; which parameters name the
calling agent follows from its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from attrs import evolve, fields

from lithos.core.errors import Forbidden
from lithos.core.principals import Principal, Rights, check_agent
from lithos.tools.contract.arguments import ArgumentFault, ToolSpec
from lithos.tools.contract.declaring import Tool

#: Every tool takes the calling agent under this name, unless the tool means something else by it.
CALLER: Final = "agent"


def identities_of(tool: Tool) -> tuple[str, ...]:
    """The parameters of a tool that name the calling agent; `agent` is one of nearly every tool."""
    return tool.reader.callers if tool.filters_agent else (*tool.reader.callers, CALLER)


def right_of(tool: Tool, arguments: Mapping[str, Any] | None = None) -> Rights:
    """The right that a call needs; without `arguments`, the least with which any call is allowed."""
    if "R" in tool.hints:
        return "read"
    if tool.preview is not None:
        name, value = tool.preview
        if arguments is None or _said(arguments.get(name)) in (None, value):
            return "read"
    return "write"


def admit(principal: Principal, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with the caller's identity filled in.

    Raises `Forbidden` where the token lacks the right, and where another agent is named, `InvalidInput` for
    one of Lithos's own names, and `ArgumentFault` for an argument that only Lithos itself may give.
    """
    needed = right_of(tool, arguments)
    if not principal.may(needed):
        raise Forbidden(
            f"The token '{principal.name}' has the right {principal.rights}; this call of {tool.name} needs "
            f"{needed}. Use a token that has it, or ask for one (lithos token create --rights {needed})."
        )
    names = identities_of(tool)
    if not principal.is_own:
        _check_names(principal, tool, names, arguments)
    if principal.agent is None:
        return arguments
    for name in names:
        given = arguments.get(name)
        if _said(given) not in (None, principal.agent):
            raise Forbidden(
                f"The token '{principal.name}' is bound to the agent '{principal.agent}', and {name} names "
                f"another. Leave {name} out, or give '{principal.agent}'."
            )
    own = [each.name for each in fields(tool.arguments) if each.name in names]
    kept = {name: value for name, value in arguments.items() if name not in names}
    return kept | dict.fromkeys(own or names[:1], principal.agent)


def _check_names(
    principal: Principal, tool: Tool, names: tuple[str, ...], arguments: Mapping[str, Any]
) -> None:
    """That the caller does not pass for Lithos itself."""
    for name in tool.reader.own:
        if _said(arguments.get(name)) is not None:
            raise ArgumentFault(f"Argument '{name}' is for Lithos's own commands. Leave it out.")
    for name in names:
        given = arguments.get(name)
        if isinstance(given, str):
            check_agent(given, name)
    if principal.agent is not None:
        check_agent(principal.agent, f"The agent of the token '{principal.name}'")


def spec_for(principal: Principal, tool: Tool, spec: ToolSpec) -> ToolSpec | None:
    """The tool as `tools/list` shows it to this caller: None where no call of it is allowed."""
    if not principal.may(right_of(tool)):
        return None
    required = spec.input_schema.get("required", ())
    own = [name for name in identities_of(tool) if name in required]
    if principal.agent is None or not own:
        return spec
    schema = deepcopy(dict(spec.input_schema))
    schema["required"] = [name for name in required if name not in own]
    if not schema["required"]:
        del schema["required"]
    return evolve(spec, input_schema=schema)


def _said(value: Any) -> Any:
    """A value as the tools read it: blank is left out, and space around a name is none of it."""
    return (value.strip() or None) if isinstance(value, str) else value
