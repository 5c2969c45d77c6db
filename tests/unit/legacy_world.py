"""A server of both eras, and a client of 2025-11-25 as tests see it: what it sends, and what it gets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from attrs import define, field

from mcp_tasks_proto import (
    CallBecameTask,
    ConnectionClosed,
    Effect,
    HmacSealer,
    HttpHead,
    Limits,
    MessageReceived,
    OpenStream,
    Reply,
    Send,
    ServerSettings,
    SessionEnded,
    StartTool,
    StreamReady,
    StreamRequested,
    TimePassed,
    WorkCompleted,
)
from mcp_tasks_proto.legacy.server import DualEraServer, LegacyPolicy
from mcp_tasks_proto.testing import DictStore, ServerHost
from tests.unit.world import DONE, START, TASK, TOOLS

ALL: Final[Mapping[str, Any]] = {"elicitation": {}, "sampling": {}, "roots": {}}
"""What a client may declare, so that it can be asked anything."""

SESSION: Final = "session-one-0123456789abcdef"
OTHER_SESSION: Final = "session-two-0123456789abcdef"


def make_dual(
    limits: Limits | None = None,
    *,
    policy: LegacyPolicy = LegacyPolicy.SERVE,
    store: DictStore | None = None,
    node: str | None = None,
    **settings: Any,
) -> ServerHost:
    """Return a host whose engine serves both eras."""
    settings.setdefault("sealer", HmacSealer([b"k" * 32]))
    engine = DualEraServer(
        settings=ServerSettings(name="test", version="1", limits=limits or Limits(), **settings),
        tools=TOOLS,
        node=node,
        policy=policy,
    )
    host = ServerHost(engine=engine, store=store or DictStore(), now=START)
    host.give(TimePassed())
    return host


@define(eq=False)
class LegacyClient:
    """One session. Over HTTP unless it has a ``connection``."""

    host: ServerHost
    session: str = SESSION
    principal: str | None = None
    connection: str | None = None
    capabilities: Mapping[str, Any] = ALL
    tasks_enabled: bool = True
    headers: dict[str, str] = field(factory=lambda: {"mcp-protocol-version": "2025-11-25"})
    accepts_stream: bool = True
    _ids: count[int] = field(init=False, factory=lambda: count(1))
    _exchanges: count[int] = field(init=False, factory=lambda: count(1))
    _sent: dict[str, Any] = field(init=False, factory=dict)

    def head(self, **changed: str | None) -> HttpHead | None:
        """Return the head of its requests."""
        if self.connection is not None:
            return None
        headers: dict[str, str | None] = {**self.headers, "mcp-session-id": self.session}
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        sent = {name: value for name, value in headers.items() if value is not None}
        return HttpHead(headers=sent, accepts_stream=self.accepts_stream)

    def exchange(self) -> str:
        """Return a new exchange."""
        return f"{self.session}/{self.principal}/{next(self._exchanges)}"

    def send(self, message: Any, *, new_session: str | None = None, **headers: str | None) -> str:
        """Send a message, and return its exchange."""
        exchange = self.exchange()
        self._sent[exchange] = message
        self.host.give(
            MessageReceived(
                exchange=exchange,
                message=message,
                connection=self.connection,
                http=self.head(**headers),
                principal=self.principal,
                tasks_enabled=self.tasks_enabled,
                new_session=new_session,
            )
        )
        return exchange

    def initialize(self, **params: Any) -> dict[str, Any]:
        """Open the session, and return the result."""
        wanted = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
            **params,
        }
        exchange = self.send(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": wanted},
            new_session=None if self.connection else self.session,
            mcp_session_id=None,
            mcp_protocol_version=None,
        )
        return self.result(exchange)

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, id: Any = None) -> str:  # noqa: A002
        """Send a request, and return its exchange."""
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": f"r{next(self._ids)}" if id is None else id,
            "method": method,
        }
        if params is not None:
            message["params"] = params
        return self.send(message)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> str:
        """Send a notification, and return its exchange."""
        return self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def respond(self, question: Mapping[str, Any], result: Any = None, error: Any = None) -> str:
        """Answer a request of the server's."""
        outcome = {"result": result} if error is None else {"error": error}
        return self.send({"jsonrpc": "2.0", "id": question["id"], **outcome})

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return the result, which must be there by then."""
        return self.result(self.request(method, params))

    def refused(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return the error."""
        return self.error(self.request(method, params))

    def get(self, **headers: str | None) -> str:
        """Open a stream, and return its exchange."""
        exchange = self.exchange()
        head = self.head(**headers)
        assert head is not None
        self.host.give(StreamRequested(exchange=exchange, http=head, principal=self.principal))
        return exchange

    def delete(self, **headers: str | None) -> Reply:
        """End the session, and return the answer."""
        exchange = self.exchange()
        head = self.head(**headers)
        assert head is not None
        self.host.give(SessionEnded(exchange=exchange, http=head, principal=self.principal))
        return self.reply(exchange)

    def hang_up(self) -> None:
        """End the connection of stdio."""
        self.host.give(ConnectionClosed(self.connection))

    # -- what came back --------------------------------------------------------------------------------

    def replies(self, exchange: str) -> list[Reply]:
        """Return every reply on an exchange: there is at most one."""
        return [one for one in self.host.of(Reply) if one.exchange == exchange]

    def reply(self, exchange: str) -> Reply:
        """Return the reply on an exchange; one to a request has its id (WIRE.3)."""
        (reply,) = self.replies(exchange)
        sent = self._sent.get(exchange)
        if isinstance(sent, dict) and "method" in sent and reply.message is not None:
            assert reply.message.get("id") == sent.get("id")
        return reply

    def result(self, exchange: str) -> dict[str, Any]:
        """Return the result on an exchange."""
        message = self.reply(exchange).message
        assert message is not None
        assert "result" in message, message
        found: dict[str, Any] = message["result"]
        return found

    def error(self, exchange: str) -> dict[str, Any]:
        """Return the error on an exchange."""
        message = self.reply(exchange).message
        assert message is not None
        assert "error" in message, message
        found: dict[str, Any] = message["error"]
        return found

    def read(self, exchange: str) -> list[dict[str, Any]]:
        """Read all there is on a stream; return everything it has got before its last message."""
        while self.host.give(StreamReady(exchange)):
            pass
        return [one.message for one in self.host.of(Send) if one.exchange == exchange]

    def questions(self, exchange: str) -> list[dict[str, Any]]:
        """Return the server's requests on a stream."""
        return [one for one in self.read(exchange) if "id" in one]

    def statuses(self, exchange: str) -> list[str]:
        """Return the statuses told on a stream."""
        news = [one for one in self.read(exchange) if one.get("method") == "notifications/tasks/status"]
        return [one["params"]["status"] for one in news]


