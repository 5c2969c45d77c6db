"""One requester of both eras, and a server of 2025-11-25 that is played by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto.legacy.messages import (
    Closing,
    ConnectionLost,
    DualEraEffect,
    SendLegacy,
    ServerAsked,
    StreamOpened,
)
from mcp_tasks_proto.legacy.requester import DualEraRequester
from mcp_tasks_proto.requester import (
    HttpReply,
    NotificationReceived,
    RequesterLimits,
    RequesterSettings,
    ResponseReceived,
    SendRequest,
)
from mcp_tasks_proto.testing import RequesterHost
from mcp_tasks_proto.wire.jsonrpc import notification_message, request_message
from tests.unit import requester_world
from tests.unit.requester_world import DONE, ENDPOINT, FORMS, START, TASK, stamp

__all__ = [
    "CAPABILITIES",
    "RELATED",
    "LegacyHost",
    "elicitation",
    "initialized",
    "legacy_host",
    "legacy_task",
    "make_dual",
    "nested",
    "outcome",
    "related",
    "server_of_tasks",
    "tools",
]

RELATED: Final = "io.modelcontextprotocol/related-task"
CAPABILITIES: Final[dict[str, Any]] = {
    "tools": {"listChanged": True},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
PLAIN: Final[dict[str, Any]] = {"tools": {}}


@define(eq=False, kw_only=True)
class LegacyHost(RequesterHost):
    """A host as it is for a requester engine, of an engine that speaks to both eras."""

    engine: Any
    begun: list[Any] = field(init=False, factory=list)
    """Calls that a test wants to remember."""
    slow: bool = field(init=False, default=False)
    _shared: set[int] = field(init=False, factory=set)

    def give(self, fact: Any) -> list[Any]:
        """Hand in a fact; streams that are asked for are open at once, unless ``slow``."""
        before = set(self.waiting("GET"))
        effects: list[Any] = super().give(fact)
        for number in [] if self.slow else self.waiting("GET"):
            if number not in before:
                effects += self.give(StreamOpened(number))
        return effects

    def _take(self, effect: DualEraEffect) -> None:
        if isinstance(effect, SendLegacy | SendRequest):
            again = isinstance(effect, SendLegacy) and bool(effect.session or effect.last_event_id)
            assert effect.request not in self.in_flight, f"a request that is not in flight: {effect}"
            assert again or effect.request not in self._shared, f"a number of its own: {effect}"
            if isinstance(effect, SendLegacy):
                first = named(effect) in ("initialize", "response")
                assert first or effect.version is not None, f"in a session: {effect}"
            self._shared.add(effect.request)
            self.effects.append(effect)  # type: ignore[arg-type]
            self.in_flight[effect.request] = effect  # type: ignore[assignment]
        else:
            super()._take(effect)

    def give_dual(self, fact: Any) -> list[Any]:
        """Hand in a fact that only an engine of both eras knows."""
        return self.give(fact)

    # -- what is in flight ---------------------------------------------------------------------------------

    def number_of(self, request: int | str) -> int:
        """Return the number of the oldest in flight of a method, a verb, or ``"response"``."""
        if isinstance(request, int):
            return request
        for number, sent in self.in_flight.items():
            if named(sent) == request:
                return number
        raise LookupError(f"no {request} in flight, but {[named(one) for one in self.in_flight.values()]}")

    def waiting(self, method: str) -> list[int]:
        """Return the numbers of what is in flight under a name, oldest first."""
        return [number for number, sent in self.in_flight.items() if named(sent) == method]

    def flight(self) -> list[str]:
        """Return the names of what is in flight."""
        return [named(sent) for sent in self.in_flight.values()]

    def legacy(self, request: int | str) -> SendLegacy:
        """Return what is in flight, as it was sent."""
        sent: Any = self.in_flight[self.number_of(request)]
        assert isinstance(sent, SendLegacy)
        return sent

    def all_sent(self, method: str) -> list[SendLegacy]:
        """Return all of a name that was ever sent, oldest first."""
        return [sent for sent in self.of(SendLegacy) if named(sent) == method]

    def legacy_params_sent(self, method: str) -> list[dict[str, Any]]:
        """Return the params of every legacy request of a method, oldest first."""
        return [(sent.message or {})["params"] for sent in self.all_sent(method)]

    def responses(self) -> list[dict[str, Any]]:
        """Return every response that was ever sent."""
        return [sent.message or {} for sent in self.all_sent("response")]

    # -- what the server does ------------------------------------------------------------------------------

    def take_all(self) -> None:
        """Take everything that is owed no response, as HTTP does with 202."""
        for number, sent in list(self.in_flight.items()):
            if isinstance(sent, SendLegacy) and sent.verb == "POST" and not sent.awaits_response:
                self.give(ResponseReceived(request=number, message=None, http=HttpReply(status=202)))

    def greet(self, capabilities: Mapping[str, Any] = CAPABILITIES, *, session: str | None = "s-1") -> None:
        """Answer ``initialize``, and take ``notifications/initialized``."""
        self.reply("initialize", initialized(capabilities), http=HttpReply(status=200, session=session))
        self.take_all()

    def ask_client(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        message_id: str | int = 0,
        on: int | str = 0,
        new_id: str = "client-task",
    ) -> list[Any]:
        """Send a request to the client, ``on`` the stream of one of its own."""
        stream = self.number_of(on) if on else 0
        message = request_message(message_id, method, params or {})
        return self.give_dual(ServerAsked(request=stream, message=message, new_id=new_id))

    def say(self, method: str, params: Mapping[str, Any] | None = None, *, on: int | str = 0) -> list[Any]:
        """Send a notification, ``on`` the stream of a request, or on none."""
        stream = self.number_of(on) if on else 0
        return self.give(NotificationReceived(stream, notification_message(method, params or {})))

    def die(self) -> list[Any]:
        """End the server's process."""
        return self.give_dual(ConnectionLost())

    def close(self) -> list[Any]:
        """Say that the client is about to close."""
        return self.give_dual(Closing())


