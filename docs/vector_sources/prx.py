"""PRX: which path a call takes through a proxy, and what is changed on the way."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.inp import NAME, ROOTS, URL, accept
from docs.vector_sources.making import Vector, decided, table

# -- the path --------------------------------------------------------------------------------------------

ALL_WELL: Final[dict[str, Any]] = {
    "caller": "modern",
    "declares": True,
    "profile_allows": True,
    "gate_open": True,
    "upstream": "modern",
    "upstream_tasks": True,
    "tool": "optional",
    "promotion": False,
    "collapse": False,
    "bridging": False,
}


def when(**changes: Any) -> dict[str, Any]:
    """Return the circumstances, all well but for these."""
    return {**ALL_WELL, **changes}


def row(name: str, reason: str) -> dict[str, Any]:
    """Return the row of the table that applies, and why."""
    return {"row": name, "reason": reason}


PATHS: Final = [
    ("relay", "row 1: everybody takes tasks", when(), row("relay", "everybody_agrees")),
    (
        "relay-required",
        "row 1: a tool that needs them",
        when(tool="required"),
        row("relay", "everybody_agrees"),
    ),
    (
        "relay-promotion",
        "row 1: the upstream's own before the proxy's",
        when(promotion=True),
        row("relay", "everybody_agrees"),
    ),
    (
        "relay-collapse",
        "row 1: who takes tasks gets them",
        when(collapse=True),
        row("relay", "everybody_agrees"),
    ),
    (
        "profile",
        "row 1: the project allows none for this tool",
        when(profile_allows=False),
        row("ordinary", "profile"),
    ),
    (
        "profile-promotion",
        "nor one of the proxy's own",
        when(profile_allows=False, promotion=True),
        row("ordinary", "profile"),
    ),
    (
        "profile-legacy-upstream",
        "whatever is upstream",
        when(profile_allows=False, upstream="legacy"),
        row("ordinary", "profile"),
    ),
    (
        "profile-first",
        "the profile is the first reason",
        when(profile_allows=False, gate_open=False),
        row("ordinary", "profile"),
    ),
    (
        "upstream-none",
        "row 2: the upstream has none",
        when(upstream_tasks=False),
        row("ordinary", "upstream"),
    ),
    ("gate", "row 2: the gate is closed", when(gate_open=False), row("ordinary", "gate")),
    (
        "gate-first",
        "row 2: the gate before what is upstream",
        when(gate_open=False, upstream_tasks=False),
        row("ordinary", "gate"),
    ),
    (
        "promote",
        "row 2: one of the proxy's own",
        when(upstream_tasks=False, promotion=True),
        row("promote", "upstream"),
    ),
    (
        "promote-gate",
        "row 2: one of the proxy's own",
        when(gate_open=False, promotion=True),
        row("promote", "gate"),
    ),
    (
        "promote-legacy-none",
        "row 2: a legacy upstream without tasks",
        when(upstream="legacy", upstream_tasks=False, promotion=True),
        row("promote", "upstream"),
    ),
    (
        "legacy-none",
        "row 2: a legacy upstream without tasks",
        when(upstream="legacy", upstream_tasks=False),
        row("ordinary", "upstream"),
    ),
    ("translate", "row 3: a legacy upstream", when(upstream="legacy"), row("translate", "legacy_upstream")),
    (
        "translate-required",
        "row 3: whose tool needs tasks",
        when(upstream="legacy", tool="required"),
        row("translate", "legacy_upstream"),
    ),
    (
        "translate-forbidden",
        "row 3: whose tool takes none",
        when(upstream="legacy", tool="forbidden"),
        row("ordinary", "tool"),
    ),
    (
        "translate-forbidden-promotion",
        "row 3: then one of the proxy's own",
        when(upstream="legacy", tool="forbidden", promotion=True),
        row("promote", "tool"),
    ),
    (
        "translate-gate",
        "row 3: the gate is closed",
        when(upstream="legacy", gate_open=False),
        row("ordinary", "gate"),
    ),
    ("undeclared", "row 4: the caller takes none", when(declares=False), row("undeclared", "not_declared")),
    (
        "undeclared-promotion",
        "row 4: nor one of the proxy's own",
        when(declares=False, upstream_tasks=False, promotion=True),
        row("undeclared", "not_declared"),
    ),
    (
        "undeclared-legacy-upstream",
        "row 4: whatever is upstream",
        when(declares=False, upstream="legacy"),
        row("undeclared", "not_declared"),
    ),
    (
        "undeclared-required",
        "row 4: the upstream refuses, and that is relayed",
        when(declares=False, tool="required"),
        row("undeclared", "not_declared"),
    ),
    (
        "collapse",
        "row 4: rounds of input in its place",
        when(declares=False, collapse=True),
        row("collapse", "not_declared"),
    ),
    (
        "collapse-gate",
        "row 4: not where the gate is closed",
        when(declares=False, collapse=True, gate_open=False),
        row("undeclared", "not_declared"),
    ),
    (
        "collapse-profile",
        "row 4: not where the project allows no tasks",
        when(declares=False, collapse=True, profile_allows=False),
        row("undeclared", "not_declared"),
    ),
    (
        "collapse-upstream-none",
        "row 4: not where the upstream has none",
        when(declares=False, collapse=True, upstream_tasks=False),
        row("undeclared", "not_declared"),
    ),
    (
        "bridge",
        "row 5: a legacy caller who asks for a task",
        when(caller="legacy", bridging=True),
        row("bridge", "everybody_agrees"),
    ),
    (
        "hidden-not-bridged",
        "row 5: and sees none where nothing is bridged",
        when(caller="legacy"),
        row("hidden", "not_bridged"),
    ),
    (
        "hidden-not-asked",
        "row 5: or asks for none",
        when(caller="legacy", bridging=True, declares=False),
        row("hidden", "not_asked"),
    ),
    (
        "hidden-profile",
        "row 5: or whose project allows none",
        when(caller="legacy", bridging=True, profile_allows=False),
        row("hidden", "profile"),
    ),
    (
        "hidden-gate",
        "row 5: or where the gate is closed",
        when(caller="legacy", bridging=True, gate_open=False),
        row("hidden", "gate"),
    ),
    (
        "hidden-upstream",
        "row 5: or the upstream has none",
        when(caller="legacy", bridging=True, upstream_tasks=False),
        row("hidden", "upstream"),
    ),
    (
        "hidden-promotion",
        "row 5: nothing is promoted for a legacy caller",
        when(caller="legacy", bridging=True, upstream_tasks=False, promotion=True),
        row("hidden", "upstream"),
    ),
]


def judged(method: str, result: Any, *, declared: bool) -> dict[str, Any]:
    """Return an upstream's result, and what it was asked."""
    return {"method": method, "declared": declared, "result": result}


