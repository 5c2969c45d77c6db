"""HIS: the ledger of a proxy, who may do what with it, and for how long it is kept."""

from __future__ import annotations

from typing import Any, Final

from docs.vector_sources.making import Vector, decided, table

DAY_MS: Final = 86_400_000
MADE: Final = 1_700_000_000_000

ENTRY: Final[dict[str, Any]] = {
    "project": "film",
    "owner": "ada",
    "api_key": False,
    "upstream": "renderer",
    "status": "working",
    "created_at_ms": MADE,
}
"""What ada started in the project film, at the upstream renderer."""

ADA: Final = {"principal": "ada", "teams": ["film"], "direct": [], "upstreams": ["renderer"]}
BOB: Final = {"principal": "bob", "teams": ["film"], "direct": [], "upstreams": ["renderer"]}
CAROL: Final[dict[str, Any]] = {
    "principal": "carol",
    "teams": [],
    "direct": ["film"],
    "upstreams": ["renderer"],
}
DAVE: Final[dict[str, Any]] = {
    "principal": "dave",
    "teams": ["other"],
    "direct": ["third"],
    "upstreams": ["renderer"],
}

ACTIONS: Final = ("read", "assign", "read_payload", "answer", "cancel")

WHO: Final[list[tuple[str, str, Any, Any, int, str]]] = [
    # word, says, viewer, changes of the entry, days later, "allowed:reason" for each action
    (
        "owner-in-team",
        "the original user, of the team",
        ADA,
        {},
        1,
        "+team +team +original_user +original_user +original_user",
    ),
    (
        "team",
        "another member of the team",
        BOB,
        {},
        1,
        "+team +team -somebody_elses -somebody_elses -somebody_elses",
    ),
    (
        "direct",
        "a direct member",
        CAROL,
        {},
        1,
        "+direct -no_team_rights -somebody_elses -somebody_elses -somebody_elses",
    ),
    ("outside", "somebody of another project", DAVE, {}, 1, "-outside -outside -outside -outside -outside"),
    (
        "owner-direct",
        "the original user, a direct member",
        {**CAROL, "principal": "ada"},
        {},
        1,
        "+direct -no_team_rights +original_user +original_user +original_user",
    ),
    (
        "owner-left",
        "the original user, who has left the project",
        {**ADA, "teams": []},
        {},
        1,
        "-outside -outside -outside -outside -outside",
    ),
    (
        "owner-no-upstream",
        "the original user, without the upstream",
        {**ADA, "upstreams": []},
        {},
        1,
        "+team +team -upstream -upstream -upstream",
    ),
    (
        "owner-ended",
        "the task has ended",
        ADA,
        {"status": "completed"},
        1,
        "+team +team +original_user -ended -ended",
    ),
    (
        "owner-waiting",
        "the task waits for input",
        ADA,
        {"status": "input_required"},
        1,
        "+team +team +original_user +original_user +original_user",
    ),
    ("api-key", "an API key started it", ADA, {"api_key": True}, 1, "+team +team -api_key -api_key -api_key"),
    (
        "api-key-other",
        "an API key started it",
        BOB,
        {"api_key": True},
        1,
        "+team +team -api_key -api_key -api_key",
    ),
    ("outlived", "past its retention", ADA, {}, 90, "-outlived -outlived -outlived -outlived -outlived"),
    (
        "not-outlived",
        "on its last day",
        ADA,
        {},
        89,
        "+team +team +original_user +original_user +original_user",
    ),
    (
        "private",
        "without a project, its original user's",
        ADA,
        {"project": None},
        1,
        "+original_user +original_user +original_user +original_user +original_user",
    ),
    (
        "private-other",
        "and nobody else's",
        BOB,
        {"project": None},
        1,
        "-outside -outside -outside -outside -outside",
    ),
    (
        "private-api-key",
        "nor that of an API key's name",
        ADA,
        {"project": None, "api_key": True},
        1,
        "-outside -outside -outside -outside -outside",
    ),
    (
        "nobody",
        "started by nobody with a name",
        BOB,
        {"owner": None},
        1,
        "+team +team -somebody_elses -somebody_elses -somebody_elses",
    ),
    (
        "assigned",
        "assignment grants nothing",
        BOB,
        {"assignee": "bob"},
        1,
        "+team +team -somebody_elses -somebody_elses -somebody_elses",
    ),
]


