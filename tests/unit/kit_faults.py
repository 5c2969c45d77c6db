"""What servers can have wrong, and the check of the kit that has to see it: at least one fault for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.legacy.server import LegacyPolicy
from mcp_tasks_proto.testing.kit import Begun, Came, Ended, Fact, Post, Unreadable
from mcp_tasks_proto.wire.http import request_headers
from mcp_tasks_proto.wire.jsonrpc import encode
from tests.unit.kit_world import Fault, KitServer

DISCOVER: Final = "server/discover"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
META: Final = "io.modelcontextprotocol/"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

Planted = tuple[str, Callable[[], KitServer]]
"""The check that has to fail, and a server with the fault."""

ALL: Final[list[Planted]] = []


# -- ways to be wrong --------------------------------------------------------------------------------------


def plant(check: str, fault: Fault | None = None, **server: Any) -> None:
    """Note a fault, and the check that has to see it."""
    ALL.append((check, lambda: KitServer(fault=fault or Fault(), **server)))


def message_of(fact: Fact) -> Any:
    """Return the message that came; an empty one for anything else."""
    return fact.message if isinstance(fact, Came) and isinstance(fact.message, dict) else {}


def answers(alter: Callable[[Post, dict[str, Any]], Any]) -> Fault:
    """Change every message that comes: ``alter`` returns another, or ``None``, which leaves it as it is."""

    def says(post: Post, fact: Fact) -> Fact | None:
        if not isinstance(fact, Came):
            return fact
        changed = alter(post, json.loads(json.dumps(fact.message)))
        return fact if changed is None else Came(changed)

    return Fault(says=says)


def results(alter: Callable[[Post, dict[str, Any]], dict[str, Any] | None]) -> Fault:
    """Change the results of modern requests."""

    def change(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if post.era != "modern" or not isinstance(result, dict):
            return None
        changed = alter(post, result)
        return None if changed is None else {**message, "result": changed}

    return answers(change)


def views(alter: Callable[[dict[str, Any]], dict[str, Any] | None], *methods: str) -> Fault:
    """Change tasks as tasks/get shows them, and what other ``methods`` give."""

    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        shown = post.method in ("tasks/get", *methods) and "taskId" in result
        return alter(result) if shown else None

    return results(change)


def legacy_results(alter: Callable[[Post, dict[str, Any]], dict[str, Any] | None]) -> Fault:
    """Change the results of requests of 2025-11-25."""

    def change(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result")
        if post.era != "legacy" or not isinstance(result, dict):
            return None
        changed = alter(post, result)
        return None if changed is None else {**message, "result": changed}

    return answers(change)


def errors(code: int, other: int) -> Fault:
    """Give another code to an error."""

    def change(_: Post, message: dict[str, Any]) -> Any:
        if message.get("error", {}).get("code") != code:
            return None
        return {**message, "error": {**message["error"], "code": other}}

    return answers(change)


def statuses(status: int, other: int, when: Callable[[Post], bool] = lambda _: True) -> Fault:
    """Give another HTTP status to a response."""

    def says(post: Post, fact: Fact) -> Fact | None:
        wrong = isinstance(fact, Begun) and fact.status == status and when(post)
        return evolve(fact, status=other) if wrong else fact

    return Fault(says=says)


def headers(**changed: str) -> Fault:
    """Give other headers to every response."""
    values = {name.replace("_", "-"): value for name, value in changed.items()}

    def says(_: Post, fact: Fact) -> Fact | None:
        return evolve(fact, headers={**fact.headers, **values}) if isinstance(fact, Begun) else fact

    return Fault(says=says)


def reads(change: Callable[[Post], Post]) -> Fault:
    """Take what is sent for something else."""
    return Fault(reads=change)


def rewritten(post: Post, message: Any) -> Post:
    """Return a post with another message, and with the headers that go with that."""
    params = message.get("params", {})
    if post.era == "modern" and isinstance(params, dict) and isinstance(message.get("method"), str):
        fresh = dict(request_headers(message["method"], params, "2026-07-28"))
        kept = [one for one in post.headers if one[0] not in fresh]
        post = evolve(post, headers=(*kept, *fresh.items()))
    return evolve(post, message=message, body=encode(message))


def only_once(post: Post, message: Any) -> Post:
    """Return a post with another message, in the clothes that it has."""
    return evolve(post, message=message, body=encode(message))


def leniently(post: Post) -> Post:
    """Read a modern message whatever its headers say."""
    if isinstance(post.message, Mapping) and post.era == "modern" and "_meta" in post.params:
        return rewritten(post, post.message)
    return post


def params(change: Callable[[str | None, dict[str, Any]], dict[str, Any]]) -> Fault:
    """Read other params than those that were sent with modern requests."""

    def read(post: Post) -> Post:
        if post.era != "modern" or not isinstance(post.message, Mapping):
            return post
        if not isinstance(post.message.get("params"), Mapping):
            return post
        changed = change(post.method, json.loads(json.dumps(dict(post.params))))
        return only_once(post, {**post.message, "params": changed})

    return reads(read)


def declaring(*kinds: str, methods: tuple[str, ...]) -> Fault:
    """Take it that requests declare what they do not."""

    def change(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
        meta = given.get("_meta", {})
        declared = meta.get(f"{META}clientCapabilities")
        if method in methods and isinstance(declared, dict):
            for kind in kinds:
                if kind == EXTENSION:
                    declared.setdefault("extensions", {}).setdefault(EXTENSION, {})
                else:
                    declared.setdefault(kind, {})
        return given

    return params(change)


def instead(method: str, other: str) -> Fault:
    """Read requests of one method as those of another."""
    return reads(
        lambda post: rewritten(post, {**post.message, "method": other}) if post.method == method else post
    )


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what leaves members out."""
    return lambda given: {name: value for name, value in given.items() if name not in names}