CALL: Final = "tools/call"
JUDGED: Final = [
    (
        "complete",
        "a result",
        judged(CALL, {"resultType": "complete", "content": []}, declared=True),
        {"kind": "complete"},
    ),
    (
        "untyped",
        "a result of an earlier kind",
        judged(CALL, {"content": []}, declared=False),
        {"kind": "complete"},
    ),
    (
        "input-required",
        "a round of input",
        judged(CALL, {"resultType": "input_required"}, declared=False),
        {"kind": "input_required"},
    ),
    (
        "task",
        "a task that was asked for",
        judged(CALL, {"resultType": "task", "taskId": "u"}, declared=True),
        {"kind": "task"},
    ),
    (
        "unasked",
        "row 6: a task that nobody asked for",
        judged(CALL, {"resultType": "task", "taskId": "u"}, declared=False),
        {"kind": "unasked_task"},
    ),
    (
        "other-method",
        "row 6: a task for another method",
        judged("resources/read", {"resultType": "task", "taskId": "u"}, declared=True),
        {"kind": "unasked_task"},
    ),
    (
        "other-method-unasked",
        "row 6: both",
        judged("prompts/get", {"resultType": "task"}, declared=False),
        {"kind": "unasked_task"},
    ),
    (
        "unknown",
        "a type that nobody knows",
        judged(CALL, {"resultType": "stream"}, declared=True),
        {"kind": "unknown"},
    ),
    ("null", "no type at all", judged(CALL, {"resultType": None}, declared=True), {"kind": "unknown"}),
    ("case", "types are exact", judged(CALL, {"resultType": "Task"}, declared=True), {"kind": "unknown"}),
]

