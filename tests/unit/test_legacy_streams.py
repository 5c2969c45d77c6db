"""Streams of a 2025-11-25 session: its own, and those that are taken up again (LEG.2)."""

from __future__ import annotations

import pytest

from mcp_tasks_proto import (
    CallAskedInput,
    CallNotified,
    CallReturned,
    ExchangeClosed,
    Limits,
    Reply,
    Send,
    ShutdownStarted,
    StartTool,
    StopCall,
    ToolsChanged,
)
from mcp_tasks_proto.legacy.server.events import EventLog, KeptEvents, Place, event_id, read_event_id
from mcp_tasks_proto.wire.jsonrpc import json_size, notification_message
from tests.unit.legacy_world import (
    OTHER_SESSION,
    LegacyClient,
    call,
    created,
    make_dual,
    opened,
    started,
    streams,
)
from tests.unit.world import ACCEPTED, DONE, TASK, form

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


def progress(client: LegacyClient, *done: int) -> None:
    """Let the handler that runs now report, and the client read it."""
    for one in done:
        client.host.give(
            CallNotified(started(client.host).exchange, "notifications/progress", {"progress": one})
        )


def told(client: LegacyClient, exchange: str) -> list[tuple[str | None, object]]:
    """Return the events of a stream: their ids, and how far it was or what the call came to."""
    client.read(exchange)
    events: list[tuple[str | None, object]] = [
        (one.event_id, one.message["params"]["progress"])
        for one in client.host.of(Send)
        if one.exchange == exchange
    ]
    for reply in client.replies(exchange):
        assert reply.http_status == 200
        if reply.message is not None:
            events.append((reply.event_id, reply.message.get("result")))
    return events


# -- the stream of a session -----------------------------------------------------------------------------


def test_leg2_a_get_opens_a_stream_that_tells_of_changed_tools() -> None:
    client = opened(make_dual())
    exchange = client.get()
    assert streams(client) == [exchange]
    for _ in range(3):
        client.host.give(ToolsChanged([]))
    assert client.read(exchange) == [CHANGED, CHANGED]
    client.host.give(ExchangeClosed(exchange))
    client.host.give(ToolsChanged([]))
    assert client.read(exchange) == [CHANGED, CHANGED]


def test_leg2_a_second_get_takes_the_place_of_the_first() -> None:
    client = opened(make_dual())
    first, second = client.get(), client.get()
    client.host.give(ToolsChanged([]))
    assert (client.reply(first).message, client.reply(first).http_status) == (None, 200)
    assert client.read(first) == []
    assert client.read(second) == [CHANGED]


def test_leg2_on_stdio_the_connection_is_that_stream() -> None:
    client = LegacyClient(make_dual(), connection="stdio")
    client.initialize()
    exchange = client.notify("notifications/initialized")
    again = client.notify("notifications/initialized")
    assert client.replies(exchange) == []
    assert client.reply(again).http_status == 202
    client.host.give(ToolsChanged([]))
    assert client.read(exchange) == [CHANGED]
    client.host.give(ShutdownStarted())
    assert client.reply(exchange).message is None


def test_lim3_the_stream_of_a_session_takes_no_place_of_a_listen_stream() -> None:
    host = make_dual(Limits(streams=1, streams_per_principal=1))
    clients = [opened(host, session=f"session-{number}") for number in range(3)]
    exchanges = [client.get() for client in clients]
    created(clients[0])
    waits = clients[0].request("tasks/result", {"taskId": TASK})
    assert clients[0].statuses(waits) == ["working"]
    host.give(ToolsChanged([]))
    for client, exchange in zip(clients, exchanges, strict=True):
        assert client.read(exchange) == [CHANGED]
    clients[1].delete()
    assert clients[1].reply(exchanges[1]).message is None
    assert clients[2].replies(exchanges[2]) == []


def test_leg2_a_get_needs_its_session() -> None:
    client = opened(make_dual())
    assert client.reply(client.get(mcp_session_id=None)).http_status == 400
    assert client.reply(client.get(mcp_session_id="unknown", last_event_id="x")).http_status == 404


# -- streams that are taken up again -----------------------------------------------------------------------


def test_leg2_what_was_missed_is_sent_again_then_the_rest() -> None:
    client = opened(make_dual())
    lost = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    assert told(client, lost) == [("1-1", 1)]
    client.host.give(ExchangeClosed(lost))
    progress(client, 2, 3)
    exchange = client.get(last_event_id="1-1")
    assert streams(client) == [exchange]
    assert told(client, exchange) == [("1-2", 2), ("1-3", 3)]
    progress(client, 4)
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert told(client, exchange) == [("1-2", 2), ("1-3", 3), ("1-4", 4), ("1-5", DONE)]
    assert told(client, lost) == [("1-1", 1)]


