"""The synchronous heart of every server: an engine, its store, its tools, on somebody's loop.

A driver feeds inputs to the engine and carries out the effects. It does no I/O and never waits; a loop
module gives it a :class:`Loop` to start coroutines on and one :class:`Channel` for each exchange.
"""

from mcp_tasks_adapters.driver.driver import LAST_WORDS_SECONDS, Driver, session_for
from mcp_tasks_adapters.driver.interfaces import Channel, Job, Loop, RequestFacts, Service, SessionService
from mcp_tasks_adapters.storing import Event, Store, StoreEffect

__all__ = [
    "LAST_WORDS_SECONDS",
    "Channel",
    "Driver",
    "Event",
    "Job",
    "Loop",
    "RequestFacts",
    "Service",
    "SessionService",
    "Store",
    "StoreEffect",
    "session_for",
]
