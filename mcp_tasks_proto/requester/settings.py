"""What a requester is configured with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen, validators

from mcp_tasks_proto.vocabulary import MODERN_VERSION, TASKS_EXTENSION

__all__ = ["RequesterLimits", "RequesterSettings"]


def _positive(default: int) -> int:
    return field(default=default, validator=[validators.instance_of(int), validators.gt(0)])


@frozen(kw_only=True)
class RequesterLimits:
    """Bounds of a requester, as positive integers: milliseconds where a name ends in ``_ms``."""

    calls: int = _positive(10_000)
    """Calls under way, and cancellations that their server has yet to hear of."""
    input_rounds: int = _positive(32)
    """Rounds of input one request may ask for before its result (MRTR)."""
    ledger_keys: int = _positive(1024)
    """Input requests one task may make in its life, or a call in one round."""
    tool_pages: int = _positive(100)
    """Pages of ``tools/list``."""
    cached_results: int = _positive(256)
    """Results kept for their ``ttlMs``."""
    poll_interval_ms: int = _positive(1000)
    """Between polls of a task whose server gives no usable hint."""
    poll_floor_ms: int = _positive(100)
    """Between polls of a task, whatever its server says."""
    listening_poll_ms: int = _positive(30_000)
    """Between polls of a task that a listen stream brings news of; the hint, if it is longer."""
    first_backoff_ms: int = _positive(500)
    """After the first failure of a request that may be repeated; doubled with each further one."""
    last_backoff_ms: int = _positive(30_000)
    """The longest of these pauses."""
    cancel_attempts: int = _positive(5)
    """Tries to tell a server of a cancellation that nobody waits for."""
    request_timeout_ms: int = _positive(30_000)
    """For an answer to anything but a tool call, and for a listen stream to begin."""
    call_timeout_ms: int = _positive(300_000)
    """For an answer to a tool call, from the last sign of life."""
    longest_call_ms: int = _positive(86_400_000)
    """For an answer to any request but a listen request, however many signs of life there are."""
    listen_delay_ms: int = _positive(20)
    """New tasks that come within this time share a listen stream."""
    listen_again_ms: int = _positive(300_000)
    """After a server turned a listen request down with an HTTP status alone, until it is asked again."""
    listen_streams: int = _positive(8)
    """Listen streams open at once: each of them keeps a connection busy. Tasks beyond are polled."""
    stream_tasks: int = _positive(128)
    """Tasks on one listen stream."""

    # -- servers of 2025-11-25 ---------------------------------------------------------------------
    probe_timeout_ms: int = _positive(10_000)
    """For a server on stdio to answer ``server/discover``; one that does not is taken for a legacy one."""
    question_wait_ms: int = _positive(2_000)
    """For the first question of a task that is found waiting for input to come."""
    stream_wait_ms: int = _positive(500)
    """For the stream of what a server says unasked to be open, before a call that may have it ask."""
    stream_attempts: int = _positive(5)
    """Times in a row that the broken stream of a request is taken up again without anything new on it."""
    result_attempts: int = _positive(5)
    """Times that a legacy server may fail to say what a task has ended with, as far apart as polls that fail;
    the error that it gives the last time is taken for the task's end."""
    received_tasks: int = _positive(64)
    """Tasks that the server has made here, and requests that wait for the result of one."""
    received_ttl_ms: int = _positive(3_600_000)
    """Longest lifetime of such a task, and that of one whose maker names none."""


@frozen(kw_only=True)
class RequesterSettings:
    """Who the requester is, and how it behaves toward one server and one authorization."""

    name: str
    version: str
    endpoint: str
    """The server's address, as it stands in saved references."""
    capabilities: Mapping[str, Any] = field(factory=dict)
    """Client capabilities to declare: the kinds of input somebody here can answer."""
    tasks: bool = True
    """Whether to declare the Tasks extension."""
    listen: bool = True
    """Whether to try ``subscriptions/listen`` before polling."""
    mirror_arguments: bool = False
    """Whether the transport has headers to mirror arguments into (HTTP.3)."""
    versions: tuple[str, ...] = field(default=(MODERN_VERSION,), validator=validators.min_len(1))
    """Protocol versions spoken here, the best first."""
    limits: RequesterLimits = field(factory=RequesterLimits)

    def declared(self) -> dict[str, Any]:
        """Return the capabilities that every request of this requester declares."""
        declared = dict(self.capabilities)
        if self.tasks:
            declared["extensions"] = {**declared.get("extensions", {}), TASKS_EXTENSION: {}}
        return declared