# -- times -----------------------------------------------------------------------------------------------

TTLS: Final = [
    (word, says, {"upstream_ttl_ms": ttl_ms, "keep_ms": 600_000}, {"ttl_ms": told})
    for word, says, ttl_ms, told in (
        ("shorter", "what the upstream says", 60_000, 60_000),
        ("same", "what both say", 600_000, 600_000),
        ("longer", "never more than the proxy keeps", 600_001, 600_000),
        ("unlimited", "unlimited is what the proxy keeps", None, 600_000),
        ("huge", "a huge one does not overflow", 2**53 - 1, 600_000),
        ("one", "the shortest", 1, 1),
        ("zero", "never less than that", 0, 1),
        ("negative", "never less than that", -5, 1),
    )
]
HINTS: Final = [
    (word, says, {"upstream_hint_ms": hint, "floor_ms": 500}, {"poll_interval_ms": told})
    for word, says, hint, told in (
        ("longer", "never lowered", 30_000, 30_000),
        ("same", "at the floor", 500, 500),
        ("shorter", "raised to the floor", 100, 500),
        ("zero", "trap 16: raised to the floor", 0, 500),
        ("negative", "trap 16: raised to the floor", -1, 500),
        ("none", "the floor, where nothing is said", None, 500),
        ("huge", "a huge one is one", 2**53 - 1, 2**53 - 1),
    )
]

# -- ids and metadata ------------------------------------------------------------------------------------

UP: Final = "up-7"
HANDLE: Final = "H-0123456789abcdefghijk"


def written(text: str, upstream: str = UP) -> dict[str, Any]:
    """Return a text of the upstream's."""
    return {"upstream_task_id": upstream, "handle": HANDLE, "text": text}


TEXTS: Final = [
    (word, says, written(text, upstream), {"text": told})
    for word, says, text, upstream, told in (
        ("alone", "the id alone", UP, UP, HANDLE),
        (
            "in-sentence",
            "in a sentence, each time",
            "up-7 is queued; see up-7.",
            UP,
            f"{HANDLE} is queued; see {HANDLE}.",
        ),
        ("in-brackets", "in brackets", "task (up-7)", UP, f"task ({HANDLE})"),
        (
            "longer-word",
            "not in a longer word",
            "up-77 startup-7 up-7x up-7_",
            UP,
            "up-77 startup-7 up-7x up-7_",
        ),
        ("case", "ids are exact", "UP-7", UP, "UP-7"),
        ("none", "another text", "half done", UP, "half done"),
        ("empty", "nothing", "", UP, ""),
        ("pattern", "an id is no pattern", "a.c abc", "a.c", f"{HANDLE} abc"),
        ("backslash", "an id is no pattern", "see \\1", "\\1", f"see {HANDLE}"),
    )
]
ERRORS: Final = [
    (
        "message",
        "the id in the text; the code stays",
        {
            "upstream_task_id": UP,
            "handle": HANDLE,
            "error": {"code": -32099, "message": "up-7: out of paper"},
        },
        {"error": {"code": -32099, "message": f"{HANDLE}: out of paper"}},
    ),
    (
        "data",
        "the id in the data, at any depth",
        {
            "upstream_task_id": UP,
            "handle": HANDLE,
            "error": {"code": 7, "message": "x", "data": {"task": UP, "all": ["a", UP, 7, None], UP: True}},
        },
        {
            "error": {
                "code": 7,
                "message": "x",
                "data": {"task": HANDLE, "all": ["a", HANDLE, 7, None], HANDLE: True},
            }
        },
    ),
    (
        "others",
        "another error stays as it is",
        {"upstream_task_id": UP, "handle": HANDLE, "error": {"code": -1, "message": "up-77", "data": [1]}},
        {"error": {"code": -1, "message": "up-77", "data": [1]}},
    ),
]