def test_leg2_nothing_is_passed_over_while_a_connection_is_lost() -> None:
    """Nobody has to read before there is room for the next."""
    client = opened(make_dual())
    lost = call(client, _meta={"progressToken": "p"})
    progress(client, 1, 2)
    client.host.give(ExchangeClosed(lost))
    progress(client, 3, 4)
    exchange = client.get(last_event_id="1-0")
    assert told(client, exchange) == [("1-1", 1), ("1-2", 2), ("1-3", 3), ("1-4", 4)]


def test_leg2_a_stream_that_ended_meanwhile_is_sent_to_its_end() -> None:
    client = opened(make_dual())
    lost = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    client.host.give(ExchangeClosed(lost))
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    for _ in range(2):
        assert told(client, client.get(last_event_id="1-1")) == [("1-2", DONE)]
    assert told(client, client.get(last_event_id="1-2")) == []
    assert client.host.of(Reply)[-1].message is None


def test_leg2_a_stream_is_taken_over_from_a_connection_that_nobody_knows_is_dead() -> None:
    client = opened(make_dual())
    first = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    second = client.get(last_event_id="1-0")
    assert (client.reply(first).message, client.reply(first).http_status) == (None, 200)
    assert told(client, second) == [("1-1", 1)]
    client.host.give(ExchangeClosed(first))
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert told(client, second) == [("1-1", 1), ("1-2", DONE)]


def test_leg2_a_question_that_was_missed_is_asked_again() -> None:
    client = opened(make_dual())
    lost = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    client.host.give(ExchangeClosed(lost))
    client.host.give(CallAskedInput(started(client.host).exchange, {"name": form()}))
    exchange = client.get(last_event_id="1-1")
    (question,) = client.questions(exchange)
    client.respond(question, ACCEPTED)
    assert started(client.host).answers == {"name": ACCEPTED}


def test_leg2_a_call_that_waits_for_its_client_waits_for_it_to_come_back() -> None:
    client = opened(make_dual())
    lost = call(client)
    client.host.give(CallAskedInput(started(client.host).exchange, {"name": form()}))
    (question,) = client.questions(lost)
    client.host.give(ExchangeClosed(lost))
    exchange = client.get(last_event_id="1-0")
    assert client.questions(exchange) == [question]
    client.respond(question, ACCEPTED)
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert client.result(exchange) == DONE


def test_lim3_of_too_many_calls_without_a_connection_the_oldest_is_cancelled() -> None:
    client = opened(make_dual(Limits(session_lost_requests=2)))
    lost = []
    for _ in range(4):
        exchange = call(client, _meta={"progressToken": "p"})
        progress(client, 1)
        client.read(exchange)
        client.host.give(ExchangeClosed(exchange))
        lost.append(started(client.host).exchange)
        client.get(last_event_id="1-1")  # the first one is never without a connection for long
    stopped = [one.exchange for one in client.host.of(StopCall)]
    assert stopped == lost[1:2]
    for kept in (lost[0], *lost[2:]):
        client.host.give(CallReturned(kept, DONE))
    assert told(client, client.get(last_event_id="4-1")) == [("4-2", DONE)]
    assert told(client, client.get(last_event_id="2-1")) == []


def test_lim3_calls_without_a_connection_give_way_to_requests_that_have_one() -> None:
    host = make_dual(Limits(exchanges=2))
    client, other = opened(host), opened(host, session="another")
    for _ in range(2):
        host.give(ExchangeClosed(call(client)))
    first = host.of(StartTool)[0].exchange
    assert other.ask("ping") == {}
    assert [one.exchange for one in host.of(StopCall)] == [first]


def test_lim3_only_calls_without_a_connection_give_way() -> None:
    host = make_dual(Limits(exchanges=2))
    client, other = opened(host), opened(host, session="another")
    for _ in range(2):
        exchange = call(client, _meta={"progressToken": "p"})
        progress(client, 1)
        host.give(ExchangeClosed(exchange))
    over, resumed = host.of(StartTool)
    host.give(CallReturned(over.exchange, DONE))
    taken_up = client.get(last_event_id="2-1")
    call(other)
    assert other.refused("ping")["data"] == {"reason": "exchanges"}
    assert host.of(StopCall) == []
    host.give(CallReturned(resumed.exchange, DONE))
    assert told(client, taken_up) == [("2-2", DONE)]


def test_lim3_a_call_that_is_over_is_not_one_of_too_many_without_a_connection() -> None:
    client = opened(make_dual(Limits(session_lost_requests=1)))
    for _ in range(3):
        client.host.give(ExchangeClosed(call(client)))
        client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert client.host.of(StopCall) == []


