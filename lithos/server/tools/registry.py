"""Tool registry: order of `tools/list` (docs/spec/tools.md §2), dispatch, error envelopes and metrics.

Only this module creates error envelopes, counts tool calls and measures their time. Each caller gets the
tools that its token allows, and acts under the identity of the token (docs/spec/integration.md §3). The hints
of a tool determine the right that it needs. Its class determines the parameters that name the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from time import perf_counter
from typing import Any, Final

from attrs import evolve, field, fields, frozen

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Parts
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import Forbidden, LithosError, SearchBackendFailed
from lithos.kernel.values.principals import (
    COMMAND,
    OWNER,
    UNKNOWN_AGENT,
    Principal,
    Rights,
    acting_as,
    check_agent,
)
from lithos.kernel.values.projects import working_in
from lithos.server.settings import ServerConfig
from lithos.server.tools.admission import Admission
from lithos.server.tools.arguments import CALLERS, ArgumentFault, ToolSpec, UnknownTool, one_form
from lithos.server.tools.compacting import compact, compact_refusal, drop_plain_totals
from lithos.server.tools.declaring import CONNECTOR, OWN, PROFILES, Answer, Tool, ToolCall
from lithos.server.tools.fitting import UNPAGED, AnswerWithImage, fit
from lithos.server.tools.ports import AgentProjects, NotePorts
from lithos.server.tools.request_ids import serve_once
from lithos.text.secrets.policy import SecretPolicy

#: Parameter with which clients of upstream's Lithos filter by agent.
_FILTER: Final = CALLERS[0]


def identities_of(tool: Tool) -> tuple[str, ...]:
    """Return the parameters that name the calling agent.

    The tool's own parameters come first, and `agent` is always included.
    """
    return tuple(dict.fromkeys((*tool.reader.callers, *CALLERS)))


def right_of(tool: Tool, arguments: Mapping[str, Any] | None = None) -> Rights:
    """Return the right that a call needs.

    Without `arguments`, return the lowest right that any call needs.
    """
    if tool.profile == OWN:
        return "admin"
    if "R" in tool.hints:
        return "read"
    if tool.preview is not None:
        name, value = tool.preview
        if arguments is None or _said(arguments.get(name)) in (None, value):
            return "read"
    return "write"


def admit(principal: Principal, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check the token of a caller and return the arguments with the caller's identity.

    Raises `Forbidden` if the token lacks the right or if the call names another agent. Raises `InvalidInput`
    for agent names that are reserved for Lithos, and `ArgumentFault` for an argument that is reserved for
    Lithos.
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
                f"The token '{principal.name}' is bound to the agent '{principal.agent}', but "
                f"{name} names another agent. Leave {name} out, or give '{principal.agent}'."
            )
    own = [each.name for each in fields(tool.arguments) if each.name in names]
    kept = {name: value for name, value in arguments.items() if name not in names}
    return kept | dict.fromkeys(own or names[:1], principal.agent)


def _check_names(
    principal: Principal, tool: Tool, names: tuple[str, ...], arguments: Mapping[str, Any]
) -> None:
    """Raise an error if the caller uses names or arguments that are reserved for Lithos."""
    for name in tool.reader.own:
        if _said(arguments.get(name)) is not None:
            raise ArgumentFault(f"Argument '{name}' is reserved for Lithos's own commands. Leave it out.")
    for name in names:
        given = arguments.get(name)
        if isinstance(given, str):
            check_agent(given, name)
    if principal.agent is not None:
        check_agent(principal.agent, f"The agent of the token '{principal.name}'")


def spec_for(principal: Principal, tool: Tool, spec: ToolSpec) -> ToolSpec | None:
    """Return the tool in the form in which this caller sees it in `tools/list`.

    If the caller may not call it, return None.
    """
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
    """Return a value in the form in which the tools read it.

    Blank text becomes None, and names have no surrounding space.
    """
    return (one_form(value) or None) if isinstance(value, str) else value


def _agent_of(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Return the agent that a call names, or None. Every caller may use the name `UNKNOWN_AGENT`."""
    given = (_said(arguments.get(name)) for name in identities_of(tool))
    return next((each for each in given if isinstance(each, str) and each != UNKNOWN_AGENT), None)