def opened(host: ServerHost, **facts: Any) -> LegacyClient:
    """Return a client whose session is open."""
    client = LegacyClient(host, **facts)
    client.initialize()
    client.notify("notifications/initialized")
    return client


def started(host: ServerHost) -> StartTool:
    """Return the call that began last."""
    return host.of(StartTool)[-1]


def call(client: LegacyClient, tool: str = "optional", **params: Any) -> str:
    """Call a tool, whose handler runs now; return the exchange."""
    before = len(client.host.of(StartTool))
    exchange = client.request("tools/call", {"name": tool, "arguments": {"frames": 3}, **params})
    assert len(client.host.of(StartTool)) == before + 1, client.host.effects[-1]
    return exchange


def created(client: LegacyClient, task_id: str = TASK, tool: str = "optional", **task: Any) -> dict[str, Any]:
    """Make a task, and return it as the client got it."""
    exchange = call(client, tool, task=task)
    start = started(client.host)
    assert start.must_create_task
    client.host.give(CallBecameTask(exchange=start.exchange, task_id=task_id))
    found: dict[str, Any] = client.result(exchange)["task"]
    return found


def completed(client: LegacyClient, result: Mapping[str, Any] = DONE, task_id: str = TASK) -> list[Effect]:
    """Let a task end with a result."""
    return client.host.give(WorkCompleted(task_id=task_id, token="done", result=result))


def streams(client: LegacyClient) -> list[Any]:
    """Return the exchanges that were made streams before there was a message."""
    return [one.exchange for one in client.host.of(OpenStream)]
