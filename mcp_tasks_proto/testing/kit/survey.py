"""What the kit finds out of a server before it judges it: eras, tools, and what the tools do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Need, Unseen
from mcp_tasks_proto.testing.kit.desk import SILENT, Desk, Role, ToolCall, task_of
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, TASKS_EXTENSION

__all__ = ["Unlisted", "Unreachable", "survey"]

PAGES: Final = 20
"""Pages of tools that are read at most."""

SHORT_TTL_MS: Final = 10_000
"""A task that lives no longer than this can be seen to expire."""


HINTS: Final[Mapping[int, str]] = {
    401: "it wants to know who asks (--header has what it wants)",
    403: "it lets nobody in who asks like this",
    404: "its endpoint may have another path",
    405: "its endpoint may have another path",
    410: "its endpoint may have another path",
}
"""What may be wrong where a server, or what stands before it, answers everything with this status."""
CLOSED: Final = frozenset({401, 403})
"""Statuses that keep the kit out, whatever is said with them."""


class Unreachable(Exception):  # noqa: N818 - named for what happened
    """Nobody answers at all, or only to say that others are answered."""


class Unlisted(Exception):  # noqa: N818 - as above
    """Tools were named that the server does not list; ``names`` are they."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(*names)
        self.names = tuple(names)


def survey(desk: Desk) -> Script[None]:
    """Find out what the server is. Raises :class:`Unreachable`, and :class:`Unlisted` before any call."""
    desk.lacking = {need: need.value for need in Need}
    del desk.lacking[Need.HTTP if desk.speaks_http else Need.STDIO]
    if desk.has_other_caller:
        del desk.lacking[Need.OTHER_CALLER]
    discovered = yield from _discover(desk)
    if desk.speaks_http:
        _see_that_somebody_answers(desk, discovered)
    initialized = yield from _initialize(desk)
    _see_that_somebody_answers(desk, discovered, initialized)
    _see_that_it_is_a_server(discovered, initialized)
    desk.calls.update(desk.settings.calls)
    if Need.MODERN not in desk.lacking:
        if (yield from _list_tools(desk)):
            _see_that_tools_are_listed(desk)
        yield from _listen(desk)
        if desk.settings.search:
            yield from _search(desk)


def _see_that_somebody_answers(desk: Desk, *answers: Answer) -> None:
    """Raise :class:`Unreachable` where nobody does.

    On stdio, a server of 2025-11-25 may be silent until it is initialized.
    """
    if all(one.response is None and one.status is None for one in answers):
        waited = f"within {desk.settings.answer_ms} ms (--wait lengthens that)"
        trouble = answers[0].trouble or "there is no answer"
        raise Unreachable(f"server/discover was not answered {waited}" if trouble == SILENT else trouble)


def _see_that_it_is_a_server(*answers: Answer) -> None:
    """Raise :class:`Unreachable` where something else answers, or keeps everybody out."""
    statuses = {one.status for one in answers}
    if len(statuses) > 1 or any(one.result is not None for one in answers):
        return
    status = answers[0].status or 0
    spoke = any(one.error is not None for one in answers)
    hint = HINTS.get(status)
    if 300 <= status < 400:
        hint = f"it is at {answers[0].headers.get('location', 'another address')!r}"
    if hint is not None and (status in CLOSED or not spoke):
        raise Unreachable(f"everything is answered with HTTP {status}: {hint}")


def _see_that_tools_are_listed(desk: Desk) -> None:
    """Raise :class:`Unlisted` where somebody named tools that are not: a slip, before anything is called."""
    named = {call.tool for call in desk.settings.calls.values()} | desk.settings.skipped
    missing = sorted(named - desk.tools.keys())
    if missing:
        raise Unlisted(missing)


def _discover(desk: Desk) -> Script[Answer]:
    answer = yield from desk.tried(desk.request("server/discover"))
    if answer.response is None and answer.over_limit:
        raise Unreachable(f"its answer cannot be taken: {answer.trouble}")
    if answer.result is not None:
        del desk.lacking[Need.MODERN]
        desk.discovered = answer.result
        if TASKS_EXTENSION in _object(_object(answer.result.get("capabilities")).get("extensions")):
            del desk.lacking[Need.TASKS]
    elif answer.response is not None and (yield from _is_modern(desk)):
        del desk.lacking[Need.MODERN]
    return answer


def _is_modern(desk: Desk) -> Script[bool]:
    """Find out whether a server that is not to be discovered answers other modern requests."""
    answer = yield from desk.tried(desk.request("tools/list"))
    return isinstance(_object(answer.result).get("resultType"), str)