def ended(result: dict[str, Any]) -> bool:
    """Whether a task has ended."""
    return result.get("status") in ("completed", "failed", "cancelled")


# -- WIRE, STD ---------------------------------------------------------------------------------------------

plant("what is not json", errors(-32700, -32600))
plant("what is no request", errors(-32600, -32602))
plant("what is no request", reads(lambda post: evolve(post, body=post.body.strip(b"[]"))))
plant("what is no request", statuses(400, 200))
plant("ids that are none", errors(-32600, -32603))
plant("params that are no object", errors(-32600, -32602))
for sloppy in (b'"kit":NaN,', b'"kit":"\\ud800",', b'"jsonrpc":"2.0","jsonrpc":"2.0",'):
    strict = b'"jsonrpc":"2.0",' if sloppy.count(b"jsonrpc") else b""
    plant(
        "json that is not strict",
        reads(
            lambda post, sloppy=sloppy, strict=strict: evolve(post, body=post.body.replace(sloppy, strict, 1))
        ),  # type: ignore[misc]
    )


def _shallow(post: Post) -> Post:
    if post.body.startswith(b'{"kit":[[['):
        return evolve(post, body=b"{" + post.body.partition(b"],")[2])
    return post


plant("nesting without end", reads(_shallow))


def _dies_of_depth() -> Fault:
    dead: list[bool] = []

    def says(post: Post, fact: Fact) -> Fact | None:
        if post.body.startswith(b'{"kit":[[['):
            dead.append(True)
        return Ended("the server is gone") if dead else fact

    return Fault(says=says)


plant("nesting without end", _dies_of_depth())
plant("ids come back as they were", answers(lambda _, message: {**message, "id": str(message.get("id"))}))
plant("ids come back as they were", answers(lambda _, message: {**message, "id": 1}))
plant(
    "notifications are not answered",
    reads(
        lambda post: (
            only_once(post, {**post.message, "id": 1}) if post.era == "none" and post.message else post
        )
    ),
    http=False,
)


def _takes_ids_twice(post: Post, fact: Fact) -> Fact | None:
    message = message_of(fact)
    if message.get("error", {}).get("code") == -32600 and post.method == DISCOVER:
        return Came({"jsonrpc": "2.0", "id": message.get("id"), "result": {"resultType": "complete"}})
    return fact


plant("ids in flight", Fault(says=_takes_ids_twice), http=False)
plant("results say their kind", results(lambda _, result: without("resultType")(result)))
plant("results say whose they are", settings={"identify": False})
plant("codes that are not to be used", errors(-32602, -32002))
plant("codes that are not to be used", errors(-32602, -32030))
plant("codes that are not to be used", errors(-32602, "no number"))  # type: ignore[arg-type]
plant(
    "what nobody knows",
    answers(
        lambda post, message: {"id": 1, "error": {"code": -32600}} if "kit" in (post.message or {}) else None
    ),
)
plant(
    "nothing but messages",
    Fault(
        says=lambda post, fact: (
            Unreadable("a line that is not JSON") if post.method == "kit/unknown" else fact
        )
    ),
    http=False,
)

# -- NEG ---------------------------------------------------------------------------------------------------


