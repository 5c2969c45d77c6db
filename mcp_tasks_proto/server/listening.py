"""``subscriptions/listen``: how a listen stream begins, and how the server ends it."""

from __future__ import annotations

from attrs import define

from mcp_tasks_proto.effects import Effect, Send
from mcp_tasks_proto.errors import invalid_params, invalid_request, limit_reached
from mcp_tasks_proto.server.exchange import Awaits, Exchange
from mcp_tasks_proto.server.exchanges import SHUTTING_DOWN, Exchanges
from mcp_tasks_proto.server.operations import LookUp
from mcp_tasks_proto.server.reports import is_task_id
from mcp_tasks_proto.server.tasks import Tasks
from mcp_tasks_proto.settings import ServerSettings
from mcp_tasks_proto.subscriptions import Stream, Streams
from mcp_tasks_proto.vocabulary import SUBSCRIPTION_ID
from mcp_tasks_proto.wire.jsonrpc import error_message
from mcp_tasks_proto.wire.schema import ListenParams, ParamsError, structure

__all__ = ["Listening"]


@define(eq=False, repr=False, kw_only=True)
class Listening:
    """Opens the listen streams of an engine; what is sent on them is for :class:`Streams` to say."""

    settings: ServerSettings
    exchanges: Exchanges
    streams: Streams
    tasks: Tasks
    out: list[Effect]

    def open(self, exchange: Exchange) -> None:
        """Begin ``subscriptions/listen`` (SUB.1)."""
        exchanges = self.exchanges
        try:
            wanted = structure(ListenParams, exchange.request.params).notifications
        except ParamsError as problem:
            return exchanges.fail(exchange, invalid_params(str(problem)))
        task_ids = None
        if wanted.task_ids is not None and exchange.tasks_enabled:
            task_ids = tuple(filter(is_task_id, dict.fromkeys(wanted.task_ids)))
        limits, streams = self.settings.limits, self.streams
        if not exchange.takes_notifications:
            error = invalid_request("subscriptions/listen is answered with text/event-stream; accept it")
            return exchanges.finish(exchange, error_message(exchange.request.id, error), 406)
        if len(task_ids or ()) > limits.stream_tasks:
            return exchanges.fail(exchange, limit_reached("stream_tasks"))
        if len(streams) >= limits.streams:
            return exchanges.fail(exchange, limit_reached("streams"))
        principal = exchange.principal
        if principal is not None and streams.of_principal(principal) >= limits.streams_per_principal:
            return exchanges.fail(exchange, limit_reached("streams_per_principal"))
        exchange.awaits = Awaits.NEWS
        stream = Stream(
            exchange=exchange.key,
            request_id=exchange.request.id,
            principal=principal,
            tools_list_changed=wanted.tools_list_changed,
            task_ids=task_ids,
        )
        self.out.extend(streams.open(stream))
        for task_id in task_ids or ():
            self.tasks.begin(LookUp(task_id=task_id, exchange=exchange.key, principal=exchange.principal))
        return None

    def shut_down(self) -> None:
        """End all of them; one that was not acknowledged yet is refused."""
        for exchange in [one for one in self.exchanges.by_key.values() if one.awaits is Awaits.NEWS]:
            if self.streams.acknowledged(exchange.key):
                self._end(exchange)
            else:
                self.exchanges.fail(exchange, SHUTTING_DOWN)

    def _end(self, exchange: Exchange) -> None:
        """End a listen stream from this side: what waits is sent, then the result (SUB.4)."""
        self.out.extend(self.streams.waiting(exchange.key))
        body = {"_meta": {SUBSCRIPTION_ID: exchange.request.id}}
        if exchange.connection is None:
            return self.exchanges.reply(exchange, body)
        # The core wants a notification as well on a channel that does not close with the stream. It comes
        # second: a client that reads it first takes the stream for lost.
        self.out.append(Send(exchange.key, self.exchanges.result(exchange, body)))
        return self.exchanges.finish(exchange, self.streams.cancelled(exchange.key), 200)
