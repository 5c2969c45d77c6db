"""Faults of messages, of what is declared, and of HTTP."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.testing.kit import SECOND_RESPONSE, Came, Ended, Fact, Post, Unreadable
from tests.unit.kit_faults.ways import (
    DISCOVER,
    EVERY_TASK_METHOD,
    EXTENSION,
    META,
    Planting,
    answers,
    declaring,
    errors,
    headers,
    instead,
    leniently,
    message_of,
    misreads,
    only_once,
    params,
    reads,
    results,
    statuses,
    without,
)
from tests.unit.kit_world import Fault

plant: Final = Planting()

# -- WIRE, STD ---------------------------------------------------------------------------------------------

plant("what is not json", errors(-32700, -32600))
plant("what is no request", errors(-32600, -32602))
plant("what is no request", reads(lambda post: evolve(post, body=post.body.strip(b"[]"))))
plant("status codes of malformed requests", statuses(400, 200), legacy=None)
plant("what is no request", errors(-32600, -32020), http=False)
plant("ids that are none", errors(-32600, -32603))
plant("params that are no object", errors(-32600, -32602))
plant("json that is not strict", misreads(b'"kit":NaN,', b""))
plant("json that is not strict", misreads(b'"kit":"\\ud800",', b""))
plant("json that is not strict", misreads(b'"jsonrpc":"2.0","jsonrpc":"2.0",', b'"jsonrpc":"2.0",'))


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
    "responses belong to their requests",
    answers(lambda post, message: {**message, "id": 1} if post.method == "tasks/cancel" else None),
)
plant(
    "responses belong to their requests",
    answers(lambda post, message: {**message, "id": None} if "result" in message else None),
)
plant(
    "responses belong to their requests",
    Fault(says=lambda post, fact: Unreadable(SECOND_RESPONSE) if post.method == "kit/unknown" else fact),
    http=False,
)
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
plant("codes that are not to be used", errors(-32602, -32042))
plant("codes that are not to be used", errors(-32602, -32030))
plant("codes that are not to be used", errors(-32602, "no number"))  # type: ignore[arg-type]
plant("codes of before", errors(-32602, -32001))
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
plant("what is advertised", _advertises(extensions={EXTENSION: True}))
plant("settings of the extension", _advertises(extensions={EXTENSION: {"kit": 1}}))
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

# -- HTTP --------------------------------------------------------------------------------------------------

plant("other verbs", statuses(405, 404), legacy=None)
plant("other verbs", statuses(405, 200))
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