def test_leg2_each_stream_has_its_own_events() -> None:
    client = opened(make_dual())
    first = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    second = call(client, _meta={"progressToken": "q"})
    progress(client, 7)
    assert told(client, first) == [("1-1", 1)]
    assert told(client, second) == [("2-1", 7)]
    client.host.give(ExchangeClosed(second))
    assert told(client, client.get(last_event_id="2-1")) == []
    assert told(client, client.get(last_event_id="9-1")) == []


def test_leg2_on_stdio_nothing_has_an_id() -> None:
    client = opened(make_dual(), connection="stdio")
    exchange = call(client, _meta={"progressToken": "p"})
    progress(client, 1)
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert told(client, exchange) == [(None, 1), (None, DONE)]


def test_leg2_an_answer_without_a_stream_has_no_id() -> None:
    client = opened(make_dual())
    exchange = call(client)
    client.host.give(CallReturned(started(client.host).exchange, DONE))
    assert told(client, exchange) == [(None, DONE)]


@pytest.mark.parametrize("name", ["", "1", "-1", "1-", "1-2-3", "01-1", "1-x", "1" * 40 + "-1", "\uff11-1"])
def test_leg2_an_event_that_is_none_of_ours_is_refused(name: str) -> None:
    client = opened(make_dual())
    assert client.reply(client.get(last_event_id=name)).http_status == 400


def test_leg2_a_lost_result_stream_is_over() -> None:
    client = opened(make_dual())
    created(client)
    lost = client.request("tasks/result", {"taskId": TASK})
    client.read(lost)
    client.host.give(ExchangeClosed(lost))
    exchange = client.get(last_event_id="2-1")
    assert client.reply(exchange).message is None


# -- the log -----------------------------------------------------------------------------------------------


def test_lim3_the_oldest_events_give_way() -> None:
    log = EventLog(KeptEvents(Limits(session_events=3, session_event_bytes=60)))
    for number in range(1, 6):
        log.add(Place(1, number), {"n": number}, last=False)
    assert [event.place.number for event in log.after(Place(1, 0))] == [3, 4, 5]
    log.add(Place(2, 1), {"text": "x" * 40}, last=True)
    assert [event.place.number for event in log.after(Place(1, 0))] == [5]
    log.add(Place(2, 2), {"text": "x" * 100}, last=True)
    assert log.after(Place(2, 0)) == []


def test_lim3_as_many_bytes_of_events_are_kept_as_there_may_be() -> None:
    size = json_size({"n": 1})
    log = EventLog(KeptEvents(Limits(session_event_bytes=3 * size)))
    for number in range(1, 6):
        log.add(Place(1, number), {"n": number}, last=False)
        assert [event.place.number for event in log.after(Place(1, 0))] == [1, 2, 3, 4, 5][:number][-3:]


def test_lim3_however_many_events_have_been_there_all_sessions_keep_so_many() -> None:
    size = json_size({"n": 1})
    kept = KeptEvents(Limits(all_session_event_bytes=3 * size))
    logs = [EventLog(kept), EventLog(kept)]
    for number in range(1, 10):
        logs[number % 2].add(Place(1, number), {"n": number}, last=False)
    assert [[event.place.number for event in log.after(Place(1, 0))] for log in logs] == [[8], [7, 9]]


def test_lim3_the_oldest_events_of_all_sessions_give_way() -> None:
    event = notification_message("notifications/progress", {"progress": 1, "progressToken": "p"})
    host = make_dual(Limits(all_session_event_bytes=3 * json_size(event)))
    first, second = opened(host), opened(host, session=OTHER_SESSION)
    handlers = []
    for client in (first, second):
        exchange = call(client, _meta={"progressToken": "p"})
        handlers.append(started(host).exchange)
        for done in (1, 2):
            progress(client, done)
            client.read(exchange)
    exchange = first.get(last_event_id="1-0")
    assert told(first, exchange) == [("1-2", 2)]
    assert told(second, second.get(last_event_id="1-0")) == [("1-1", 1), ("1-2", 2)]
    second.delete()
    for done in (3, 4):  # what the session that ended had kept makes room for more
        host.give(CallNotified(handlers[0], "notifications/progress", {"progress": done}))
        first.read(exchange)
    assert told(first, first.get(last_event_id="1-0")) == [("1-2", 2), ("1-3", 3), ("1-4", 4)]


def test_what_is_no_json_is_not_kept() -> None:
    log = EventLog(KeptEvents(Limits()))
    log.add(Place(1, 1), {"n": object()}, last=False)
    assert log.after(Place(1, 0)) == []


def test_event_ids_are_read_as_they_are_written() -> None:
    assert read_event_id(event_id(Place(3, 17))) == Place(3, 17)