def _with_metadata(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
    meta = given.setdefault("_meta", {})
    meta.setdefault(f"{META}protocolVersion", "2026-07-28")
    meta.setdefault(f"{META}clientCapabilities", {})
    return given


def _with_good_metadata(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
    if given.get("_meta", {}).get(f"{META}clientCapabilities") == 1:
        given["_meta"][f"{META}clientCapabilities"] = {}
    return given


plant("metadata that is missing", params(_with_metadata))
plant("metadata of another type", params(_with_good_metadata))
plant("a version that is not served", errors(-32022, -32602))
plant(
    "a version that is not served",
    answers(
        lambda _, message: (
            {**message, "error": without("data")(message["error"])}
            if message.get("error", {}).get("code") == -32022
            else None
        )
    ),
)
plant(
    "a version that is not served",
    answers(
        lambda _, message: (
            {
                **message,
                "error": {**message["error"], "data": {"requested": "1900-01-01", "supported": []}},
            }
            if message.get("error", {}).get("code") == -32022
            else None
        )
    ),
)
plant("the order of the checks", errors(-32022, -32601))
plant("the order of the checks", errors(-32021, -32602))
plant(
    "unknown settings declare too",
    params(
        lambda _, given: (
            {
                **given,
                "_meta": {**given["_meta"], f"{META}clientCapabilities": {}},
            }
            if given.get("_meta", {}).get(f"{META}clientCapabilities", {})
            == {"extensions": {EXTENSION: {"kit": True}}}
            else given
        )
    ),
)
EVERY_TASK_METHOD: Final = ("tasks/get", "tasks/update", "tasks/cancel")
plant("task methods undeclared", declaring(EXTENSION, methods=EVERY_TASK_METHOD))
plant(
    "task methods undeclared",
    answers(
        lambda _, message: (
            {**message, "error": without("data")(message["error"])}
            if message.get("error", {}).get("code") == -32021
            else None
        )
    ),
)
plant("undeclared cancellation does nothing", declaring(EXTENSION, methods=("tasks/cancel",)))
plant("listening to tasks undeclared", declaring(EXTENSION, methods=("subscriptions/listen",)))


def _gives_tasks_to_all() -> Fault:
    return declaring(EXTENSION, methods=("tools/call",))


plant("a task tool undeclared", _gives_tasks_to_all())
plant(
    "a task tool undeclared",
    errors(-32021, -32602),
    tools=("greet", "spoil", "idle", "commission"),
)
plant("no handles for others", _gives_tasks_to_all())
plant("tasks that are not advertised", errors(-32601, -32602), tasks_enabled=False)
plant("task methods of another revision", instead("tasks/list", "tools/list"))
plant("task methods of another revision", statuses(404, 200))
plant(
    "asking for a task",
    results(lambda post, result: {"resultType": "complete", "task": {}} if "task" in post.params else None),
)
plant(
    "asking for a task",
    results(lambda post, result: {"resultType": "task", "taskId": "7"} if "task" in post.params else None),
)
for missing in ("supportedVersions", "capabilities", "ttlMs", "cacheScope"):
    plant(
        "discovery",
        results(
            lambda post, result, missing=missing: (
                without(missing)(result) if post.method == DISCOVER else None
            )  # type: ignore[misc]
        ),
    )


def _advertises(**more: Any) -> Fault:
    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        if post.method != DISCOVER:
            return None
        return {**result, "capabilities": {**result["capabilities"], **more}}

    return results(change)


plant("what is advertised", _advertises(tasks={"list": {}}))
plant("what is advertised", _advertises(extensions={EXTENSION: {"kit": 1}}))
plant(
    "initialize where it is not served",
    answers(
        lambda post, message: {"id": 1, "error": {"code": -32601}} if post.method == "initialize" else None
    ),
    legacy=None,
)
plant(
    "initialize where it is not served",
    answers(lambda post, message: {"id": 1, "result": {}} if post.method == "initialize" else None),
    legacy=None,
)
plant("unknown methods", errors(-32601, -32600))
plant("unknown methods", instead("kit/unknown", DISCOVER))
plant("input that was not declared", declaring("elicitation", methods=("tools/call",)))
plant(
    "input that was not declared",
    answers(
        lambda _, message: (
            {
                **message,
                "error": {**message["error"], "data": {"requiredCapabilities": {}}},
            }
            if message.get("error", {}).get("code") == -32021
            else None
        )
    ),
)

# -- LIFE --------------------------------------------------------------------------------------------------


def _late() -> Fault:
    """Tasks that are not there when they are looked at first."""
    asked: dict[str, int] = {}

    def change(post: Post, message: dict[str, Any]) -> Any:
        task_id = str(post.params.get("taskId"))
        if post.method != "tasks/get" or "result" not in message:
            return None
        asked[task_id] = asked.get(task_id, 0) + 1
        if asked[task_id] > 1:
            return None
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "unknown"}}

    return answers(change)


plant("a task is there at once", _late())


def _when_completed(**more: Any) -> Fault:
    return views(lambda view: {**view, **more} if view["status"] == "completed" else None)


plant("a task completes", _when_completed(result=None))
plant("a task completes", _when_completed(result={"resultType": "complete"}))


def _completed(change: Callable[[dict[str, Any]], dict[str, Any]], *, erred: bool = False) -> Fault:
    """Change completed tasks: those with ``isError``, or the others."""

    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        is_one = view["status"] == "completed" and view["result"].get("isError", False) is erred
        return change(view) if is_one else None

    return views(alter)


def _failed(view: dict[str, Any]) -> dict[str, Any]:
    return {**without("result")(view), "status": "failed", "error": {"code": 1, "message": "x"}}