PROXY: Final[dict[str, Any]] = {"name": "proxy", "version": "1"}
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
RELATED: Final = "io.modelcontextprotocol/related-task"

RESULTS: Final = [
    (
        "content",
        "what a tool wrote is untouched, ids in it too",
        {"content": [{"type": "text", "text": "up-7 rendered"}], "structuredContent": {"id": UP}},
        {
            "content": [{"type": "text", "text": "up-7 rendered"}],
            "structuredContent": {"id": UP},
            "_meta": {SERVER_INFO: PROXY},
        },
    ),
    (
        "server-info",
        "serverInfo becomes the proxy's",
        {"content": [], "_meta": {SERVER_INFO: {"name": "up", "version": "9"}, "app/x": 1}},
        {"content": [], "_meta": {SERVER_INFO: PROXY, "app/x": 1}},
    ),
    (
        "related",
        "related-task names the handle",
        {"content": [], "_meta": {RELATED: {"taskId": UP}}},
        {"content": [], "_meta": {SERVER_INFO: PROXY, RELATED: {"taskId": HANDLE}}},
    ),
    (
        "related-other",
        "another task's id is nobody's to know",
        {"content": [], "_meta": {RELATED: {"taskId": "up-8"}}},
        {"content": [], "_meta": {SERVER_INFO: PROXY}},
    ),
    (
        "unknown",
        "unknown members survive",
        {"content": [], "isError": True, "x": {"y": [None]}},
        {"content": [], "isError": True, "x": {"y": [None]}, "_meta": {SERVER_INFO: PROXY}},
    ),
]

METAS: Final = [
    (word, says, {"meta": meta}, {"passes": passes})
    for word, says, meta, passes in (
        (
            "trace",
            "trace context passes",
            {"traceparent": "00-1-2-01", "tracestate": "a=b"},
            {"traceparent": "00-1-2-01", "tracestate": "a=b"},
        ),
        ("app", "an application's keys pass", {"com.example/x": {"y": 1}}, {"com.example/x": {"y": 1}}),
        (
            "other-extension",
            "other extensions' keys pass",
            {"io.modelcontextprotocol/other": 1},
            {"io.modelcontextprotocol/other": 1},
        ),
        (
            "hop",
            "what is said of one hop is dropped, and minted anew",
            {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": 7,
                SERVER_INFO: {},
                "io.modelcontextprotocol/subscriptionId": 1,
                RELATED: {"taskId": UP},
                "app/x": 1,
            },
            {"app/x": 1},
        ),
        ("empty", "nothing", {}, {}),
        ("no-object", "no object, nothing", "x", {}),
    )
]

# -- input -----------------------------------------------------------------------------------------------

FORM: Final[dict[str, Any]] = {"elicitation": {"form": {}}}


def declares(capabilities: Any, *kinds: str) -> dict[str, Any]:
    """Return what a caller declares, and the kinds that the proxy's policy lets pass."""
    return {"capabilities": capabilities, "kinds": list(kinds)}


