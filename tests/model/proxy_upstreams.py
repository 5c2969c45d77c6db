"""The upstreams of a proxy under test: one tells the truth, the other may say anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field, frozen

from mcp_tasks_proto import MODERN_VERSION, TASKS_EXTENSION
from mcp_tasks_proto.proxy import SendUpstream
from mcp_tasks_proto.testing.model.proxy import Said
from mcp_tasks_proto.wire.jsonrpc import result_message
from mcp_tasks_proto.wire.schema import timestamp

__all__ = ["FORM", "ROOTS", "STATUSES", "TOOL", "SomeUpstream", "Spoken"]

TOOL: Final = "make"
STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "of up-1 by the tool"}]}
FORM: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {
        "message": "Which?",
        "requestedSchema": {
            "type": "object",
            "properties": {"it": {"type": "string"}},
            "required": ["it"],
        },
    },
}
ROOTS: Final[dict[str, Any]] = {"method": "roots/list"}
NEEDS_TASKS: Final[dict[str, Any]] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
LONG_MS: Final = 90_000


@frozen
class Spoken:
    """One answer, as it comes back, and as the reference model is told of it."""

    said: Said
    message: Any = None
    """``None``, as well: the transport failed."""
    http_status: int | None = None
    transport: bool = False


def _result(result: Mapping[str, Any]) -> Callable[[int], Spoken]:
    return lambda name: Spoken(Said(result=result), result_message(name, result))


def _error(code: int, message: str = "no", data: Any = None) -> Callable[[int], Spoken]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return lambda name: Spoken(Said(error=error), {"jsonrpc": "2.0", "id": name, "error": error})


TROUBLES: Final[tuple[Callable[[int], Spoken], ...]] = (
    lambda _: Spoken(Said(problem="unavailable", sent=True), transport=True),
    lambda _: Spoken(Said(problem="unavailable", sent=False), transport=True),
    lambda _: Spoken(Said(problem="unavailable"), None, 502),
    lambda _: Spoken(Said(problem="refused"), None, 400),
    lambda name: Spoken(Said(problem="invalid"), result_message(name + 1000, {})),
    _error(-32603, "down"),
)
"""What can happen to any request, whoever is asked."""
ODDITIES: Final[tuple[Callable[[int], Spoken], ...]] = (
    _error(-32601),
    _error(-32021, data=NEEDS_TASKS),
    _error(-32022),
    _result({}),
    _result({"resultType": "task"}),
    _result({"resultType": "odd"}),
)


@define(eq=False, kw_only=True)
class SomeUpstream:
    """A server with one tool. Its ids are those of any other server of this kind."""

    name: str
    honest: bool
    serves_tasks: bool = True
    insists: bool = False
    """Whether its tool cannot do without a task (NEG.5)."""
    tasks: dict[str, dict[str, Any]] = field(factory=dict)
    """The truth about its tasks, by its own ids."""

    def answers(self, sent: SendUpstream, now: int) -> list[Callable[[int], Spoken]]:
        """What it may answer: first what is true, then what can happen to anybody, then all the rest."""
        params = sent.message["params"]
        methods: dict[str, Callable[[dict[str, Any], int], list[dict[str, Any]]]] = {
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call,
            "tasks/get": lambda params, now: self.views(params["taskId"], now),
            "tasks/update": lambda params, now: self._acknowledge(params["taskId"]),
            "tasks/cancel": lambda params, now: self._acknowledge(params["taskId"]),
            "subscriptions/listen": lambda params, now: [{}],
        }
        true = [_result(one) for one in methods[sent.message["method"]](params, now)]
        calls = sent.message["method"] == "tools/call"
        if calls and self.insists and not declares(params):
            true = [_error(-32021, data=NEEDS_TASKS)]
        if not true:
            true = [_error(-32602, "unknown")]
        asked = params.get("taskId", "nothing")
        about_it = _error(-32602, f"of {asked}", {"at": asked, "not": f"{asked}x"})
        return [*true, *TROUBLES, *(() if self.honest else (about_it, *ODDITIES))]

    def _discover(self, _: dict[str, Any], __: int) -> list[dict[str, Any]]:
        capabilities: dict[str, Any] = {"tools": {}}
        if self.serves_tasks:
            capabilities["extensions"] = {TASKS_EXTENSION: {}}
        found = {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities, "ttlMs": LONG_MS}
        odd = [{**found, "supportedVersions": ["1999-01-01"]}, {**found, "capabilities": {}}]
        return [found] if self.honest else [found, *odd]

    def _list_tools(self, _: dict[str, Any], __: int) -> list[dict[str, Any]]:
        listed = {"tools": [{"name": TOOL, "inputSchema": {"type": "object"}}], "ttlMs": LONG_MS}
        return [listed] if self.honest else [listed, {"tools": [], "ttlMs": 10}]

    def _call(self, params: dict[str, Any], now: int) -> list[dict[str, Any]]:
        declared = declares(params)
        done = {"resultType": "complete", **DONE}
        made = {"resultType": "task", **self.new(now)}
        asks = {"resultType": "input_required", "inputRequests": {"a": FORM}, "requestState": "its own"}
        if self.honest:
            return [made, done, asks] if declared and self.serves_tasks else [done, asks]
        task_id = made["taskId"]
        leaky = {**made, "result": DONE, "requestState": "state", "x-own": {task_id: [f"at {task_id}"]}}
        foreign = {**asks, "inputRequests": {"a": ROOTS}}
        return [made, done, leaky, asks, foreign, {**made, "status": "odd"}, {**made, "taskId": ""}]

    def new(self, now: int) -> dict[str, Any]:
        """Return the view of a new task; it is there once :meth:`made` is told of it."""
        return {
            "taskId": f"up-{len(self.tasks) + 1}",
            "status": "working",
            "createdAt": timestamp(now),
            "lastUpdatedAt": timestamp(now),
            "ttlMs": [40_000, None][len(self.tasks) % 2],
            "pollIntervalMs": [100, 1_500][len(self.tasks) % 2],
        }

    def made(self, result: Mapping[str, Any]) -> None:
        """The answer to a call made this task."""
        task = {name: value for name, value in result.items() if name in self.new(0)}
        self.tasks.setdefault(task["taskId"], task)

    def views(self, task_id: str, now: int) -> list[dict[str, Any]]:
        """What it may say of a task; the truth first."""
        true = self.tasks.get(task_id)
        if self.honest:
            return [] if true is None else [true]
        asked = true or {**self.new(now), "taskId": task_id}
        stays = {name: asked[name] for name in self.new(now)}
        failed = {"code": -32001, "message": f"{task_id} broke", "data": [task_id, {task_id: "up-1x"}]}
        return [
            asked,
            {**stays, "status": "completed", "result": DONE},
            {**stays, "status": "failed", "error": failed},
            {**stays, "status": "cancelled", "statusMessage": f"{task_id} of ({task_id})"},
            {**stays, "status": "working"},
            {**stays, "taskId": "up-77"},
            {**stays, "status": "completed"},
            {**stays, "status": "completed", "result": {"resultType": "task"}},
            {**stays, "status": "input_required", "inputRequests": {"a": ROOTS, "b": FORM}},
            {**stays, "status": "input_required"},
        ]

    def _acknowledge(self, task_id: str) -> list[dict[str, Any]]:
        return [{}] if task_id in self.tasks else []

    # -- the truth changes -----------------------------------------------------------------------------------

    def move(self, task_id: str, how: str, now: int) -> None:
        """A task asks, goes on, or ends; an ended one stays as it is (LIFE.1)."""
        task = self.tasks[task_id]
        if task["status"] in ("completed", "failed", "cancelled"):
            return
        changes: dict[str, dict[str, Any]] = {
            "working": {"statusMessage": f"{task_id} goes on, not {task_id}x"},
            "input_required": {"inputRequests": {"a": FORM, "b": FORM}},
            "completed": {"result": DONE},
            "failed": {"error": {"code": -32001, "message": f"{task_id} broke", "data": {"at": task_id}}},
            "cancelled": {},
        }
        base = {name: task[name] for name in self.new(now)}
        self.tasks[task_id] = {**base, "status": how, "lastUpdatedAt": timestamp(now), **changes[how]}


def declares(params: Mapping[str, Any]) -> bool:
    """Whether a request declares tasks."""
    declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    return TASKS_EXTENSION in declared.get("extensions", {})