plant("a task completes", _completed(_failed))
plant("a tool error is a result", _completed(_failed, erred=True))
plant("a tool error is a result", _completed(lambda view: {**view, "result": {}}, erred=True))


def _when_failed(**more: Any) -> Fault:
    return views(lambda view: {**view, **more} if view["status"] == "failed" else None)


plant("a task fails", _when_failed(error={"message": "no code"}))
plant(
    "a task fails",
    views(
        lambda view: (
            {**without("error")(view), "status": "completed", "result": {}}
            if view["status"] == "failed"
            else None
        )
    ),
)
plant("a failed task says why", views(without("statusMessage")))
plant("the result within", _when_completed(result={"content": []}))
plant(
    "the result within",
    _when_completed(
        result={"content": [], "resultType": "complete", "_meta": {f"{META}related-task": {"taskId": "7"}}}
    ),
)


def _undead() -> Fault:
    """Tasks that are working again after they ended."""
    ends: dict[str, int] = {}

    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        if not ended(view):
            return None
        ends[view["taskId"]] = ends.get(view["taskId"], 0) + 1
        return {**without("result", "error")(view), "status": "working"} if ends[view["taskId"]] > 1 else None

    return views(alter)


plant("an end is an end", _undead())
plant("no status after the end", _undead())
plant("cancelling what has ended", _undead())


def _restless() -> Fault:
    """lastUpdatedAt is the time of the look."""
    looks: list[None] = []

    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        looks.append(None)
        return {**view, "lastUpdatedAt": f"2026-07-28T00:00:00.{len(looks):03}Z"}

    return views(alter)


plant("an end is the same for ever", _restless())
plant("last updated at moves with the task", _restless())
plant("last updated at moves with the task", views(lambda view: {**view, "lastUpdatedAt": view["createdAt"]}))
plant("a look changes nothing", _restless())


def _makes_tasks_of_nothing(post: Post, message: dict[str, Any]) -> Any:
    if post.params.get("name") != "kit no such tool":
        return None
    return {
        "jsonrpc": "2.0",
        "id": message.get("id"),
        "result": {"resultType": "task", "taskId": "7", "status": "working"},
    }


def _succeeds_with_nothing(post: Post, message: dict[str, Any]) -> Any:
    if post.params.get("name") != "kit no such tool":
        return None
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"resultType": "complete", "content": []}}


plant("a call that fails first", answers(_makes_tasks_of_nothing))
plant("a call that fails first", answers(_succeeds_with_nothing))


plant("plain results stay plain", results(lambda _, result: without("resultType")(result)))
plant(
    "five statuses", views(lambda view: {**view, "status": "paused"} if view["status"] == "working" else None)
)
plant("create results are flat", views(lambda view: {**view, "task": {}}, "tools/call"))
plant("create results are seeds", views(lambda view: {**view, "error": {}}, "tools/call"))
plant("fields fit the status", views(without("inputRequests")))
plant(
    "fields fit the status",
    views(lambda view: {**view, "error": {}} if view["status"] == "working" else None),
)
plant("durations", views(without("ttlMs")))
plant("durations", views(lambda view: {**view, "ttlMs": 0}))
plant("durations", views(lambda view: {**view, "pollIntervalMs": 1.5}))
plant("timestamps", views(lambda view: {**view, "lastUpdatedAt": "today"}))
plant("timestamps", views(lambda view: {**view, "createdAt": view["lastUpdatedAt"]}))
plant(
    "timestamps of one kind",
    views(lambda view: {**view, "createdAt": "2026-07-28T00:00:00+00:00"}, "tools/call"),
)
plant("no legacy names", views(lambda view: {**view, "ttl": 1}))


class _Renamed:
    """Other ids for tasks, both ways."""

    def __init__(self, name: Callable[[int], str]) -> None:
        self._name = name
        self._own: dict[str, str] = {}

    def says(self, post: Post, fact: Fact) -> Fact | None:
        text = json.dumps(fact.message) if isinstance(fact, Came) else ""
        result = message_of(fact).get("result", {})
        if isinstance(result, dict) and result.get("resultType") == "task":
            self._own.setdefault(result["taskId"], self._name(len(self._own)))
        for own, told in self._own.items():
            text = text.replace(own, told)
        return Came(json.loads(text)) if text else fact

    def reads(self, post: Post) -> Post:
        body = post.body.decode("utf-8", "replace")
        names = dict(post.headers)
        for own, told in self._own.items():
            body = body.replace(f'"{told}"', f'"{own}"')
            if names.get("Mcp-Name") == told:
                post = post.with_header("Mcp-Name", own)
        if body == post.body.decode("utf-8", "replace"):
            return post
        return evolve(post, body=body.encode())


def renamed(name: Callable[[int], str]) -> Fault:
    """Give tasks other ids."""
    other = _Renamed(name)
    return Fault(says=other.says, reads=other.reads)


