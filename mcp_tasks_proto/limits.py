"""Every bound of the engines and their adapters, in one place, each with its unit.

A name that ends in ``_ms`` is milliseconds, in ``_bytes`` is bytes; the rest are counts.
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen, validators

__all__ = ["DEEPEST_MESSAGE", "Limits"]

DEEPEST_MESSAGE: Final = 256
"""The most that ``Limits.message_depth`` may be: what a message brings is passed on and kept in more levels
yet, and has to be written on every interpreter."""


def _positive(default: int) -> int:
    return field(default=default, validator=[validators.instance_of(int), validators.gt(0)])


@frozen(kw_only=True)
class Limits:
    """Bounds, as positive integers (``ValueError``/``TypeError`` otherwise). Contract LIM.3.

    Hitting one is an error for the caller concerned (its ``data.reason`` is the field's name)
    and disturbs nobody else.
    """

    # -- messages -------------------------------------------------------------------------
    message_bytes: int = _positive(4 * 1024 * 1024)
    """One JSON-RPC message, as UTF-8 (WIRE.2)."""
    message_depth: int = field(
        default=64, validator=[validators.instance_of(int), validators.gt(0), validators.le(DEEPEST_MESSAGE)]
    )
    """Nesting of arrays and objects in one message (WIRE.2); ``DEEPEST_MESSAGE`` at most."""
    result_bytes: int = _positive(4 * 1024 * 1024)
    """One result of a task, or one set of input requests that it makes."""

    # -- tasks ----------------------------------------------------------------------------
    tasks: int = _positive(100_000)
    """Tasks kept, of every status (TTL.2)."""
    tasks_per_principal: int = _positive(10_000)
    """Tasks kept for one principal (TTL.2)."""
    task_bytes: int = _positive(1024 * 1024 * 1024)
    """Arguments, input requests, answers and results kept, all tasks together (TTL.2)."""
    ttl_ms: int = _positive(3_600_000)
    """Lifetime of a task whose tool names none."""
    ttl_ceiling_ms: int | None = field(
        default=None, validator=validators.optional([validators.instance_of(int), validators.gt(0)])
    )
    """Longest lifetime a tool may give; ``None``: any, unlimited included."""
    poll_interval_ms: int = _positive(1000)
    """Poll hint of a task whose tool names none."""
    cancel_grace_ms: int = _positive(10_000)
    """After a cancel, how long a worker may take to stop by itself (CAN.6)."""
    input_keys: int = _positive(256)
    """Input requests one task may make in its life."""
    resumptions: int = _positive(16)
    """Times the work of one task is taken over when its node is gone; then the task fails."""
    checkpoint_bytes: int = _positive(64 * 1024)
    """What the work of one task may save for the next run, as JSON."""
    status_message_chars: int = _positive(4096)
    """Longest status message; longer ones are cut."""
    sweep_batch: int = _positive(256)
    """Expired records removed in one go, so that sweeping never stalls requests."""

    # -- what an engine holds ---------------------------------------------------------------
    exchanges: int = _positive(4096)
    """Requests awaiting their reply, listen streams included."""
    streams: int = _positive(1024)
    """Open listen streams."""
    streams_per_principal: int = _positive(64)
    """Open listen streams of one principal. Callers without a name are many: they are not held to it."""
    stream_tasks: int = _positive(256)
    """Task ids on one listen stream."""
    workers: int = _positive(100_000)
    """Workers running under one engine."""
    save_attempts: int = _positive(64)
    """Times one operation re-decides after a save conflict."""
    request_state_ms: int = _positive(900_000)
    """How long a sealed ``requestState`` is accepted (INP.4)."""
    request_state_bytes: int = _positive(64 * 1024)
    """Largest sealed ``requestState``."""

    # -- sessions of 2025-11-25 (LEG.2) ------------------------------------------------------
    sessions: int = _positive(4096)
    """Sessions open at once."""
    sessions_per_principal: int = _positive(1024)
    """Sessions of one principal."""
    session_idle_ms: int = _positive(1_800_000)
    """A session in which nothing is asked and no stream is open."""
    session_lost_requests: int = _positive(64)
    """Calls of a session that go on although their connection was lost; then the oldest is cancelled."""
    session_events: int = _positive(256)
    """Events of its streams that a session keeps, for a client that lost its connection."""
    session_event_bytes: int = _positive(256 * 1024)
    """The same, as JSON."""
    all_session_event_bytes: int = _positive(16 * 1024 * 1024)
    """The same, of all sessions together; then the oldest of all give way."""
    requested_ttl_ms: int = _positive(86_400_000)
    """Longest lifetime that a client may ask for its task (LEG.3)."""

    # -- connections (adapters) ---------------------------------------------------------------
    connections: int = _positive(1024)
    """TCP connections open at once; fewer where the process may not open so many files."""
    arriving_bytes: int = _positive(256 * 1024 * 1024)
    """Bodies of HTTP requests of which the rest has not come yet, of all connections together."""
    header_bytes: int = _positive(64 * 1024)
    """An HTTP head: request line and headers."""
    header_timeout_ms: int = _positive(10_000)
    """From the first byte of an HTTP head to its last."""
    body_timeout_ms: int = _positive(30_000)
    """From the head of an HTTP request to the last byte of its body."""
    idle_timeout_ms: int = _positive(75_000)
    """A keep-alive connection without a request."""
    write_timeout_ms: int = _positive(30_000)
    """A peer that does not take what is written to it."""
    keep_alive_ms: int = _positive(15_000)
    """Between comments on a silent event stream."""
    shutdown_grace_ms: int = _positive(3_000)
    """For streams and requests to end by themselves when the server stops."""