def access() -> list[tuple[str, str, Any, Any]]:
    """Return a row for each action."""
    rows = []
    for word, says, viewer, changes, days, verdicts in WHO:
        for action, verdict in zip(ACTIONS, verdicts.split(), strict=True):
            given = {
                "entry": {**ENTRY, **changes},
                "viewer": viewer,
                "action": action,
                "now_ms": MADE + days * DAY_MS,
            }
            rows.append(
                (f"{word}-{action}", says, given, {"allowed": verdict[0] == "+", "reason": verdict[1:]})
            )
    return rows


PROJECTS: Final = [
    ("team", "of the team", {"viewer": ADA, "project": "film"}, {"allowed": True, "reason": "team"}),
    (
        "direct",
        "a direct member",
        {"viewer": CAROL, "project": "film"},
        {"allowed": True, "reason": "direct"},
    ),
    (
        "both",
        "the team counts for more",
        {"viewer": {**ADA, "direct": ["film"]}, "project": "film"},
        {"allowed": True, "reason": "team"},
    ),
    ("outside", "neither", {"viewer": DAVE, "project": "film"}, {"allowed": False, "reason": "outside"}),
    (
        "not-there",
        "a project that is not there looks the same",
        {"viewer": ADA, "project": "nowhere"},
        {"allowed": False, "reason": "outside"},
    ),
]

# -- what is noted ---------------------------------------------------------------------------------------


def seen(at: int, status: str, *, polled: bool = False) -> dict[str, Any]:
    """Return that the proxy saw a task in a status, so many milliseconds after its creation."""
    return {"kind": "seen", "at_ms": MADE + at, "status": status, "polled": polled}


def assigned(at: int, to: str | None, by: str = "bob") -> dict[str, Any]:
    """Return that somebody assigned it."""
    return {"kind": "assigned", "at_ms": MADE + at, "actor": by, "assignee": to}


def noted(
    *events: tuple[int, str], status: str, polls: int = 0, assignee: str | None = None
) -> dict[str, Any]:
    """Return the timeline: after which time, and what; ``>bob`` is an assignment."""
    return {
        "status": status,
        "polls": polls,
        "assignee": assignee,
        "timeline": [
            {"kind": "created", "at_ms": MADE, "status": "working"},
            *(_event(at, what) for at, what in events),
        ],
    }


def _event(at: int, what: str) -> dict[str, Any]:
    if what.startswith(">"):
        return {"kind": "assigned", "at_ms": MADE + at, "actor": "bob", "assignee": what[1:] or None}
    return {"kind": "status", "at_ms": MADE + at, "status": what}


def told(*facts: dict[str, Any], begins: str = "working") -> dict[str, Any]:
    """Return what is told of a task that began so."""
    return {"begins": begins, "created_at_ms": MADE, "facts": list(facts)}


