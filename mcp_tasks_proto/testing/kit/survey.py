"""What the kit finds out of a server before it judges it: eras, tools, and what the tools do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_tasks_proto.testing.kit.acts import Script
from mcp_tasks_proto.testing.kit.checks import Answer, Broken, Need, Unseen
from mcp_tasks_proto.testing.kit.desk import Desk, Role, ToolCall, task_of
from mcp_tasks_proto.vocabulary import LEGACY_VERSION, TASKS_EXTENSION

__all__ = ["Unreachable", "survey"]

PAGES: Final = 20
"""Pages of tools that are read at most."""

SHORT_TTL_MS: Final = 10_000
"""A task that lives no longer than this can be seen to expire."""


KEPT_OUT: Final[Mapping[int, str]] = {
    401: "the server answers HTTP 401: it wants credentials, which --header gives",
    403: "the server answers HTTP 403: it refuses this caller, whose credentials --header gives",
}
"""What it means when the first request is answered like this."""


class Unreachable(Exception):  # noqa: N818 - named for what happened
    """Nobody answers at all, or only to say that others are answered."""


def survey(desk: Desk) -> Script[None]:
    """Find out what the server is. Raises :class:`Unreachable`."""
    desk.lacking = {need: need.value for need in Need}
    del desk.lacking[Need.HTTP if desk.speaks_http else Need.STDIO]
    if desk.has_other_caller:
        del desk.lacking[Need.OTHER_CALLER]
    trouble = yield from _discover(desk)
    answers = yield from _initialize(desk)
    if trouble is not None and not answers:
        raise Unreachable(trouble)
    if Need.MODERN not in desk.lacking:
        yield from _list_tools(desk)
        yield from _listen(desk)
        desk.calls.update(desk.settings.calls)
        if desk.settings.search:
            yield from _search(desk)


def _discover(desk: Desk) -> Script[str | None]:
    """Find out whether there are modern requests; return why there is no answer, where there is none.

    On stdio that may be a server of 2025-11-25, which may stay silent until it is initialized.
    """
    answer = yield from desk.tried(desk.request("server/discover"))
    if answer.result is None and answer.status is not None and answer.status in KEPT_OUT:
        raise Unreachable(KEPT_OUT[answer.status])
    if answer.response is None and answer.over_limit:
        raise Unreachable(f"its answer cannot be taken: {answer.trouble}")
    if answer.response is None and answer.status is None:
        trouble = answer.trouble or "there is no answer"
        if desk.speaks_http:
            raise Unreachable(trouble)
        return trouble
    if answer.result is not None:
        del desk.lacking[Need.MODERN]
        desk.discovered = answer.result
        if TASKS_EXTENSION in _object(_object(answer.result.get("capabilities")).get("extensions")):
            del desk.lacking[Need.TASKS]
    elif (yield from _is_modern(desk)):
        del desk.lacking[Need.MODERN]
    return None


def _is_modern(desk: Desk) -> Script[bool]:
    """Find out whether a server that is not to be discovered answers other modern requests."""
    answer = yield from desk.tried(desk.request("tools/list"))
    return isinstance(_object(answer.result).get("resultType"), str)


def _initialize(desk: Desk) -> Script[bool]:
    """Open a session of 2025-11-25 where there are any; return whether there was an answer."""
    params = {"protocolVersion": LEGACY_VERSION, "capabilities": _LEGACY_CLIENT, "clientInfo": _CLIENT}
    post = desk.legacy("initialize", params).with_header("MCP-Protocol-Version")
    answer = yield from desk.tried(post)
    if _object(answer.result).get("protocolVersion") != LEGACY_VERSION:
        return answer.response is not None
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
    return True


_CLIENT: Final = {"name": "mcp-tasks kit", "version": "1"}
_LEGACY_CLIENT: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}


def _list_tools(desk: Desk) -> Script[None]:
    cursor: Any = None
    for _ in range(PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        answer = yield from desk.tried(desk.request("tools/list", params))
        desk.tools.update(_by_name(answer))
        cursor = _object(answer.result).get("nextCursor")
        if not isinstance(cursor, str):
            return


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
