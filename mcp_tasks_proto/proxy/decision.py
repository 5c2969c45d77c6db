"""THE decision of the proxy: is this call on the task path (PRX)?

Two pure and total functions. :func:`decide` is asked before anything is sent, and names the row of the table
that applies, with its reason. :func:`judge_answer` is asked when the upstream has answered, and finds the one
case that no request can be in: a task that nobody asked for. No other code decides on task or no task.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from attrs import frozen

from mcp_tasks_proto.settings import TaskSupport

__all__ = [
    "Circumstances",
    "Decision",
    "DecisionReason",
    "Era",
    "Kind",
    "Row",
    "decide",
    "find_row",
    "judge_answer",
]


class Era(Enum):
    """Which protocol a side speaks."""

    MODERN = "2026-07-28"
    LEGACY = "2025-11-25"

    # Members are singletons and compared by identity; Enum's own hash goes through a Python call.
    __hash__ = object.__hash__


class Row(Enum):
    """The rows of the table."""

    RELAY = "relay"
    """Declare tasks upstream; relay a task or a complete result."""
    TRANSLATE = "translate"
    """The upstream is legacy: send ``params.task``, and translate both ways."""
    ORDINARY = "ordinary"
    """The caller could take a task; there will be none."""
    PROMOTE = "promote"
    """An ordinary call; past the soft deadline it becomes a task of the proxy's own (PRX.16)."""
    UNDECLARED = "undeclared"
    """The caller takes no tasks: never declare them upstream; a -32021 of the upstream's is relayed."""
    COLLAPSE = "collapse"
    """Likewise, but that -32021 becomes rounds of input (PRX.17)."""
    BRIDGE = "bridge"
    """A legacy caller's ``params.task``, carried to the upstream's tasks and back."""
    HIDDEN = "hidden"
    """The legacy caller sees no task capability; its call is an ordinary one."""

    __hash__ = object.__hash__

    @property
    def declares(self) -> bool:
        """Whether the upstream hears that tasks are understood, so that it may answer with one."""
        return self in _DECLARING

    @property
    def promotes(self) -> bool:
        """Whether the call may become a task of the proxy's own."""
        return self is Row.PROMOTE


_DECLARING: Final = frozenset({Row.RELAY, Row.TRANSLATE, Row.BRIDGE})


class DecisionReason(Enum):
    """Why it is this row."""

    EVERYBODY_AGREES = "caller, proxy and upstream all take tasks"
    PROFILE = "the project's profile allows no tasks for this tool"
    GATE = "the feature gate is closed"
    TOOL = "the tool forbids tasks"
    UPSTREAM = "the upstream advertises no tasks"
    LEGACY_UPSTREAM = "the upstream has tasks of the legacy era"
    NOT_DECLARED = "this request does not declare tasks"
    NOT_ASKED = "the legacy caller asked for no task"
    NOT_BRIDGED = "legacy callers are not bridged"


@frozen(kw_only=True)
class Circumstances:
    """All that the decision depends on."""

    caller: Era
    declares: bool
    """Modern: this request declares the extension. Legacy: it has ``params.task``."""
    profile_allows: bool
    """Whether the project's profile allows tasks for this tool."""
    gate_open: bool
    """Whether the feature gates of the proxy and of this upstream are open."""
    upstream: Era
    """By its current discovery, as what follows."""
    upstream_tasks: bool
    """Whether it advertises tasks, of its own era."""
    tool: TaskSupport = TaskSupport.OPTIONAL
    """What its tool list says; the modern era has no such word."""
    promotion: bool = False
    collapse: bool = False
    bridging: bool = False


@frozen
class Decision:
    """One row, and why."""

    row: Row
    reason: DecisionReason


def decide(circumstances: Circumstances) -> Decision:
    """Decide on a call before anything of it is sent. Never raises."""
    if circumstances.caller is Era.LEGACY:
        return _decide_for_legacy(circumstances)
    if not circumstances.declares:
        row = Row.COLLAPSE if _may_collapse(circumstances) else Row.UNDECLARED
        return Decision(row, DecisionReason.NOT_DECLARED)
    if not circumstances.profile_allows:
        return Decision(Row.ORDINARY, DecisionReason.PROFILE)
    if (obstacle := _obstacle(circumstances)) is not None:
        return Decision(Row.PROMOTE if circumstances.promotion else Row.ORDINARY, obstacle)
    if circumstances.upstream is Era.LEGACY:
        return Decision(Row.TRANSLATE, DecisionReason.LEGACY_UPSTREAM)
    return Decision(Row.RELAY, DecisionReason.EVERYBODY_AGREES)


@cache
def find_row(
    *,
    caller: Era,
    declares: bool,
    profile_allows: bool,
    gate_open: bool,
    upstream: Era,
    upstream_tasks: bool,
    tool: TaskSupport,
    promotion: bool,
    collapse: bool,
    bridging: bool,
) -> Row:
    """Return the row that :func:`decide` names, once for each of the circumstances: there are not many."""
    return decide(
        Circumstances(
            caller=caller,
            declares=declares,
            profile_allows=profile_allows,
            gate_open=gate_open,
            upstream=upstream,
            upstream_tasks=upstream_tasks,
            tool=tool,
            promotion=promotion,
            collapse=collapse,
            bridging=bridging,
        )
    ).row


def _decide_for_legacy(circumstances: Circumstances) -> Decision:
    if not circumstances.declares:
        return Decision(Row.HIDDEN, DecisionReason.NOT_ASKED)
    if not circumstances.bridging:
        return Decision(Row.HIDDEN, DecisionReason.NOT_BRIDGED)
    if not circumstances.profile_allows:
        return Decision(Row.HIDDEN, DecisionReason.PROFILE)
    if (obstacle := _obstacle(circumstances)) is not None:
        return Decision(Row.HIDDEN, obstacle)
    return Decision(Row.BRIDGE, DecisionReason.EVERYBODY_AGREES)


def _obstacle(circumstances: Circumstances) -> DecisionReason | None:
    """Return what keeps the upstream's own tasks out, if anything does."""
    if not circumstances.gate_open:
        return DecisionReason.GATE
    if not circumstances.upstream_tasks:
        return DecisionReason.UPSTREAM
    if circumstances.tool is TaskSupport.FORBIDDEN:
        return DecisionReason.TOOL
    return None


def _may_collapse(circumstances: Circumstances) -> bool:
    """Whether the upstream's tasks could be had at all, if the policy is on."""
    return circumstances.collapse and circumstances.profile_allows and _obstacle(circumstances) is None


class Kind(Enum):
    """What an upstream's result is."""

    COMPLETE = "complete"
    INPUT_REQUIRED = "input_required"
    TASK = "task"
    UNASKED_TASK = "unasked_task"
    """The last row of the table: a task that nobody asked for. An error, and the task is cancelled."""
    UNKNOWN = "unknown"
    """Of a type that nobody knows."""


def judge_answer(method: str, result: Mapping[str, Any], *, declared: bool) -> Kind:
    """Say what a result is, given whether its request declared tasks. Only a ``tools/call`` can make one."""
    kind = result.get("resultType", "complete")
    if kind == "task":
        return Kind.TASK if declared and method == "tools/call" else Kind.UNASKED_TASK
    return _KINDS.get(kind, Kind.UNKNOWN) if isinstance(kind, str) else Kind.UNKNOWN


_KINDS: Final[Mapping[str, Kind]] = {"complete": Kind.COMPLETE, "input_required": Kind.INPUT_REQUIRED}