_MODES: Final = ("fulltext", "semantic", "hybrid", "graph")


@frozen
class ToolMeter:
    """Recorder of metrics for tool calls."""

    metrics: Metrics = field(factory=Metrics)

    def record(
        self, tool: Tool, mode: Any, answer: Answer, outcome: str, error: str | None, seconds: float
    ) -> None:
        """Record one call. `outcome` is ok, error or exception, and `error` is the error code or None."""
        metrics, name = self.metrics, tool.name
        metrics.count("tool_calls", name)
        metrics.observe("tool_duration_seconds", seconds, name, outcome)
        if error is not None:
            metrics.count("tool_errors", name, error)
        success = "true" if outcome == "ok" else "false"
        if tool.counts:
            metrics.count("knowledge_operations", tool.counts)
            if "R" not in tool.hints:
                metrics.observe("knowledge_write_duration_seconds", seconds, tool.counts, success)
        elif name == "lithos_search":
            if (mode := mode or "hybrid") in _MODES:
                metrics.count("search_operations", mode)
                metrics.observe("search_duration_seconds", seconds, mode, success)
        elif name == "lithos_cache_lookup":
            metrics.observe("cache_lookup_duration_seconds", seconds)
            if error == "search_backend_error":
                metrics.count("cache_lookups", "error_search_backend")
            elif outcome == "ok" and answer is not None:
                stale = "miss_stale" if answer.get("stale_exists") else "miss_clean"
                metrics.count("cache_lookups", "hit" if answer["hit"] else stale)
        elif tool.of != "notes":
            metrics.count("coordination_operations", name.removeprefix("lithos_"))


def begin_tools(metrics: Metrics, tools: Iterable[Tool], *, has_connectors: bool) -> None:
    """Create the metric series of tool calls. They are zero until the first call."""
    for tool in tools:
        if tool.profile == OWN or (tool.profile == CONNECTOR and not has_connectors):
            continue
        metrics.begin("tool_calls", tool.name)
        metrics.begin("tool_duration_seconds", tool.name, "ok")
        metrics.begin("tool_errors", tool.name, "internal_error")
        if tool.counts and "R" not in tool.hints:
            metrics.begin("knowledge_write_duration_seconds", tool.counts, "true")
    for mode in _MODES:
        metrics.begin("search_operations", mode)
        metrics.begin("search_duration_seconds", mode, "true")
    for outcome in ("hit", "miss_stale", "miss_clean", "error_search_backend"):
        metrics.begin("cache_lookups", outcome)


#: Error codes that may replace the status `error` (`server.write_outcomes: status`).
WRITE_OUTCOMES: Final = frozenset({"version_conflict", "slug_collision", "path_collision", "duplicate"})
#: Maximum number of characters of an error message. It may quote long arguments.
LONGEST_MESSAGE: Final = 1_000


def envelope(refusal: LithosError, status: str = "error") -> Mapping[str, Any]:
    """Return the error envelope of a refusal. For a code in `WRITE_OUTCOMES`, it always has `warnings`."""
    told = {"status": status, "code": refusal.code, "message": _shorten(refusal.message), **refusal.extras}
    return {**told, "warnings": told.get("warnings", [])} if refusal.code in WRITE_OUTCOMES else told


