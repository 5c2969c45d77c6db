"""Who calls a proxy under test, with what rights, and what it is configured with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import evolve

from mcp_tasks_proto.proxy import Access, ProxyLimits
from mcp_tasks_proto.testing.model.proxy import ProxyCaller
from tests.model.proxy_upstreams import TOOL
from tests.model.proxy_wants import ANSWER_MS, ATTEMPTS, CALL_MS, COLLAPSE_MS, STATE_MS

__all__ = [
    "CALLERS",
    "KEEP_MS",
    "LIMITS",
    "METADATA_MS",
    "PAYLOAD_MS",
    "PURGE_MS",
    "TOOLS",
    "UNLIKE",
    "access_of",
    "response",
]

KEEP_MS: Final = 120_000
PAYLOAD_MS: Final = 150_000
METADATA_MS: Final = 400_000
PURGE_MS: Final = 60_000
FORMS: Final[dict[str, Any]] = {"elicitation": {}}
LIMITS: Final = ProxyLimits(
    tasks=5,
    tasks_per_principal=3,
    keep_ms=KEEP_MS,
    poll_floor_ms=500,
    request_timeout_ms=ANSWER_MS,
    call_timeout_ms=CALL_MS,
    attempts=ATTEMPTS,
    purge_interval_ms=PURGE_MS,
    collapse_ms=COLLAPSE_MS,
    request_state_ms=STATE_MS,
)
TOOLS: Final = (f"left__{TOOL}", f"right__{TOOL}", "left__other", "plain")
"""One of each upstream, one that there is not, and one that there cannot be."""
BOTH: Final = {"left": "a", "right": "a"}
CALLERS: Final[Mapping[str, ProxyCaller]] = {
    "ada": ProxyCaller(principal="ada", project="p", authorizations=BOTH, capabilities=FORMS),
    "eve": ProxyCaller(principal="eve", project="p", authorizations=BOTH, capabilities=FORMS),
    "mal": ProxyCaller(principal="mal", project="q", authorizations={"left": "m"}, capabilities=FORMS),
    "key": ProxyCaller(principal="key", project="p", authorizations=BOTH, capabilities=FORMS, api_key=True),
}
"""The owner of most tasks, another member of the project, a stranger, and a program."""
UNLIKE: Final[Mapping[str, Callable[[ProxyCaller], ProxyCaller]]] = {
    "as ever": lambda caller: caller,
    "undeclared": lambda caller: evolve(caller, declares_tasks=False),
    "switched off": lambda caller: evolve(caller, tasks_enabled=False),
    "without the tool": lambda caller: evolve(caller, tools=frozenset()),
    "without tasks of the tool": lambda caller: evolve(caller, task_tools=frozenset()),
    "in another project": lambda caller: evolve(caller, project="r"),
    "authorized otherwise": lambda caller: evolve(caller, authorizations={"left": "b", "right": "b"}),
    "without the left": lambda caller: evolve(caller, authorizations={"right": "a"}),
    "without the right": lambda caller: evolve(caller, authorizations={"left": "a"}),
    "without forms": lambda caller: evolve(caller, capabilities={}),
}
"""What may be different about one request."""


def access_of(caller: ProxyCaller) -> Access:
    """Return what a host would have found out about a caller."""
    profile = "all" if caller.tools is None else "none"
    return Access(
        project=caller.project,
        profile=profile if caller.task_tools is None else "plain",
        authorizations=caller.authorizations,
        api_key=caller.api_key,
        caller=str(caller.principal),
    )


def response(fits_form: bool) -> dict[str, Any]:
    """Return an answer to a form that fits it, or does not."""
    return {"action": "accept", "content": {"it": "this"} if fits_form else {}}