def outcome(host: RequesterHost, call: Any) -> Any:
    """Return how a call ended, which it must have; what it has shows what it is."""
    return requester_world.outcome(host, call)


def named(sent: Any) -> str:
    """Return what a message is called here."""
    if sent.message is None:
        return str(sent.verb)
    return str(sent.message.get("method", "response"))


def make_dual(
    *,
    era: Any = None,
    http: bool = True,
    modern_only: bool = False,
    limits: RequesterLimits | None = None,
    **settings: Any,
) -> LegacyHost:
    """Return a host of an engine that has sent nothing yet."""
    chosen = {
        "capabilities": FORMS,
        "listen": False,
        "endpoint": ENDPOINT,
        "mirror_arguments": False,
        **settings,
    }
    engine = DualEraRequester(
        settings=RequesterSettings(name="test", version="1", limits=limits or RequesterLimits(), **chosen),
        http=http,
        era=era,
        modern_only=modern_only,
    )
    return LegacyHost(engine=engine, now=START)


def legacy_host(
    offers: Mapping[str, Any] = PLAIN, *, session: str | None = "s-1", **options: Any
) -> LegacyHost:
    """Return a host whose server is known to be legacy and ``offers`` this, in a session."""
    host = make_dual(era="legacy", **options)
    call = host.ask("server/discover")
    host.greet(offers, session=session if host.engine.http else None)
    assert call in host.outcomes
    assert not host.in_flight
    return host


def server_of_tasks(support: str | None = "optional", **options: Any) -> LegacyHost:
    """Return a host whose server has one tool, ``render``, and runs it as a task."""
    host = legacy_host(CAPABILITIES, **options)
    host.ask("tools/list")
    host.reply("tools/list", tools(render=support))
    return host


def initialized(
    capabilities: Mapping[str, Any] = CAPABILITIES, version: str = "2025-11-25"
) -> dict[str, Any]:
    """Return the result of ``initialize``."""
    return {
        "protocolVersion": version,
        "capabilities": dict(capabilities),
        "serverInfo": {"name": "old", "version": "1"},
        "instructions": "Ask.",
    }


def tools(**support: str | None) -> dict[str, Any]:
    """Return a page of ``tools/list``: tools, and what each says of tasks."""
    return {
        "tools": [
            {"name": name, "inputSchema": {}, **({} if one is None else {"execution": {"taskSupport": one}})}
            for name, one in support.items()
        ]
    }


def legacy_task(status: str = "working", *, at: int = 0, task_id: str = TASK, **more: Any) -> dict[str, Any]:
    """Return a task in legacy words, as it stands ``at`` that second."""
    return {
        "taskId": task_id,
        "status": status,
        "createdAt": stamp(0),
        "lastUpdatedAt": stamp(at),
        "ttl": 60_000,
        "pollInterval": 1_000,
        **more,
    }


def nested(status: str = "working", **more: Any) -> dict[str, Any]:
    """Return the result of a call that became a task."""
    return {"task": legacy_task(status, **more)}


def related(result: Mapping[str, Any] = DONE, task_id: str = TASK) -> dict[str, Any]:
    """Return a result, or params, tied to a task."""
    return {**result, "_meta": {RELATED: {"taskId": task_id}}}


def elicitation(message: str = "Your name?", **more: Any) -> dict[str, Any]:
    """Return the params of a request for a form with one required field, ``name``."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {"mode": "form", "message": message, "requestedSchema": schema, **more}