plant("ids cannot be guessed", renamed(lambda number: f"task-{number:04}"))
plant("ids cannot be guessed", answers(lambda post, message: _same_id(message)))
plant("ids fit a header", renamed(lambda number: f"task {number}"))


def _same_id(message: dict[str, Any]) -> Any:
    result = message.get("result", {})
    if result.get("resultType") != "task":
        return None
    return {**message, "result": {**result, "taskId": "the only one"}}


plant(
    "task results say complete",
    results(
        lambda post, result: {**result, "resultType": "task"} if post.method in EVERY_TASK_METHOD else None
    ),
)

# -- GET, UPD, CAN -----------------------------------------------------------------------------------------

plant("getting an unknown task", errors(-32602, -32603))
plant(
    "updating an unknown task",
    answers(
        lambda post, message: (
            {**message, "error": {"code": 1, "message": ""}}
            if post.method == "tasks/cancel" and "error" in message
            else None
        )
    ),
)
plant(
    "one answer for all unknown",
    answers(
        lambda post, message: (
            {**message, "error": {**message["error"], "message": f"no {post.params.get('taskId')}"}}
            if message.get("error", {}).get("code") == -32602
            else None
        )
    ),
)


def _acknowledges_all(post: Post, message: dict[str, Any]) -> Any:
    if post.method in ("tasks/update", "tasks/cancel") and message.get("error", {}).get("code") == -32602:
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"}}
    return None


plant("one answer for all unknown", answers(_acknowledges_all))
plant("updating an unknown task", answers(_acknowledges_all))
plant(
    "params without an id",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"resultType": "complete"}}
            if post.method == "tasks/get" and not isinstance(post.params.get("taskId"), str)
            else None
        )
    ),
)
plant("tasks of others", callers=("ada", "ada"))
plant(
    "tasks of others",
    Fault(
        reads=lambda post: evolve(post, caller=0),
        says=lambda post, fact: (
            Came({"id": 1, "error": {"code": -32602}}) if post.caller and isinstance(fact, Came) else fact
        ),
    ),
)


def _talkative(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
    return {**result, "task": {}} if post.method in ("tasks/update", "tasks/cancel") else None


plant("an update of nothing", results(_talkative))


def _forgetful(method: str) -> Fault:
    """After the first request of this method, questions are not shown any more."""
    forgot: set[str] = set()

    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        task_id = str(post.params.get("taskId"))
        if post.method == method:
            forgot.add(task_id)
        if post.method == "tasks/get" and task_id in forgot and "inputRequests" in result:
            return {**result, "inputRequests": {}}
        return None

    return results(change)


plant("an update of nothing", _forgetful("tasks/update"))
plant("answers to what was not asked", _forgetful("tasks/update"))
plant(
    "answers to what was not asked",
    answers(
        lambda post, message: (
            {**without("result")(message), "error": {"code": -32602, "message": "no"}}
            if "kit no such key" in post.params.get("inputResponses", {})
            else None
        )
    ),
)


def _deaf(post: Post) -> Post:
    if post.method == "tasks/update" and isinstance(post.message, Mapping):
        return only_once(post, {**post.message, "params": {**post.params, "inputResponses": {}}})
    return post


plant("an answer reaches its task", reads(_deaf))
plant("an answer reaches its task", results(_talkative))


def _unforgiving() -> Fault:
    known: set[str] = set()

    def change(post: Post, message: dict[str, Any]) -> Any:
        if post.method != "tasks/update" or not post.params.get("inputResponses"):
            return None
        for key in post.params["inputResponses"]:
            name = f"{post.params['taskId']} {key}"
            if name in known:
                return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "again?"}}
            known.add(name)
        return None

    return answers(change)


plant("the same answer twice", _unforgiving())


