"""Tools for several vaults. A call runs in one vault, or in all vaults that the caller may use.

Specified in docs/spec/vaults.md §2. A caller who may use only one vault gets the tools of that vault. They
have no vault parameter and do not mention other vaults. For other callers, every tool has the parameter
`vault`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Final, Protocol

from attrs import evolve, frozen

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.capability import Holds
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import AmbiguousIdPrefix, InvalidInput, LithosError
from lithos.kernel.values.ids import MOST_CANDIDATES, is_id, prefix_of
from lithos.kernel.values.principals import COMMAND, OWNER, Principal
from lithos.kernel.values.projects import working_in
from lithos.server.tools.arguments import ArgumentFault, ToolSpec
from lithos.server.tools.declaring import Answer
from lithos.server.tools.fitting import AnswerWithImage
from lithos.server.tools.registry import ActingTools, Tools, envelope
from lithos.server.tools.serialization import row_of
from lithos.vaults.service.joint import ALL, Vault, VaultSet, find_named
from lithos.vaults.service.moving import VaultMoving

#: The extra parameter of every tool, and the second extra parameter of the move tool.
VAULT: Final = "vault"
TO_VAULT: Final = "to_vault"
MOVE: Final = "lithos_note_move"
#: Tools whose `vault` parameter lists the vaults of the caller. Below them: the maximum length of that list
#: in characters.
_NAMES_THEM: Final = frozenset({"lithos_search", "lithos_context"})
LONGEST_NAMES: Final = 2_000
#: Arguments that contain the id of an object. The id determines the vault.
_NAMING: Final = (
    "id", "note_id", "node_id", "task_id", "parent_task_id", "from_task_id", "source_task_id", "to_task_id",
    "knowledge_id", "from_id", "to_id", "winner_id", "receipt_id", "edge_id", "seed_ids", "derived_from_ids",
    "depends_on", "proposal_id",
)  # fmt: skip
_PROPERTY: Final = {"type": "string"}
TOLD: Final = """
Tools with the parameter `vault` reach several vaults, which lithos_search lists. Default: the vault that \
has the given id, else the first. "*" queries all vaults. Answers and rows name their vault.
"""


class Joint(Protocol):
    """A function that runs one tool in several vaults and returns a single answer."""

    async def __call__(self, asked: Sequence[QueriedVault], arguments: Mapping[str, Any]) -> Answer: ...


@frozen
class QueriedVault:
    """One vault of a joint query, with the tools that the caller may use in it."""

    name: str
    services: Parts
    tools: Tools
    principal: Principal

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the complete answer of a tool without a length limit.

        Raises `LithosError` if the tool fails.
        """
        answer = await self.tools.call(name, arguments, self.principal, is_whole=True)
        assert answer is not None
        return answer


@frozen
class JointTools:
    """The tools of all vaults. `joint` maps tool names to implementations for several vaults."""

    vaults: VaultSet
    joint: Mapping[str, Joint]
    #: Function that returns the service for moving notes from one vault to another.
    moving: Callable[[Vault, Vault], VaultMoving]
    #: Functions that check whether a vault has an object with an id. There is one function per kind of
    #: object.
    holders: Sequence[Holds]
    told: ClassVar[str] = TOLD

    def acting_as(self, principal: Principal) -> ActingTools | JointActing:
        """Return the tools that this caller may use."""
        allowed = self.vaults.allowed(principal)
        if len(allowed) == 1 and (tools := tools_of(allowed[0][0])) is not None:
            return tools.acting_as(allowed[0][1])
        return JointActing(self, tuple(allowed))

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools that the owner may use."""
        return self.acting_as(OWNER).listed()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a tool as the owner, for a command."""
        return await self.acting_as(COMMAND).call(name, arguments)