def _initialize(desk: Desk) -> Script[Answer]:
    """Open a session of 2025-11-25 where there are any."""
    params = {"protocolVersion": LEGACY_VERSION, "capabilities": _LEGACY_CLIENT, "clientInfo": _CLIENT}
    post = desk.legacy("initialize", params).with_header("MCP-Protocol-Version")
    answer = yield from desk.tried(post)
    if _object(answer.result).get("protocolVersion") != LEGACY_VERSION:
        return answer
    del desk.lacking[Need.LEGACY]
    desk.initialized = (answer,)
    desk.session = answer.headers.get("mcp-session-id")
    stream = yield from desk.opened(desk.legacy("notifications/initialized", id=None))
    if desk.speaks_http:
        yield from desk.next_message(stream)
    yield from desk.shut(stream)
    listed = yield from desk.tried(desk.legacy("tools/list", {}))
    desk.legacy_tools = _by_name(listed)
    desk.legacy_tasks = _object(_object(_object(answer.result).get("capabilities")).get("tasks"))
    if "call" in _object(_object(desk.legacy_tasks.get("requests")).get("tools")):
        del desk.lacking[Need.LEGACY_TASKS]
    return answer


_CLIENT: Final = {"name": "mcp-tasks kit", "version": "1"}
_LEGACY_CLIENT: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}


def _list_tools(desk: Desk) -> Script[bool]:
    """Read the list of tools; return whether it was read to its end."""
    cursor: Any = None
    for _ in range(PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        answer = yield from desk.tried(desk.request("tools/list", params))
        desk.tools.update(_by_name(answer))
        cursor = _object(answer.result).get("nextCursor")
        if not isinstance(cursor, str):
            return isinstance(_object(answer.result).get("tools"), list)
    return False


def _listen(desk: Desk) -> Script[None]:
    """Find out whether there are listen streams."""
    stream = yield from desk.opened(desk.request("subscriptions/listen", {"notifications": {}}))
    yield from desk.next_message(stream)
    answer = yield from desk.shut(stream)
    if answer.error is None:
        del desk.lacking[Need.LISTEN]


# -- what the tools do ---------------------------------------------------------------------------------------


def _search(desk: Desk) -> Script[None]:
    """Call the tools that nobody named, once each, until one of each kind is known."""
    left_alone = desk.settings.skipped | {call.tool for call in desk.calls.values()}
    candidates = [name for name, tool in desk.tools.items() if name not in left_alone and not _destroys(tool)]
    for name in candidates[: desk.settings.searched_tools]:
        if len(desk.calls) < len(Role):
            yield from _try(desk, ToolCall(name))


def _destroys(tool: Mapping[str, Any]) -> bool:
    """Whether a tool says that it destroys something."""
    return _object(tool.get("annotations")).get("destructiveHint") is True


def _try(desk: Desk, call: ToolCall) -> Script[None]:
    answer = yield from desk.tried(desk.call(call), desk.settings.look_ms)
    result, task_id = answer.result, task_of(answer)
    if result is None:
        return
    if task_id is None:
        kind = result.get("resultType")
        if kind == "input_required":
            desk.calls.setdefault(Role.ASKING_FIRST, call)
        elif kind == "complete" and result.get("isError") is not True:
            desk.calls.setdefault(Role.PLAIN, call)
        return
    ttl_ms = result.get("ttlMs")
    if isinstance(ttl_ms, int) and 0 < ttl_ms <= SHORT_TTL_MS:
        desk.calls.setdefault(Role.EXPIRING, call)
    role = yield from _what_it_does(desk, task_id)
    if role is not None:
        desk.calls.setdefault(role, call)
    if task_id in desk.running:
        yield from desk.tried(desk.request("tasks/cancel", {"taskId": task_id}))


def _what_it_does(desk: Desk, task_id: str) -> Script[Role | None]:
    try:
        seen = yield from desk.watch(task_id, "input_required", within_ms=desk.settings.look_ms)
    except (Broken, Unseen):
        return None
    view = Role.SLOW if seen is None else _role_of(_object(seen.result))
    return view


def _role_of(view: Mapping[str, Any]) -> Role | None:
    match view.get("status"):
        case "input_required":
            return Role.ASKING
        case "completed" if _object(view.get("result")).get("isError") is True:
            return Role.ERRING
        case "completed":
            return Role.COMPLETING
        case "failed":
            return Role.FAILING
    return None


# -- reading what anybody may have sent ----------------------------------------------------------------------


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _by_name(answer: Answer) -> dict[str, Mapping[str, Any]]:
    tools = _object(answer.result).get("tools")
    found = [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    return {tool["name"]: tool for tool in found if isinstance(tool.get("name"), str)}