DECLARABLE: Final = [
    ("form", "forms, by default", declares(FORM, "form"), {"declared": FORM}),
    ("form-empty", "an empty object means forms", declares({"elicitation": {}}, "form"), {"declared": FORM}),
    (
        "url-not",
        "URLs are not passed on by default",
        declares({"elicitation": {"form": {}, "url": {}}}, "form"),
        {"declared": FORM},
    ),
    (
        "url",
        "but by policy",
        declares({"elicitation": {"form": {}, "url": {}}}, "form", "url"),
        {"declared": {"elicitation": {"form": {}, "url": {}}}},
    ),
    ("url-only", "nothing is left", declares({"elicitation": {"url": {}}}, "form"), {"declared": {}}),
    (
        "sampling-not",
        "nor is sampling",
        declares({"sampling": {}, "elicitation": {}}, "form"),
        {"declared": FORM},
    ),
    (
        "sampling",
        "but by policy",
        declares({"sampling": {"tools": {}}}, "form", "sampling"),
        {"declared": {"sampling": {"tools": {}}}},
    ),
    ("roots-not", "nor are roots", declares({"roots": {}}, "form"), {"declared": {}}),
    ("roots", "but by policy", declares({"roots": {}}, "roots"), {"declared": {"roots": {}}}),
    (
        "nothing",
        "who declares nothing is asked nothing",
        declares({}, "form", "url", "sampling", "roots"),
        {"declared": {}},
    ),
    (
        "true",
        "only an object declares",
        declares({"elicitation": True, "roots": 1}, "form", "roots"),
        {"declared": {}},
    ),
]


def answered(capabilities: Any, **answers: Any) -> dict[str, Any]:
    """Return answers to a form ``name`` and a question for roots ``roots``."""
    return {
        "outstanding": {"name": NAME, "roots": ROOTS, "page": URL},
        "answers": answers,
        "capabilities": capabilities,
    }


ANSWERS: Final = [
    ("form", "the update declares it as well", answered(FORM, name=accept(name="Ada")), {"accepted": True}),
    ("none", "no answers need no declaration", answered({}), {"accepted": True}),
    (
        "undeclared",
        "the update does not declare what the call did",
        answered({}, name=accept(name="Ada")),
        {"code": -32021, "data": {"requiredCapabilities": FORM}},
    ),
    (
        "other-kind",
        "nor does it declare another kind",
        answered(FORM, roots={"roots": []}),
        {"code": -32021, "data": {"requiredCapabilities": {"roots": {}}}},
    ),
    (
        "one-of-two",
        "all of them are declared, or none is sent",
        answered(FORM, name=accept(name="Ada"), page={"action": "accept"}),
        {"code": -32021, "data": {"requiredCapabilities": {"elicitation": {"url": {}}}}},
    ),
    (
        "unfit",
        "an answer that does not fit",
        answered(FORM, name=accept(name=7)),
        {"code": -32602, "data": None},
    ),
    ("decline", "declining is an answer", answered(FORM, name={"action": "decline"}), {"accepted": True}),
]

# -- views -----------------------------------------------------------------------------------------------

VIEW: Final[dict[str, Any]] = {
    "taskId": UP,
    "status": "working",
    "createdAt": "2023-11-14T22:13:20.000Z",
    "lastUpdatedAt": "2023-11-14T22:13:21.000Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 1000,
}
DONE: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "up-7 done"}]}


def upstream(declared: Any = FORM, **changes: Any) -> dict[str, Any]:
    """Return a view of the upstream's; ``...`` leaves a member out."""
    view = {name: value for name, value in {**VIEW, **changes}.items() if value is not ...}
    return {"handle": HANDLE, "declared": declared, "keep_ms": 600_000, "poll_floor_ms": 500, "view": view}


def shown(**changes: Any) -> dict[str, Any]:
    """Return what the caller sees of it."""
    return {
        "view": {
            name: value for name, value in {**VIEW, "taskId": HANDLE, **changes}.items() if value is not ...
        }
    }