TIMELINES: Final = [
    ("created", "it begins", told(), noted(status="working")),
    (
        "ended-at-once",
        "it had ended as it began",
        told(begins="completed"),
        noted((0, "completed"), status="completed"),
    ),
    (
        "input",
        "it asks",
        told(seen(5, "input_required")),
        noted((5, "input_required"), status="input_required"),
    ),
    (
        "input-twice",
        "told twice, noted once",
        told(seen(5, "input_required"), seen(9, "input_required")),
        noted((5, "input_required"), status="input_required"),
    ),
    (
        "round",
        "it asks, and goes on",
        told(seen(5, "input_required"), seen(9, "working")),
        noted((5, "input_required"), (9, "working"), status="working"),
    ),
    ("end", "it ends", told(seen(5, "completed")), noted((5, "completed"), status="completed")),
    (
        "end-twice",
        "it ends once",
        told(seen(5, "completed"), seen(9, "completed")),
        noted((5, "completed"), status="completed"),
    ),
    (
        "end-other",
        "and takes no other end",
        told(seen(5, "completed"), seen(9, "failed")),
        noted((5, "completed"), status="completed"),
    ),
    (
        "end-working",
        "nor does it begin again",
        told(seen(5, "cancelled"), seen(9, "working")),
        noted((5, "cancelled"), status="cancelled"),
    ),
    (
        "polls",
        "polls are counted, not listed",
        told(seen(5, "working", polled=True), seen(6, "working", polled=True)),
        noted(status="working", polls=2),
    ),
    (
        "polls-ended",
        "also after its end",
        told(seen(5, "failed", polled=True), seen(6, "failed", polled=True)),
        noted((5, "failed"), status="failed", polls=2),
    ),
    (
        "clock",
        "times do not go back, whatever clock told them",
        told(seen(9, "input_required"), seen(5, "working")),
        noted((9, "input_required"), (9, "working"), status="working"),
    ),
    (
        "assign",
        "it is assigned, and its status stays",
        told(assigned(5, "bob")),
        noted((5, ">bob"), status="working", assignee="bob"),
    ),
    (
        "assign-twice",
        "to the same person, noted once",
        told(assigned(5, "bob"), assigned(6, "bob")),
        noted((5, ">bob"), status="working", assignee="bob"),
    ),
    (
        "assign-back",
        "and taken back",
        told(assigned(5, "bob"), assigned(6, None)),
        noted((5, ">bob"), (6, ">"), status="working"),
    ),
    (
        "assign-ended",
        "also when it has ended",
        told(seen(5, "failed"), assigned(6, "bob")),
        noted((5, "failed"), (6, ">bob"), status="failed", assignee="bob"),
    ),
]

# -- lists -----------------------------------------------------------------------------------------------

ENTRIES: Final = [
    {"handle": handle, "status": status, "assignee": assignee, "project": project, "created_at_ms": MADE + at}
    for handle, status, assignee, project, at in (
        ("H1", "working", None, "film", 1),
        ("H2", "input_required", "bob", "film", 2),
        ("H3", "completed", None, "film", 3),
        ("H4", "failed", "ada", "film", 4),
        ("H5", "cancelled", None, "film", 5),
        ("H6", "working", "bob", "other", 6),
        ("H7", "working", None, None, 7),
    )
]


def lists(view: str, assigned_to: str = "any", viewer: Any = BOB, project: str = "film") -> dict[str, Any]:
    """Return what somebody wants to see of these."""
    return {
        "entries": ENTRIES,
        "viewer": viewer,
        "project": project,
        "view": view,
        "assigned": assigned_to,
        "now_ms": MADE + DAY_MS,
    }


def rows(*handles: str) -> dict[str, Any]:
    """Return which are shown, the newest first."""
    return {"handles": list(handles)}


LISTS: Final = [
    ("all", "all of the project, the newest first", lists("all"), rows("H5", "H4", "H3", "H2", "H1")),
    ("pending", "working, and waiting for input", lists("pending"), rows("H2", "H1")),
    ("completed", "completed", lists("completed"), rows("H3")),
    ("failed", "failed", lists("failed"), rows("H4")),
    ("cancelled", "cancelled", lists("cancelled"), rows("H5")),
    ("mine", "assigned to who looks", lists("all", "me"), rows("H2")),
    ("somebodys", "assigned to somebody", lists("all", "somebody"), rows("H4", "H2")),
    ("nobodys", "assigned to nobody", lists("all", "nobody"), rows("H5", "H3", "H1")),
    ("both", "both filters together", lists("pending", "somebody"), rows("H2")),
    ("none", "nothing fits", lists("completed", "me"), rows()),
    (
        "direct",
        "a direct member sees as much",
        lists("all", viewer=CAROL),
        rows("H5", "H4", "H3", "H2", "H1"),
    ),
    ("outside", "somebody else sees nothing", lists("all", viewer=DAVE), rows()),
    ("other-project", "each project has its own", lists("all", viewer=DAVE, project="other"), rows("H6")),
]