@frozen
class JointActing:
    """The tools of all vaults that one caller may use."""

    _all: JointTools
    _allowed: Sequence[tuple[Vault, Principal]]

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools of these vaults with the additional parameter `vault`.

        A tool that several vaults have is listed once.
        """
        found: dict[str, ToolSpec] = {}
        for vault, who in self._allowed:
            if (tools := tools_of(vault)) is not None:
                for spec in tools.listed(who):
                    found.setdefault(spec.name, spec)
        names = ", ".join(vault.name for vault, _ in self._allowed)
        told = {"description": f"One of {names}; * means all."[:LONGEST_NAMES]}
        return tuple(
            _with_parameter(spec, {**_PROPERTY, **(told if spec.name in _NAMES_THEM else {})})
            for spec in found.values()
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a tool in the selected vault or in all vaults, like `Tools.call`."""
        rest = {key: value for key, value in arguments.items() if key not in (VAULT, TO_VAULT)}
        named = arguments.get(VAULT)
        if named is not None and not isinstance(named, str):
            raise ArgumentFault("vault must be text: the name of a vault.")
        try:
            if named == ALL:
                return await self._call_all(name, rest)
            vault, who = await self._meant(rest) if not named else find_named(self._allowed, named)
            vault.serving()
            if name == MOVE and arguments.get(TO_VAULT):
                return await self._move(vault, who, str(arguments[TO_VAULT]), rest)
        except LithosError as refusal:
            return envelope(refusal)
        tools = tools_of(vault)
        assert tools is not None
        return with_vault(await tools.call(name, rest, who), vault.name)

    async def _move(
        self, vault: Vault, who: Principal, target_name: str, arguments: Mapping[str, Any]
    ) -> Answer:
        """Move a note to another vault. Raises the errors of `VaultMoving.move`."""
        target, who_there = find_named(self._allowed, target_name)
        if target is vault:
            raise InvalidInput(
                f"The note is already in {vault.name}. Leave to_vault out to move the note within that vault."
            )
        target.serving()
        here, there = tools_of(vault), tools_of(target)
        assert here is not None
        assert there is not None
        arguments = await here.with_ids(MOVE, arguments)
        checked = {**arguments, "path": arguments.get("path") or "same.md"}
        given: Any = here.read(MOVE, checked, who)
        there.read(MOVE, checked, who_there)
        moved = await self._all.moving(vault, target).move(
            note_id=given.id,
            agent=given.agent,
            path=given.path if arguments.get("path") else None,
            expected_version=given.expected_version,
            by=who,
            by_there=who_there,
        )
        answer = row_of(moved.outcome) | {"former_path": moved.former_path, "versions": moved.versions}
        answer |= {"left_versions": moved.left, "unresolved_links": moved.unresolved}
        return answer | {"from_vault": vault.name, VAULT: target.name}

    async def _call_all(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        joint = self._all.joint.get(name)
        if joint is None:
            names = ", ".join(sorted(self._all.joint))
            raise InvalidInput(f"vault '*' works only for {names}. Name one vault for {name[:100]}.")
        asked, missing = list[QueriedVault](), dict[str, str]()
        for vault, who in self._allowed:
            tools = tools_of(vault)
            if tools is None or vault.services is None:
                missing[vault.name] = vault.reason or "it is starting"
            else:
                asked.append(QueriedVault(vault.name, vault.services, tools, who))
                if not vault.services.get(Opening).complete.is_set():
                    missing[vault.name] = "it is still indexing: notes may be missing"
        if not asked:
            raise find_first(missing)
        with working_in(self._allowed[0][1].project):
            answer = await joint(asked, arguments)
        assert answer is not None
        failed = {**missing, **answer.get("failed_vaults", {})}
        if not failed:
            return {key: value for key, value in answer.items() if key != "failed_vaults"}
        return {**answer, "failed_vaults": failed, "degraded": True}

    async def _meant(self, arguments: Mapping[str, Any]) -> tuple[Vault, Principal]:
        """Return the vault that has the objects named in the arguments.

        If the arguments name no known object, return the default vault.
        """
        for key in _NAMING:
            given = arguments.get(key)
            for each in given if isinstance(given, list | tuple) else (given,):
                if not isinstance(each, str) or not each:
                    continue
                found: list[tuple[Vault, Principal]] = []
                for vault, who in self._allowed:
                    if vault.services is not None and await self._has(vault.services, each):
                        found.append((vault, who))
                        if is_id(each):
                            break
                if len(found) > 1 and prefix_of(each) is not None:
                    names = ", ".join(vault.name for vault, _ in found)
                    raise AmbiguousIdPrefix(
                        f"Several vaults have an id that begins with {each!r}: {names}. Nothing was changed. "
                        "Name the vault, or give the whole id.",
                        candidates=[{"vault": vault.name} for vault, _ in found[:MOST_CANDIDATES]],
                    )
                if found:
                    return found[0]
        return self._allowed[0]

    async def _has(self, services: Parts, thing: str) -> bool:
        """Return whether a vault has an object with this id."""
        for holds in self._all.holders:
            if await holds(services, thing):
                return True
        return False


def find_first(missing: Mapping[str, str]) -> LithosError:
    """Return the error to raise if no vault responded."""
    told = "; ".join(f"{name}: {why}" for name, why in missing.items())
    return InvalidInput(f"No vault can answer now: {told}. The server tries again automatically.")


def tools_of(vault: Vault) -> Tools | None:
    """Return the tools of a vault, or None while the vault is not served."""
    found: Tools | None = getattr(vault.services, "tools", None)
    return found


def with_vault(answer: Answer, name: str) -> Answer:
    """Return an answer to which the name of its vault is added."""
    if answer is None:
        return None
    told = {**answer, VAULT: name}
    return AnswerWithImage(told, answer.media_type, answer.data) if type(answer) is AnswerWithImage else told


def _with_parameter(spec: ToolSpec, vault: Mapping[str, str]) -> ToolSpec:
    schema = deepcopy(dict(spec.input_schema))
    own = (VAULT, TO_VAULT) if spec.name == MOVE else (VAULT,)
    schema["properties"] = {**schema.get("properties", {}), **dict.fromkeys(own, vault)}
    if spec.name == MOVE:  # The path may be free in another vault.
        schema["required"] = [name for name in schema.get("required", ()) if name != "path"]
    return evolve(spec, input_schema=schema)