VIEWS: Final = [
    ("working", "the handle in place of the id", upstream(), shown()),
    (
        "message",
        "and in the message",
        upstream(statusMessage="up-7 is half done"),
        shown(statusMessage=f"{HANDLE} is half done"),
    ),
    ("ttl", "clamped", upstream(ttlMs=None), shown(ttlMs=600_000)),
    ("ttl-missing", "made up, where it is missing", upstream(ttlMs=...), shown(ttlMs=600_000)),
    ("hint", "raised to the floor", upstream(pollIntervalMs=1), shown(pollIntervalMs=500)),
    (
        "unknown",
        "unknown members survive, the id in their texts not",
        upstream(x={"y": "see up-7"}),
        shown(x={"y": f"see {HANDLE}"}),
    ),
    ("request-state", "but a requestState does not", upstream(requestState="secret"), shown()),
    (
        "completed",
        "the result is untouched, and said to be complete",
        upstream(status="completed", result=DONE),
        shown(status="completed", result={**DONE, "resultType": "complete"}),
    ),
    (
        "completed-server-info",
        "who gave the result is the proxy, where somebody is said to",
        upstream(status="completed", result={**DONE, "_meta": {SERVER_INFO: {"name": "up", "version": "9"}}}),
        shown(status="completed", result={**DONE, "resultType": "complete", "_meta": {SERVER_INFO: PROXY}}),
    ),
    (
        "failed",
        "that exact error",
        upstream(
            status="failed", error={"code": -32099, "message": "up-7 broke"}, statusMessage="up-7 fell over"
        ),
        shown(
            status="failed",
            error={"code": -32099, "message": f"{HANDLE} broke"},
            statusMessage=f"{HANDLE} fell over",
        ),
    ),
    (
        "asking",
        "what the call declared is shown",
        upstream(status="input_required", inputRequests={"name": NAME}),
        shown(status="input_required", inputRequests={"name": NAME}),
    ),
    (
        "asking-undeclared",
        "what nobody declared is the upstream's fault",
        upstream(status="input_required", inputRequests={"roots": ROOTS}),
        {"trouble": "undeclared_input"},
    ),
    (
        "asking-partly",
        "never a partial list",
        upstream(status="input_required", inputRequests={"name": NAME, "roots": ROOTS}),
        {"trouble": "undeclared_input"},
    ),
    ("asking-nothing-said", "without a list", upstream(status="input_required"), {"trouble": "invalid"}),
    (
        "completed-without-result",
        "a payload that is missing is not made up",
        upstream(status="completed"),
        {"trouble": "invalid"},
    ),
    (
        "completed-task",
        "a result that is none",
        upstream(status="completed", result={"resultType": "task"}),
        {"trouble": "invalid"},
    ),
    (
        "failed-without-error",
        "a payload that is missing is not made up",
        upstream(status="failed"),
        {"trouble": "invalid"},
    ),
]


def vectors() -> list[Vector]:
    """Return all of them."""
    rewritten = [
        (word, says, {"upstream_task_id": UP, "handle": HANDLE, "result": result}, {"result": told})
        for word, says, result, told in RESULTS
    ]
    return [
        *table("proxy_path", "PRX.1", decided("PRX, the table"), PATHS),
        *table("judge_answer", "PRX.1 REQ.1", decided("PRX.1"), JUDGED),
        *table("passing_meta", "PRX.1", decided("PRX.1"), METAS),
        *table("rewrite_text", "PRX.8", decided("PRX.8"), TEXTS),
        *table("rewrite_error", "PRX.8", decided("PRX.8"), ERRORS),
        *table("rewrite_result", "PRX.8", decided("PRX.8"), rewritten),
        *table("proxied_view", "PRX.8 PRX.10 PRX.12", decided("PRX.8"), VIEWS),
        *table("declarable_input", "PRX.10", decided("PRX.10"), DECLARABLE),
        *table("check_proxied_answers", "PRX.10", decided("PRX.10"), ANSWERS),
        *table("clamp_ttl", "PRX.12", decided("PRX.12"), TTLS),
        *table("clamp_poll_interval", "PRX.12", decided("PRX.12"), HINTS),
    ]
