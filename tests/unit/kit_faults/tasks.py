"""Faults of tasks, of what they ask, and of what is told of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.testing.kit import Came, Fact, Post
from tests.unit.kit_faults.ways import (
    ACKNOWLEDGED,
    EVERY_TASK_METHOD,
    META,
    Planting,
    answers,
    declaring,
    ended,
    errors,
    message_of,
    only_once,
    params,
    reads,
    results,
    rewritten,
    views,
    without,
)
from tests.unit.kit_world import Fault

plant: Final = Planting()

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
        result={
            "content": [],
            "resultType": "complete",
            "_meta": {f"{META}related-task": {"taskId": "7"}},
        }
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
plant(
    "last updated at moves with the task",
    views(lambda view: {**view, "lastUpdatedAt": view["createdAt"]}),
)
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
    "five statuses",
    views(lambda view: {**view, "status": "paused"} if view["status"] == "working" else None),
)
plant("create results are flat", views(lambda view: {**view, "task": {}}, "tools/call"))
plant("create results are seeds", views(lambda view: {**view, "error": {}}, "tools/call"))
plant("fields fit the status", views(without("inputRequests")))
plant(
    "fields fit the status",
    views(lambda view: {**view, "error": {}} if view["status"] == "working" else None),
)
plant("durations", views(without("ttlMs")))
plant("durations", views(lambda view: {**view, "ttlMs": "60000"}))
plant("durations", views(lambda view: {**view, "pollIntervalMs": 1.5}))
plant("durations are positive", views(lambda view: {**view, "ttlMs": 0}))
plant("durations are positive", views(lambda view: {**view, "pollIntervalMs": -1}))
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
            Came({"id": 1, "error": {"code": -32602}})
            if post.caller and post.params.get("taskId") and isinstance(fact, Came)
            else fact
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
plant("how a state is refused", errors(-32602, -32600))


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
    "the end is told in full",
    _on_streams(lambda _, message: None if ended(message["params"]) else message),
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
