"""List of capabilities. A capability follows all capabilities that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lithos.events.journal.boards import Boards
from lithos.events.reading.retention import Retentions
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.capability import Background, Capability, Holds, NavigationLink, Pages, Store
from lithos.kernel.discovery import import_if_there
from lithos.kernel.parts import Maker, Parts
from lithos.kernel.values.findings import CHECK_MODULES
from lithos.server.mcp.resource_pages import Resources
from lithos.server.tools.declaring import OWN, Tool, declared_by
from lithos.server.tools.registry import Tools

#: Packages with a `capability` module. A missing package is left out, and so are packages that need it.
PACKAGES: Final = (
    "notes",
    "history",
    "search",
    "tasks",
    "events",
    "memory",
    "proposals",
    "attachments",
    "access",
    "sessions",
    "imports",
    "upkeep",
    "upkeep.evaluation",
    "adopt",
    "vaults",
)


def find_capabilities() -> Iterator[Capability]:
    """Yield the capabilities whose packages are installed and whose dependencies are present."""
    found: set[str] = set()
    for package in PACKAGES:
        name = package.rpartition(".")[2]
        module = import_if_there(f"lithos.{package}", "capability")
        capability: Capability | None = None if module is None else getattr(module, name.upper())
        if capability is not None and found.issuperset(capability.needs):
            found.add(name)
            yield capability


CAPABILITIES: Final = tuple(find_capabilities())

CHECK_MODULES.extend(name for capability in CAPABILITIES for name in capability.checks)


def has(name: str) -> bool:
    """Return whether the capability with this name is present."""
    return any(capability.name == name for capability in CAPABILITIES)


def makers() -> Iterator[Maker]:
    """Yield the makers of the parts of a server."""
    yield make_resources
    yield make_tools
    yield make_boards
    yield make_retentions
    for capability in CAPABILITIES:
        yield from capability.makers


def all_tools() -> tuple[Tool, ...]:
    """Return all tools that clients may call, including legacy tools, in the order of `tools/list`."""
    return tuple(tool for tool in _declared() if tool.profile != OWN)


def own_tools() -> tuple[Tool, ...]:
    """Return the tools that Lithos uses for its own commands and pages."""
    return tuple(tool for tool in _declared() if tool.profile == OWN)


def _declared() -> tuple[Tool, ...]:
    return declared_by([module for capability in CAPABILITIES for module in capability.tools])


def holders() -> tuple[Holds, ...]:
    """Return the functions that check whether a server contains an object with a given id."""
    return tuple(each.holds for each in CAPABILITIES if each.holds is not None)


def make_tools(parts: Parts) -> Tools:
    """Make the tools that clients call."""
    return Tools(parts, (*all_tools(), *own_tools()))


def make_resources(parts: Parts) -> Resources:
    """Make the MCP resources of all kinds."""
    kinds = [parts.get(kind) for capability in CAPABILITIES for kind in capability.resources]
    return Resources(kinds)


def make_boards(parts: Parts) -> Boards:
    """Make the boards of all capabilities. The coordinator runs the commands of these boards."""
    return Boards(parts.get(kind) for capability in CAPABILITIES for kind in capability.boards)


def make_retentions() -> Retentions:
    """Make the list of retentions of all capabilities, which determine the old rows to delete."""
    return Retentions(each for capability in CAPABILITIES for each in capability.retention)


def background(*, of_front: bool) -> Iterator[Background]:
    """Yield the background tasks of a server, or those of its front if `of_front` is True."""
    for capability in CAPABILITIES:
        yield from (each for each in capability.background if each.needs_front == of_front)


def pages() -> Pages:
    """Return the console pages."""
    each = [capability.pages for capability in CAPABILITIES]
    return Pages(
        modules=tuple(module for some in each for module in some.modules),
        links=_sorted(link for some in each for link in some.links),
        tabs=_sorted(link for some in each for link in some.tabs),
        waiting=tuple(one for some in each for one in some.waiting),
    )


def _sorted(links: Iterable[NavigationLink]) -> tuple[NavigationLink, ...]:
    return tuple(sorted(links, key=lambda link: link.place))


def fronts() -> Iterator[str]:
    """Yield the names of the modules that add endpoints to an HTTP front."""
    yield from (capability.front for capability in CAPABILITIES if capability.front is not None)


# Declare all tables now, because they must be known before any database is opened.
CoordinationStore.lay_out(table for capability in CAPABILITIES for table in capability.tables)


def stores_of() -> list[Store]:
    """Return the on-disk stores in the order in which they are opened."""
    found = [each for capability in CAPABILITIES for each in capability.stores]
    return sorted(found, key=lambda each: each.place)