def _shorten(message: str) -> str:
    """Shorten a message that quotes a long argument. The beginning and the advice at the end are kept."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"


def is_listed(tool: Tool, server: ServerConfig) -> bool:
    """Return whether `tools/list` of a server with these settings shows the tool to local clients."""
    shown = (CONNECTOR,) if server.tools == CONNECTOR else PROFILES[: PROFILES.index(server.tools) + 1]
    return tool.profile in shown and (server.legacy_tools or not tool.is_legacy)


def _with_warnings(answer: Answer, warned: Sequence[str]) -> Answer:
    if answer is None or not warned:
        return answer
    return {**answer, "warnings": [*answer.get("warnings", ()), *warned]}


class Tools:
    """All tools of one server, in fixed order."""

    #: Additional instructions for clients, which follow the usual instructions.
    told = ""

    def __init__(self, using: Parts, tools: Sequence[Tool]) -> None:
        """Create the registry. `tools` contains the tools of all capabilities, in the order of the listing.

        While notes are still being read at the start, answers about notes say so, and writes wait until all
        notes are known.
        """
        server = using.get(ServerConfig)
        self._notes = using.get(NotePorts)
        self._opening = using.get(Opening)
        self._using = using
        has_connectors = server.tools == CONNECTOR or server.public_url is not None
        self._by_name = {
            tool.name: tool
            for tool in tools
            if (server.legacy_tools or not tool.is_legacy) and (has_connectors or tool.profile != CONNECTOR)
        }
        self._listed = self._specs(lambda tool: is_listed(tool, server))
        #: Additional tools for clients that are connected through OAuth.
        self._for_connectors = (
            () if server.tools == CONNECTOR else self._specs(lambda tool: tool.profile == CONNECTOR)
        )
        self._outcome_status = using.get(ServerConfig).is_plain
        #: Maximum size of an answer in characters of JSON. 0 means no limit.
        self._max_answer_chars = server.answer_limit
        self._is_compact = using.get(ServerConfig).answers_compactly
        self._meter = ToolMeter(using.get(Metrics))
        begin_tools(using.get(Metrics), tools, has_connectors=has_connectors)
        self._admission = Admission()
        self._secrets = SecretPolicy(using.get(StorageConfig).secrets)
        self._told = using.get(AgentProjects)

    def acting_as(self, principal: Principal) -> ActingTools:
        """Return the tools for a caller, with the caller's rights and identity."""
        return ActingTools(self, principal)

    def _specs(self, is_shown: Callable[[Tool], bool]) -> tuple[tuple[Tool, ToolSpec], ...]:
        is_short = self._using.get(ServerConfig).tools != PROFILES[-1]
        return tuple(
            (tool, tool.spec(is_short=is_short)) for tool in self._by_name.values() if is_shown(tool)
        )

    def listed(self, principal: Principal = OWNER) -> Sequence[ToolSpec]:
        """Return the tools that `tools/list` shows to a caller."""
        offered = (*self._listed, *self._for_connectors) if principal.is_connector else self._listed
        shown = (spec_for(principal, tool, spec) for tool, spec in offered)
        return tuple(spec for spec in shown if spec is not None)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        principal: Principal = COMMAND,
        *,
        is_whole: bool = False,
    ) -> Answer:
        """Call a tool. Domain errors and refusals of the caller are returned as error envelopes.

        Without a `principal`, the caller is code in this process. External calls use `acting_as`. With
        `is_whole`, the answer is not cut, and a refusal is raised. Lithos's own commands and pages get full
        answers for every value of `server.answers`.

        Raises `UnknownTool` and `ArgumentFault`. They become protocol errors.
        """
        tool = self._by_name.get(name)
        if tool is None or (tool.profile == OWN and not principal.is_own):
            raise UnknownTool(name)
        began = perf_counter()
        answer: Answer = None
        # Decided before the call, because the start may be completed during a call that has already skipped
        # files.
        is_early = tool.reads_notes and not self._opening.complete.is_set()
        outcome = "exception"
        error: str | None = "exception"
        try:
            arguments = admit(principal, tool, self._as_meant(tool, arguments))
            arguments = await tool.reader.with_ids(arguments, self._notes.locate, self._notes.identify)
            given, offset = self._as_spelled(tool, tool.reader.read(arguments)), tool.reader.offset(arguments)
            if tool.writes_notes:
                await self._opening.wait_known()
            elif is_early and "path" not in arguments:
                await self._opening.wait_recalled()
            answer = await self._serve_once(tool, given, principal, arguments)
            if not is_whole:
                answer = self._fit(tool, answer, offset, given, is_full=principal.is_own)
            if tool.paged.content and answer is not None:
                self._remember(given, answer, offset, principal)
            outcome, error = "ok", None
        except LithosError as refusal:
            outcome, error = "error", refusal.code
            if is_whole:
                raise
            told = self._envelope(refusal)
            told = compact_refusal(told) if self._is_compact and not principal.is_own else told
            answer = fit(told, UNPAGED, self._max_answer_chars, 0, is_skipped=True)
        except ArgumentFault:
            outcome, error = "error", "invalid_arguments"
            raise
        finally:
            seconds = perf_counter() - began
            self._meter.record(tool, arguments.get("mode"), answer, outcome, error, seconds)
        if not is_early or answer is None:
            return answer
        return {**answer, **self._early(answer, is_of_one="path" in arguments)}

    def _suspected(self, tool: Tool, arguments: Mapping[str, Any], principal: Principal) -> tuple[str, ...]:
        """Return the warnings about secrets that an agent stores outside notes.

        Raises `InvalidInput` if `storage.secrets` refuses them.
        """
        if "R" in tool.hints or tool.counts or principal.is_own:  # The writer checks what counts as a note.
            return ()
        return self._secrets.of_arguments(arguments)

    def _early(self, answer: Mapping[str, Any], *, is_of_one: bool) -> dict[str, Any]:
        """Return the keys that report that notes may be missing.

        A search index that has failed is a second possible reason.
        """
        told: dict[str, Any] = {"indexing": dict(self._opening.progress()), "degraded": True}
        is_blamed = "failed_backends" in answer or answer.get("code") == SearchBackendFailed.code
        if is_of_one or (answer.get("status") == "error" and not is_blamed):
            return told
        own = "" if is_blamed else answer.get("message", "")
        return {**told, "message": f"{self._opening.told()} {own}".rstrip()}

    def read(self, name: str, arguments: Mapping[str, Any], principal: Principal) -> ToolCall:
        """Return the checked arguments of a call. Raises `UnknownTool`, `ArgumentFault` and `LithosError`."""
        tool = self._by_name.get(name)
        if tool is None or (tool.profile == OWN and not principal.is_own):
            raise UnknownTool(name)
        given: ToolCall = tool.reader.read(admit(principal, tool, self._as_meant(tool, arguments)))
        return given

    def _as_meant(self, tool: Tool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments. With `write_outcomes: status`, `agent` is renamed to the filter for agents.

        Clients of upstream's Lithos use `agent` as a filter. All other clients use it for the name of the
        caller.
        """
        name, agent = tool.reader.agent_filter, arguments.get(_FILTER)
        if not self._using.get(ServerConfig).is_plain or name is None or _said(agent) is None:
            return arguments
        if _said(arguments.get(name)) is not None:
            return arguments
        return {key: value for key, value in arguments.items() if key != _FILTER} | {name: agent}

    async def with_ids(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments with ids in place of note paths.

        Raises the errors of `ArgumentReader.with_ids`.
        """
        return await self._by_name[name].reader.with_ids(arguments, self._notes.locate, self._notes.identify)

    def fitted(
        self, name: str, answer: Mapping[str, Any], arguments: Mapping[str, Any], principal: Principal
    ) -> Answer:
        """Return an answer that was merged from several answers, cut to the usual size limit of the tool."""
        tool = self._by_name[name]
        given, offset = self.read(name, arguments, principal), tool.reader.offset(arguments)
        return self._fit(tool, answer, offset, given, is_full=principal.is_own)

    async def _serve(
        self, tool: Tool, given: ToolCall, principal: Principal, arguments: Mapping[str, Any]
    ) -> Answer:
        """Serve a call in the project of its caller."""
        if principal.project is None and not self._told.known:  # the usual case, without further steps
            return await self._serve_here(tool, given, principal)
        with working_in(self._project_of(tool, principal, arguments)):
            return await self._serve_here(tool, given, principal)

    def _project_of(self, tool: Tool, principal: Principal, arguments: Mapping[str, Any]) -> str | None:
        """Return the project of a call: the project that the request names, or else the agent's project.

        A call with a client session comes from a hook. Its project is remembered for its agent, but a reader
        cannot choose the project of what other agents write.
        """
        project, session = principal.project, principal.session
        if principal.is_own or (project is not None and session is None):
            return project
        agent = _agent_of(tool, arguments)
        if agent is None:
            return project
        if project is None:
            return self._told.find(agent)
        if session is not None and (principal.agent is not None or principal.may("write")):
            self._told.tell(session, agent, project)
        return project

    async def _serve_here(self, tool: Tool, given: ToolCall, principal: Principal) -> Answer:
        """Serve a call. While a change is running, a heavy read may have to wait."""
        if tool.is_heavy:
            async with self._admission.reading():
                return await given.answer(self._using)
        if "R" in tool.hints:
            return await given.answer(self._using)
        with self._admission.changing(), acting_as(principal):
            return await given.answer(self._using)

    def _as_spelled(self, tool: Tool, given: Any) -> Any:
        """Return the arguments with a path prefix in the spelling of the existing folders."""
        if not tool.reader.has_prefix or not given.path_prefix:
            return given
        return evolve(given, path_prefix=self._notes.as_spelled(given.path_prefix))

    async def _serve_once(
        self,
        tool: Tool,
        given: ToolCall,
        principal: Principal,
        arguments: Mapping[str, Any],
    ) -> Answer:
        """Serve a call. If the caller has already used the `request_id`, return the first answer.

        Secrets in arguments are refused before anything of the call is stored.
        """
        warned = self._suspected(tool, arguments, principal)
        request_id = tool.reader.request_id(arguments)
        if request_id is None:
            answer = await self._serve(tool, given, principal, arguments)
            return _with_warnings(answer, warned)
        answer = await serve_once(
            self._using,
            tool,
            given,
            (principal, _agent_of(tool, arguments)),
            request_id,
            lambda call: self._serve(tool, call, principal, arguments),
        )
        return _with_warnings(answer, warned)

    def _fit(self, tool: Tool, answer: Answer, offset: int, given: object, *, is_full: bool) -> Answer:
        """Return the answer within the size limit. It is compact unless `is_full` is set."""
        if answer is None or tool.fits_itself:
            return answer
        limit, skips, paged = self._max_answer_chars, tool.reader.skips, tool.paged
        if is_full or not self._is_compact or tool.is_legacy or tool.profile == CONNECTOR:
            fitted = fit(answer, paged, limit, offset, is_skipped=skips)
        else:
            said = compact(answer, tool.sparing, given, limit=limit, skip=0 if skips else offset)
            fitted = fit(said, paged, limit, offset, is_skipped=skips)
            if paged.totals == "each":
                drop_plain_totals(fitted, paged.rows)
        return (
            AnswerWithImage(fitted, answer.media_type, answer.data)
            if type(answer) is AnswerWithImage
            else fitted
        )

    def _remember(
        self, given: ToolCall, answer: Mapping[str, Any], offset: int, principal: Principal
    ) -> None:
        """Record which part of a note's text was returned."""
        holder = answer.get("document", answer)
        text = holder.get("content") if holder else None
        if text and "id" in holder:
            agent = getattr(given, "agent_id", None) or principal.agent
            start = None if "section" in answer else max(0, offset)
            self._notes.see_part(holder["id"], agent, text, start, is_cut="next_offset" in holder)

    def _envelope(self, refusal: LithosError) -> Mapping[str, Any]:
        own_status = self._outcome_status and refusal.code in WRITE_OUTCOMES
        return envelope(refusal, refusal.code if own_status else "error")


@frozen
class ActingTools:
    """Tools of a server for one caller. Creating this view of `Tools` takes almost no time."""

    _tools: Tools
    _principal: Principal

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools that `tools/list` shows to this caller."""
        return self._tools.listed(self._principal)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool as this caller. See `Tools.call`."""
        return await self._tools.call(name, arguments, self._principal)