LABELS: Final = [
    (status, "how it reads to people", {"status": status}, {"label": label})
    for status, label in (
        ("working", "Working"),
        ("input_required", "Waiting for input"),
        ("completed", "Completed"),
        ("failed", "Failed"),
        ("cancelled", "Cancelled"),
    )
]

# -- retention -------------------------------------------------------------------------------------------

KEPT: Final = [
    (
        word,
        says,
        {**limits, "payload_stored_at_ms": MADE, "created_at_ms": MADE, "now_ms": MADE + after},
        {"payload": payload, "metadata": metadata},
    )
    for word, says, limits, after, payload, metadata in (
        ("new", "both are there", {}, 0, True, True),
        ("payload-last", "a payload for a day", {}, DAY_MS - 1, True, True),
        ("payload-gone", "and no longer", {}, DAY_MS, False, True),
        ("metadata-last", "metadata for ninety days", {}, 90 * DAY_MS - 1, False, True),
        ("metadata-gone", "and no longer", {}, 90 * DAY_MS, False, False),
        ("shorter-payload", "shortened", {"payload_ms": 1000}, 1000, False, True),
        ("shorter-payload-last", "shortened", {"payload_ms": 1000}, 999, True, True),
        ("shorter-metadata", "shortened", {"metadata_ms": 1000}, 1000, True, False),
    )
]
SETTINGS: Final = [
    (word, says, limits, {"allowed": allowed})
    for word, says, limits, allowed in (
        ("default", "a day and ninety", {}, True),
        ("payload-day", "a day", {"payload_ms": DAY_MS}, True),
        ("payload-longer", "no longer", {"payload_ms": DAY_MS + 1}, False),
        ("payload-shorter", "shorter", {"payload_ms": 1}, True),
        ("payload-none", "but something", {"payload_ms": 0}, False),
        ("metadata-ninety", "ninety days", {"metadata_ms": 90 * DAY_MS}, True),
        ("metadata-longer", "no longer", {"metadata_ms": 90 * DAY_MS + 1}, False),
        ("metadata-negative", "but something", {"metadata_ms": -1}, False),
    )
]
DELETED: Final = [
    (
        "film",
        "all of a project, and only that",
        {"entries": ENTRIES, "project": "film"},
        {"handles": ["H1", "H2", "H3", "H4", "H5"]},
    ),
    ("other", "another one", {"entries": ENTRIES, "project": "other"}, {"handles": ["H6"]}),
    ("not-there", "one that is not there", {"entries": ENTRIES, "project": "nowhere"}, {"handles": []}),
]


def vectors() -> list[Vector]:
    """Return all of them."""
    return [
        *table("ledger_timeline", "HIS.1", decided("HIS.1"), TIMELINES[:12]),
        *table("ledger_timeline", "HIS.2 HIS.1", decided("HIS.2"), TIMELINES[12:]),
        *table("project_list", "HIS.2 HIS.5", decided("HIS.2"), LISTS),
        *table("status_label", "HIS.2", decided("HIS.2"), LABELS),
        *table("decide_access", "HIS.3 HIS.5", decided("HIS.3"), access()),
        *table("decide_project", "HIS.3 HIS.5", decided("HIS.3"), PROJECTS),
        *table("is_kept", "HIS.4", decided("HIS.4"), KEPT),
        *table("retention_settings", "HIS.4", decided("HIS.4"), SETTINGS),
        *table("deleted_with_project", "HIS.4", decided("HIS.4"), DELETED),
    ]