def _takes_anything(post: Post, fact: Fact) -> Fact | None:
    message = message_of(fact)
    if post.method == "tasks/update" and "error" in message:
        return Came({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"}})
    return fact


plant("an answer that is none", Fault(says=_takes_anything))
plant(
    "an answer that is none",
    answers(
        lambda post, message: (
            {**message, "error": {"code": -32602, "message": "no"}}
            if post.method == "tasks/update" and "error" in message
            else None
        )
    ),
)
plant("updating what has ended", results(_talkative))
plant("cancelling is acknowledged", results(_talkative))
plant(
    "cancelling is acknowledged",
    answers(
        lambda post, message: (
            {**without("result")(message), "error": {"code": -32601, "message": "no"}}
            if post.method == "tasks/cancel"
            else None
        )
    ),
)
plant("cancelling what has ended", results(_talkative))


def _never_stops(post: Post) -> Post:
    """Read a cancellation as an update of nothing, which is acknowledged just so."""
    if post.method != "tasks/cancel" or post.era != "modern":
        return post
    changed = {**post.message, "method": "tasks/update", "params": {**post.params, "inputResponses": {}}}
    return rewritten(post, changed)


plant("a cancelled task ends", reads(_never_stops))
plant("a waiting task is cancelled", reads(_never_stops))


def _revived() -> Fault:
    """An update after the end brings a cancelled task back."""
    updated: set[str] = set()

    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        task_id = str(post.params.get("taskId"))
        if post.method == "tasks/update":
            updated.add(task_id)
        if result.get("status") == "cancelled" and task_id in updated:
            return {**result, "status": "working"}
        return None

    return results(change)


plant("a waiting task is cancelled", _revived())
plant(
    "a waiting task is cancelled",
    views(
        lambda view: {**view, "status": "completed", "result": {}} if view["status"] == "cancelled" else None
    ),
)


def _cancels_by_notification() -> Fault:
    """notifications/cancelled cancels the task of the request."""
    made: dict[Any, str] = {}

    def says(post: Post, fact: Fact) -> Fact | None:
        result = message_of(fact).get("result", {})
        if isinstance(result, dict) and result.get("resultType") == "task":
            made[post.message["id"]] = result["taskId"]
        gone = [made.get(one) for one in cancelled]
        if result.get("taskId") in gone and post.method == "tasks/get":
            return Came(
                {"jsonrpc": "2.0", "id": post.message["id"], "result": {**result, "status": "cancelled"}}
            )
        return fact

    cancelled: list[Any] = []

    def read(post: Post) -> Post:
        if post.method == "notifications/cancelled":
            cancelled.append(post.params["requestId"])
        return post

    return Fault(reads=read, says=says)


plant("a notification cancels no task", _cancels_by_notification())

# -- INP ---------------------------------------------------------------------------------------------------


def _asks(**request: Any) -> Fault:
    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        if "inputRequests" not in view:
            return None
        return {
            **view,
            "inputRequests": {key: {**one, **request} for key, one in view["inputRequests"].items()},
        }

    return views(alter)


plant("what is asked is shown", _asks(method="kit/ask"))
plant(
    "what is asked is shown",
    views(lambda view: {**view, "inputRequests": {}} if "inputRequests" in view else None),
)
plant(
    "a round before a result",
    results(
        lambda post, result: (
            without("inputRequests", "requestState")(result)
            if result.get("resultType") == "input_required"
            else None
        )
    ),
)
plant(
    "a round before a result",
    results(
        lambda post, result: (
            {**result, "inputRequests": {"a": {"method": "kit/ask"}}}
            if result.get("resultType") == "input_required"
            else None
        )
    ),
)
plant("a task goes on when all is answered", _completed(_failed))
plant("one answer of several", _forgetful("tasks/update"))
plant("nothing undeclared is asked", declaring("elicitation", methods=("tools/call",)))
plant(
    "nothing undeclared is asked",
    results(
        lambda post, result: (
            {"resultType": "input_required", "inputRequests": {"a": {}}}
            if result.get("resultType") == "task"
            and "elicitation" not in post.params["_meta"][f"{META}clientCapabilities"]
            else None
        )
    ),
)


def _forgets_answers(method: str | None, given: dict[str, Any]) -> dict[str, Any]:
    return without("requestState", "inputResponses")(given)


plant(
    "a round is answered",
    answers(
        lambda post, message: (
            {**without("result")(message), "error": {"code": -32602, "message": "no"}}
            if "requestState" in post.params
            else None
        )
    ),
)
plant("a state that was tampered with", params(_forgets_answers))


def _shows_again() -> Fault:
    """A question that was answered is shown once more at the end."""
    asked: dict[str, Any] = {}
    gone: dict[str, int] = {}

    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        task_id = view["taskId"]
        if view.get("inputRequests"):
            asked[task_id] = view["inputRequests"]
            return None
        if task_id not in asked:
            return None
        gone[task_id] = gone.get(task_id, 0) + 1
        shown = {**without("result")(view), "status": "input_required", "inputRequests": asked[task_id]}
        return shown if gone[task_id] == 2 else None

    return views(alter)


def _changes_questions() -> Fault:
    looks: list[None] = []

    def alter(view: dict[str, Any]) -> dict[str, Any] | None:
        if "inputRequests" not in view:
            return None
        looks.append(None)
        asked = {
            key: {**one, "params": {"message": str(len(looks))}} for key, one in view["inputRequests"].items()
        }
        return {**view, "inputRequests": asked}

    return views(alter)


plant("keys are never used again", _changes_questions())
plant("keys are never used again", _shows_again())

# -- TTL ---------------------------------------------------------------------------------------------------


def _keeps_for_ever() -> Fault:
    known: dict[str, Any] = {}

    def change(post: Post, message: dict[str, Any]) -> Any:
        result = message.get("result", {})
        if isinstance(result, dict) and "taskId" in result:
            known[result["taskId"]] = {**result, "resultType": "complete"}
        task_id = post.params.get("taskId")
        if post.method == "tasks/get" and "error" in message and task_id in known:
            return {"jsonrpc": "2.0", "id": message["id"], "result": known[task_id]}
        return None

    return answers(change)


plant("an expired task is unknown", _keeps_for_ever())
plant("no task goes before its time", _late())

# -- SUB ---------------------------------------------------------------------------------------------------


def _on_streams(alter: Callable[[Post, dict[str, Any]], Any]) -> Fault:
    def says(post: Post, fact: Fact) -> Fact | None:
        if post.method != "subscriptions/listen" or not isinstance(fact, Came) or "error" in fact.message:
            return fact
        changed = alter(post, json.loads(json.dumps(fact.message)))
        return None if changed is None else Came(changed)

    return Fault(says=says)


def _named(name: Any) -> Callable[[Post, dict[str, Any]], Any]:
    def alter(post: Post, message: dict[str, Any]) -> Any:
        message["params"]["_meta"] = {f"{META}subscriptionId": name(post.message["id"])}
        return message

    return alter


def _mute(*methods: str) -> Fault:
    """Never say this."""
    return _on_streams(lambda _, message: None if message["method"] in methods else message)


def _agreeing(**more: Any) -> Fault:
    def alter(_: Post, message: dict[str, Any]) -> Any:
        if message["method"] == ACKNOWLEDGED:
            message["params"]["notifications"].update(more)
        return message

    return _on_streams(alter)


plant(
    "the acknowledgement comes first",
    _on_streams(lambda _, message: {**message, "method": "notifications/kit"}),
)
plant("the acknowledgement comes first", _on_streams(_named(str)))
plant("unknown tasks are left out", _agreeing(taskIds=["kit-no-such-task-0123456789abcdef"]))
plant("unknown tasks are left out", _mute(ACKNOWLEDGED))
plant("unknown filters are left out", _agreeing(kitChanged=True))
plant("unknown filters are left out", _mute(ACKNOWLEDGED))


def _no_snapshot() -> Fault:
    told: set[Any] = set()

    def alter(post: Post, message: dict[str, Any]) -> Any:
        first = message["method"] == "notifications/tasks" and post.message["id"] not in told
        told.add(post.message["id"] if message["method"] == "notifications/tasks" else None)
        return None if first else message

    return _on_streams(alter)


plant("a snapshot comes first", _no_snapshot())
plant(
    "the end is told in full", _on_streams(lambda _, message: None if ended(message["params"]) else message)
)
plant(
    "the end is told in full",
    _on_streams(lambda _, message: {**message, "params": without("result")(message["params"])}),
)


def _cancels_with_the_stream() -> Fault:
    """Whoever stops listening cancels the task."""
    streams: dict[Any, list[Any]] = {}

    def says(post: Post, fact: Fact) -> Fact | None:
        result = message_of(fact).get("result", {})
        if post.method == "subscriptions/listen":
            streams[post.message["id"]] = post.params["notifications"].get("taskIds", [])
            return fact
        listened = [one for ids in streams.values() for one in ids]
        if post.method == "tasks/get" and result.get("taskId") in listened and not ended(result):
            return Came(
                {"jsonrpc": "2.0", "id": post.message["id"], "result": {**result, "status": "cancelled"}}
            )
        return fact

    return Fault(says=says)


plant("hanging up leaves the task", _cancels_with_the_stream())
plant(
    "a stream is cancelled",
    reads(
        lambda post: (
            only_once(post, {**post.message, "params": {"requestId": "another"}})
            if post.method == "notifications/cancelled"
            else post
        )
    ),
    http=False,
)
plant("all of a stream is named", _on_streams(_named(lambda _: "another")))
plant(
    "only what was asked for",
    _on_streams(
        lambda _, message: (
            {**message, "method": "notifications/progress"}
            if message["method"] == "notifications/tasks"
            else message
        )
    ),
)
plant(
    "all of a stream is named",
    _on_streams(lambda _, message: "no message" if message["method"] == "notifications/tasks" else message),
)
plant(
    "news of tasks are flat",
    _on_streams(
        lambda _, message: (
            {**message, "params": {"task": message["params"], "_meta": message["params"]["_meta"]}}
            if message["method"] == "notifications/tasks"
            else message
        )
    ),
)

# -- HTTP --------------------------------------------------------------------------------------------------

plant("other verbs", statuses(405, 404))
plant("a foreign origin", reads(lambda post: post.with_header("Origin")))
plant("another content type", statuses(415, 400))
plant("an accept that takes nothing", statuses(406, 400))
plant("headers that are missing", reads(leniently))
plant("headers that are missing", errors(-32020, -32600), legacy=None)
plant("headers that are missing", reads(lambda post: post.with_header("MCP-Protocol-Version", "2026-07-28")))
plant("headers that differ", reads(leniently))
plant("headers that are repeated", reads(leniently))
plant("the name of a tool", reads(leniently))
plant("the name of another task", reads(leniently))
plant("a task without its name", reads(leniently))
plant(
    "headers in other clothes",
    reads(
        lambda post: (
            post.with_header("Mcp-Name", "=?base64?!?=")
            if any(value.startswith("=?base64?") for _, value in post.headers)
            else post
        )
    ),
)
plant(
    "mirrored arguments",
    reads(
        lambda post: (
            post.with_header("Mcp-Param-Region", "kit") if post.params.get("name") == "ship" else post
        )
    ),
)
plant("headers of sessions", headers(mcp_session_id="s"))


def _answers_notifications(post: Post, fact: Fact) -> Fact | None:
    return Came({}) if post.method == "notifications/kit" and isinstance(fact, Ended) else fact


plant("a notification", statuses(202, 200))
plant("a notification", Fault(says=_answers_notifications))
plant("kinds of bodies", headers(content_type="text/html"))
plant("streams are not buffered", headers(x_accel_buffering="yes"))
plant("status codes", statuses(404, 200))
plant("status codes", statuses(200, 201))
plant("status codes of malformed requests", statuses(400, 422))

# -- LEG ---------------------------------------------------------------------------------------------------

plant(
    "tasks that are not declared",
    legacy_results(lambda post, result: {"task": {}} if "task" in post.params else None),
    legacy=LegacyPolicy.IGNORE,
)


def _declares(**more: Any) -> Fault:
    def change(post: Post, result: dict[str, Any]) -> dict[str, Any] | None:
        if post.method != "initialize":
            return None
        capabilities = result["capabilities"]
        return {**result, "capabilities": {**capabilities, "tasks": {**capabilities["tasks"], **more}}}

    return legacy_results(change)


def _tasks(**more: Any) -> Fault:
    return legacy_results(
        lambda _, result: {"task": {**result["task"], **more}} if "task" in result else None
    )


plant("the capability", _declares(list=True))
plant("a call with a task", _tasks(status="completed"))
plant("a call with a task", _tasks(ttlMs=1))
plant(
    "a call with a task",
    legacy_results(lambda _, result: {"task": without("ttl")(result["task"])} if "task" in result else None),
)
plant("a call with a task", legacy_results(lambda _, result: result["task"] if "task" in result else None))
plant(
    "a plain call of a task tool",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and post.method == "tools/call" and "error" in message
            else None
        )
    ),
)
plant(
    "a task of a plain tool",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and post.method == "tools/call" and "error" in message
            else None
        )
    ),
)
plant(
    "the result of a task",
    legacy_results(lambda post, result: without("_meta")(result) if post.method == "tasks/result" else None),
)
plant(
    "the result of a task",
    legacy_results(
        lambda post, result: without("content")(result) if post.method == "tasks/result" else None
    ),
)
plant(
    "the result of a task",
    legacy_results(
        lambda post, result: {**result, "status": "working"} if post.method == "tasks/get" else None
    ),
)
plant(
    "a task is cancelled",
    legacy_results(
        lambda post, result: {**result, "status": "working"} if post.method == "tasks/cancel" else None
    ),
)
plant(
    "a tool error",
    legacy_results(
        lambda post, result: without("isError")(result) if post.method == "tasks/result" else None
    ),
)
plant(
    "a tool error",
    legacy_results(
        lambda post, result: {**result, "status": "completed"} if post.method == "tasks/get" else None
    ),
)
plant(
    "unknown tasks",
    answers(
        lambda post, message: (
            {**message, "error": {"code": -32002}} if post.era == "legacy" and "error" in message else None
        )
    ),
)
plant(
    "tasks are listed",
    legacy_results(lambda post, result: {"tasks": []} if post.method == "tasks/list" else None),
)
plant("tasks are listed", legacy_results(lambda post, result: {} if post.method == "tasks/list" else None))


def _questions(alter: Callable[[dict[str, Any]], Any]) -> Fault:
    return answers(
        lambda post, message: (
            alter(message) if post.era == "legacy" and "method" in message and "id" in message else None
        )
    )


plant("a task asks", _questions(lambda message: {**message, "params": without("_meta")(message["params"])}))
plant(
    "a task asks",
    answers(
        lambda post, message: (
            {"id": 1, "result": {"content": []}}
            if post.era == "legacy" and "method" in message and "id" in message
            else None
        )
    ),
)
plant(
    "a task asks",
    answers(
        lambda post, message: (
            {"id": 1, "error": {"code": 1}} if post.method == "tasks/result" and "result" in message else None
        )
    ),
)


def _two_worlds() -> Fault:
    made: set[Any] = set()

    def change(post: Post, message: dict[str, Any]) -> Any:
        task = message.get("result", {}).get("task") if post.era == "legacy" else None
        if isinstance(task, dict):
            made.add(task["taskId"])
        if post.era == "modern" and post.params.get("taskId") in made:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "unknown"}}
        return None

    return answers(change)


plant("a task in both eras", _two_worlds())
