"""Pure functions of a proxy and of its ledger."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.history import (
    LABELS,
    Action,
    Assigned,
    Observation,
    ProjectView,
    Retention,
    TaskEntry,
    Viewer,
    assign,
    decide_access,
    decide_project,
    observe,
    of_project,
    opened,
    project_list,
)
from mcp_tasks_proto.lifecycle import Status
from mcp_tasks_proto.proxy import Circumstances, Era, InputKind, ProxyLimits, decide, judge_answer
from mcp_tasks_proto.proxy.clamping import clamp_poll_interval, clamp_ttl
from mcp_tasks_proto.proxy.input_gate import check_answers, declarable
from mcp_tasks_proto.proxy.rewriting import Rewriter, passing_meta
from mcp_tasks_proto.proxy.views import Seen, make_rewriter, show
from mcp_tasks_proto.settings import TaskSupport
from tests.unit.proxy_world import make_binding, make_settings

__all__ = ["FUNCTIONS"]

Given = dict[str, Any]
PROXY = {"name": "proxy", "version": "1"}


def _path(given: Given) -> Given:
    eras = {"modern": Era.MODERN, "legacy": Era.LEGACY}
    decision = decide(
        Circumstances(
            **{
                **given,
                "caller": eras[given["caller"]],
                "upstream": eras[given["upstream"]],
                "tool": TaskSupport(given["tool"]),
            }
        )
    )
    return {"row": decision.row.value, "reason": decision.reason.name.lower()}


def _judge(given: Given) -> Given:
    return {"kind": judge_answer(given["method"], given["result"], declared=given["declared"]).value}


def _clamp_ttl(given: Given) -> Given:
    return {"ttl_ms": clamp_ttl(given["upstream_ttl_ms"], given["keep_ms"])}


def _clamp_hint(given: Given) -> Given:
    return {"poll_interval_ms": clamp_poll_interval(given["upstream_hint_ms"], given["floor_ms"])}


def _rewriter(given: Given) -> Rewriter:
    limits = ProxyLimits()
    return Rewriter(
        server_info=PROXY,
        upstream_task_id=given["upstream_task_id"],
        handle=given["handle"],
        most_bytes=limits.meta_bytes,
        depth=limits.meta_depth,
    )


def _text(given: Given) -> Given:
    return {"text": _rewriter(given).text(given["text"])}


def _error(given: Given) -> Given:
    return {"error": _rewriter(given).error(ErrorObject(**given["error"])).to_wire()}


def _result(given: Given) -> Given:
    return {"result": _rewriter(given).result(given["result"])}


def _meta(given: Given) -> Given:
    limits = ProxyLimits()
    passes = passing_meta(given["meta"], most_bytes=limits.meta_bytes, depth=limits.meta_depth)
    return {"passes": passes}


def _view(given: Given) -> Given:
    view = given["view"]
    binding = make_binding(
        handle=given["handle"],
        upstream_task_id=view["taskId"],
        declared=given["declared"],
        keep_ms=given["keep_ms"],
    )
    settings = make_settings(limits=ProxyLimits(poll_floor_ms=given["poll_floor_ms"]))
    rewriter = partial(make_rewriter, settings, PROXY, view["taskId"], given["handle"])
    seen = show(view, binding, rewriter, settings)
    return {"view": dict(seen.view)} if isinstance(seen, Seen) else {"trouble": seen.name.lower()}


def _declarable(given: Given) -> Given:
    kinds = {InputKind(kind) for kind in given["kinds"]}
    return {"declared": declarable(given["capabilities"], kinds)}


def _answers(given: Given) -> Given:
    error = check_answers(given["outstanding"], given["answers"], given["capabilities"])
    return {"accepted": True} if error is None else {"code": int(error.code), "data": error.data}


# -- the ledger ------------------------------------------------------------------------------------------


def _entry(given: Given) -> TaskEntry:
    entry = opened(
        handle=given.get("handle", "H"),
        project=given["project"],
        owner=given.get("owner", "ada"),
        caller="caller",
        api_key=given.get("api_key", False),
        upstream=given.get("upstream", "renderer"),
        tool="render",
        status=Status(given["status"]),
        now=given["created_at_ms"],
    )
    assignee = given.get("assignee")
    return assign(entry, actor="bob", assignee=assignee, now=given["created_at_ms"])


def _viewer(given: Given) -> Viewer:
    groups = {name: frozenset(given[name]) for name in ("teams", "direct", "upstreams")}
    return Viewer(principal=given["principal"], **groups)


def _access(given: Given) -> Given:
    entry, viewer = _entry(given["entry"]), _viewer(given["viewer"])
    decision = decide_access(entry, viewer, Action(given["action"]), Retention(), given["now_ms"])
    return {"allowed": decision.allowed, "reason": decision.reason.name.lower()}


def _project(given: Given) -> Given:
    decision = decide_project(_viewer(given["viewer"]), given["project"])
    return {"allowed": decision.allowed, "reason": decision.reason.name.lower()}


def _timeline(given: Given) -> Given:
    made = given["created_at_ms"]
    entry = _entry({"project": "film", "status": given["begins"], "created_at_ms": made})
    for fact in given["facts"]:
        at_ms = fact["at_ms"]
        if fact["kind"] == "seen":
            seen = Observation(status=Status(fact["status"]), at_ms=at_ms, polled=fact["polled"])
            entry = observe(entry, seen)
        else:
            entry = assign(entry, actor=fact["actor"], assignee=fact["assignee"], now=at_ms)
    timeline = []
    for event in entry.timeline:
        told: Given = {"kind": event.kind, "at_ms": event.at_ms}
        if event.status is None:
            timeline.append({**told, "actor": event.actor, "assignee": event.assignee})
        else:
            timeline.append({**told, "status": event.status.value})
    return {
        "status": entry.status.value,
        "polls": entry.polls,
        "assignee": entry.assignee,
        "timeline": timeline,
    }


def _list(given: Given) -> Given:
    rows = project_list(
        [_entry(one) for one in given["entries"]],
        _viewer(given["viewer"]),
        project=given["project"],
        view=ProjectView(given["view"]),
        assigned=Assigned(given["assigned"]),
        retention=Retention(),
        now=given["now_ms"],
    )
    return {"handles": [row["taskId"] for row in rows]}


def _label(given: Given) -> Given:
    return {"label": LABELS[Status(given["status"])]}


def _retention(given: Given) -> Retention:
    return Retention(**{name: given[name] for name in ("payload_ms", "metadata_ms") if name in given})


def _is_kept(given: Given) -> Given:
    retention, now = _retention(given), given["now_ms"]
    return {
        "payload": retention.has_payload(given["payload_stored_at_ms"], now),
        "metadata": retention.has_metadata(given["created_at_ms"], now),
    }


def _retention_settings(given: Given) -> Given:
    try:
        _retention(given)
    except ValueError:
        return {"allowed": False}
    return {"allowed": True}


def _deleted(given: Given) -> Given:
    entries = {one["handle"]: _entry(one) for one in given["entries"]}
    return {"handles": of_project(entries, given["project"])}


FUNCTIONS = {
    "proxy_path": _path,
    "judge_answer": _judge,
    "clamp_ttl": _clamp_ttl,
    "clamp_poll_interval": _clamp_hint,
    "rewrite_text": _text,
    "rewrite_error": _error,
    "rewrite_result": _result,
    "passing_meta": _meta,
    "proxied_view": _view,
    "declarable_input": _declarable,
    "check_proxied_answers": _answers,
    "decide_access": _access,
    "decide_project": _project,
    "ledger_timeline": _timeline,
    "project_list": _list,
    "status_label": _label,
    "is_kept": _is_kept,
    "retention_settings": _retention_settings,
    "deleted_with_project": _deleted,
}
