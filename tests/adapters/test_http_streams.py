"""Event streams and clients that go away, over real sockets on both loops (HTTP.4, SUB.4, CAN.7, LIM.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mcp_tasks_adapters.http_endpoint import OTHER_FILES
from mcp_tasks_adapters.toolkit import Limits

from tests.adapters.http_harness import LOOPS, Client, Running, call, message, passes, post, running


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(loop: str) -> Iterator[Running]:
    with running(loop) as server:
        yield server


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with server.connect() as client:
        yield client


def work(client: Client) -> str:
    """Make a task that works until released; return its id."""
    task_id: str = client.ask(call("work")).json["result"]["taskId"]
    return task_id


def listen(client: Client, *task_ids: str) -> None:
    """Open a listen stream and read its acknowledgement."""
    client.send(post(message("subscriptions/listen", {"notifications": {"taskIds": list(task_ids)}}, id="s")))
    status, headers = client.head()
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    acknowledgement = client.event()
    assert acknowledgement["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledgement["params"]["notifications"]["taskIds"] == list(task_ids)


@contextmanager
def another(server: Running) -> Iterator[Client]:
    """Give the test one more client."""
    with server.connect() as client:
        yield client


# -- streams ---------------------------------------------------------------------------------------------


def test_a_request_with_notifications_is_answered_with_a_stream(client: Client) -> None:
    """HTTP.4: notifications first, the response last, and then the stream ends."""
    response = client.ask(call("count", to=3, id="counted"))
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["transfer-encoding"] == "chunked"
    first, *others, last = response.events
    assert first["params"]["progress"] == 0
    assert all(event["method"] == "notifications/progress" for event in others)
    assert (last["id"], last["result"]["content"][0]["text"]) == ("counted", "counted")


def test_a_connection_is_kept_after_a_stream(client: Client) -> None:
    for _ in range(3):
        assert client.ask(call("count", to=2)).events
        assert client.ask(call("echo", text="x")).status == 200


def test_requests_behind_a_stream_wait_for_its_end(server: Running, client: Client) -> None:
    client.send(post(call("count", to=1, wait=True, id="stream")) + post(call("echo", text="x", id="behind")))
    client.head()
    assert client.event()["method"] == "notifications/progress"
    assert passes(server.tools.started)
    server.release()
    assert client.event()["id"] == "stream"
    client.end_of_stream()
    assert client.response().json["id"] == "behind"


def test_notifications_leave_at_once(server: Running, client: Client) -> None:
    """They do not wait for the response, which here never comes by itself."""
    client.send(post(call("count", to=2, wait=True)))
    client.head()
    assert client.event()["params"]["progress"] == 0
    assert client.event()["params"]["progress"] == 1


def test_a_listen_stream_brings_every_change(server: Running, client: Client) -> None:
    """SUB.1, SUB.2."""
    task_id = work(client)
    listen(client, task_id)
    assert client.event()["params"]["status"] == "working"
    server.release()
    view = client.event()["params"]
    assert (view["taskId"], view["status"]) == (task_id, "completed")


def test_many_streams_at_once(server: Running, client: Client) -> None:
    task_id = work(client)
    others = [server.connect() for _ in range(30)]
    for other in others:
        listen(other, task_id)
        assert other.event()["params"]["status"] == "working"
    server.release()
    for other in others:
        assert other.event()["params"]["status"] == "completed"
        other.close()


# -- clients that go away --------------------------------------------------------------------------------


@pytest.mark.parametrize("leave", ["close", "reset", "end"])
def test_a_client_that_goes_away_cancels_its_request(server: Running, client: Client, leave: str) -> None:
    """CAN.7. A half-closed connection counts as closed."""
    client.send(post(call("wait")))
    assert passes(server.tools.started)
    getattr(client, leave)()
    assert passes(server.tools.cancelled)
    with another(server) as other:
        assert other.ask(call("echo", text="x")).status == 200


@pytest.mark.parametrize("leave", ["close", "reset", "end"])
def test_a_client_that_leaves_a_stream_cancels_its_request(
    server: Running, client: Client, leave: str
) -> None:
    client.send(post(call("count", to=1, wait=True)))
    client.head()
    assert client.event()["method"] == "notifications/progress"
    assert passes(server.tools.started)
    getattr(client, leave)()
    assert passes(server.tools.cancelled)
    with another(server) as other:
        assert other.ask(call("echo", text="x")).status == 200


def test_a_client_that_goes_away_with_requests_in_the_pipeline(server: Running, client: Client) -> None:
    client.send(post(call("wait")) + post(call("wait")) * 5)
    assert passes(server.tools.started)
    client.close()
    assert passes(server.tools.cancelled)
    assert not server.tools.started.acquire(blocking=False)


def test_a_task_outlives_the_client_that_made_it(server: Running, client: Client) -> None:
    """CAN.7: a request is cancelled, never a task that was handed out."""
    task_id = work(client)
    assert passes(server.tools.started)
    client.reset()
    with another(server) as other:
        assert other.ask(message("tasks/get", {"taskId": task_id})).json["result"]["status"] == "working"
        listen(other, task_id)
        assert other.event()["params"]["status"] == "working"
        server.release()
        assert other.event()["params"]["status"] == "completed"


def test_a_stream_that_is_left_makes_room_for_another(loop: str) -> None:
    """SUB.4: the server notices, though nothing is sent on the stream."""
    with running(loop, limits=Limits(streams=1)) as server, server.connect() as client:
        task_id = work(client)
        for leave in ("close", "reset", "end"):
            with server.connect() as listener:
                listen(listener, task_id)
                with server.connect() as other:
                    subscribe = message("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
                    assert other.ask(subscribe).json["error"]["data"] == {"reason": "streams"}
                getattr(listener, leave)()
                if leave == "end":
                    # The half-closed side can still see that the server lets go.
                    while not listener.at_end():
                        pass
                else:
                    await_room(server, task_id)


def await_status(server: Running, status: int) -> bool:
    """Connect and ask until the answer has this status."""
    for _ in range(1000):
        with server.connect() as client:
            if client.ask(call("echo", text="x")).status == status:
                return True
    return False


def await_room(server: Running, task_id: str) -> None:
    """Ask for a stream until there is one; the test's patience bounds this."""
    for _ in range(1000):
        with server.connect() as client:
            client.send(
                post(message("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}, id="s"))
            )
            status, headers = client.head()
            assert status == 200
            if headers["content-type"] == "text/event-stream":
                client.end()
                while not client.at_end():
                    pass
                return
    raise AssertionError("the server did not notice that the client left")


# -- too many, too slow ----------------------------------------------------------------------------------


def test_too_many_connections_are_turned_away(loop: str) -> None:
    """LIM.3: with a reason, and those that are there are not disturbed."""
    with running(loop, limits=Limits(connections=2)) as server, server.connect() as first:
        assert first.ask(call("echo", text="1")).status == 200
        second = server.connect()
        assert second.ask(call("echo", text="2")).status == 200
        with server.connect() as third:
            response = third.response()
            assert response.status == 503
            assert response.json["error"]["data"] == {"reason": "connections"}
            assert response.closes
            assert third.at_end()
        assert first.ask(call("echo", text="1")).status == 200
        second.end()
        assert second.at_end()
        second.close()
        assert await_status(server, 200)


def test_a_server_holds_no_more_connections_than_its_process_has_files_for(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LIM.3: out of files it could not even say that it is busy."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (OTHER_FILES + 1, resource.RLIM_INFINITY))
    with running(loop) as server, server.connect() as first:
        assert first.ask(call("echo", text="1")).status == 200
        with server.connect() as second:
            assert second.response().status == 503
        assert first.ask(call("echo", text="1")).status == 200


def test_a_refused_client_may_go_without_a_word(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    """LIM.3: in the midst of its refusal, and that is no trouble for anybody; nor is it news for a log."""
    with running(loop) as server, server.connect() as first:
        for _ in range(100):
            with server.connect() as client:
                client.send(post(message("server/discover")) + b"nonsense\r\n\r\n")
                assert client.socket.recv(65536)
        assert first.ask(call("echo", text="1")).status == 200
    assert caplog.records == []


def test_a_client_that_does_not_read_is_dropped(loop: str) -> None:
    """LIM.3: a large result that nobody takes is not kept for long, and meanwhile others are served."""
    limits = Limits(write_timeout_ms=200)
    with running(loop, limits=limits) as server, server.connect(receive_buffer=4096) as client:
        client.send(post(call("echo", text="x" * 4_000_000)))
        with server.connect() as other:
            assert other.ask(call("echo", text="x")).status == 200
        client.send_until_reset(post(call("echo", text="y")))


def test_a_client_that_reads_slowly_but_steadily_gets_everything(loop: str) -> None:
    """The time is for each piece of what is written, not for all of it."""
    size = 12_000_000
    limits = Limits(write_timeout_ms=5000, result_bytes=2 * size)
    with running(loop, limits=limits) as server, server.connect(receive_buffer=4096) as client:
        client.send(post(call("large", size=size)))
        assert client.response().json["result"]["content"][0]["text"] == "x" * size


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(b"POST /mcp HTTP/1.1\r\nHost: loc", "header_timeout_ms"), (post(b"{}")[:-1], "body_timeout_ms")],
)
def test_a_request_that_does_not_come_to_its_end_is_timed_out(loop: str, sent: bytes, reason: str) -> None:
    """LIM.3."""
    limits = Limits(header_timeout_ms=50, body_timeout_ms=50)
    with running(loop, limits=limits) as server, server.connect() as client:
        client.send(sent)
        response = client.response()
        assert response.status == 408
        assert response.json["error"]["data"] == {"reason": reason}
        assert response.closes
        assert client.at_end()


def test_an_idle_connection_is_closed(loop: str) -> None:
    with running(loop, limits=Limits(idle_timeout_ms=50)) as server, server.connect() as client:
        assert client.ask(call("echo", text="x")).status == 200
        assert client.at_end()
        with server.connect() as silent:
            assert silent.at_end()


def test_a_request_that_takes_long_is_not_idle(loop: str) -> None:
    limits = Limits(idle_timeout_ms=50, header_timeout_ms=50, body_timeout_ms=50, write_timeout_ms=50)
    with running(loop, limits=limits) as server, server.connect() as client:
        client.send(post(call("wait")))
        with server.connect() as other:
            assert other.at_end()  # an idle connection, closed when all of these have passed
        server.release()
        assert client.response().status == 200


def test_a_silent_stream_gets_comments(loop: str) -> None:
    """SUB.4."""
    with running(loop, limits=Limits(keep_alive_ms=20)) as server, server.connect() as client:
        task_id = work(client)
        listen(client, task_id)
        assert client.event()["params"]["status"] == "working"
        assert client.chunk() == b":\n\n"
        assert client.chunk() == b":\n\n"
        server.release()
        assert client.event()["params"]["status"] == "completed"


def test_a_task_is_stopped_when_its_time_has_passed_though_nobody_asks(loop: str) -> None:
    """TTL.1: the loop wakes the engine."""
    with running(loop) as server, server.connect() as client:
        assert client.ask(call("work", ttl_ms=3_600_000)).status == 200
        task_id = client.ask(call("work", ttl_ms=50)).json["result"]["taskId"]
        assert passes(server.tools.started)
        assert passes(server.tools.started)
        assert passes(server.tools.cancelled)
        assert client.ask(message("tasks/get", {"taskId": task_id})).json["error"]["code"] == -32602


# -- the end ---------------------------------------------------------------------------------------------


def test_open_streams_end_with_their_result_and_running_tasks_are_cancelled(
    server: Running, client: Client
) -> None:
    """SUB.4, and nothing outlives the server."""
    task_id = work(client)
    assert passes(server.tools.started)
    listen(client, task_id)
    assert client.event()["params"]["status"] == "working"
    with another(server) as idle:
        assert idle.ask(call("echo", text="x")).status == 200
        server.begin_to_stop()
        assert idle.at_end()
    last = client.event()
    assert last["id"] == "s"
    assert last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "s"
    client.end_of_stream()
    server.join()
    assert passes(server.tools.cancelled)


def test_requests_under_way_may_still_be_answered(server: Running, client: Client) -> None:
    client.send(post(call("wait")))
    assert passes(server.tools.started)
    with another(server) as other:
        assert other.ask(call("echo", text="x")).status == 200
        server.begin_to_stop()
        assert other.at_end()
    server.release()
    response = client.response()
    assert response.status == 200
    assert response.closes
    assert client.at_end()
    server.join()


def test_requests_that_take_too_long_are_cut_off_with_a_word(loop: str) -> None:
    limits = Limits(shutdown_grace_ms=50)
    with running(loop, limits=limits) as server, server.connect() as client, server.connect() as slow:
        client.send(post(call("wait")))
        slow.send(b"POST /mcp HTTP/1.1\r\n")
        assert passes(server.tools.started)
        server.stop()
        assert passes(server.tools.cancelled)
        response = client.response()
        assert response.json["error"]["data"] == {"reason": "shutting_down"}
        assert response.closes
        assert client.at_end()
        assert slow.at_end()


def test_a_stream_that_takes_too_long_is_cut_off_with_a_word(loop: str) -> None:
    with running(loop, limits=Limits(shutdown_grace_ms=50)) as server, server.connect() as client:
        client.send(post(call("count", to=1, wait=True, id="held")))
        status, _ = client.head()
        assert status == 200
        assert client.event()["method"] == "notifications/progress"
        server.stop()
        last = client.event()
        assert (last["id"], last["error"]["data"]) == ("held", {"reason": "shutting_down"})
        client.end_of_stream()
        assert client.at_end()


def test_a_request_that_comes_in_during_the_shutdown_is_refused(server: Running, client: Client) -> None:
    whole = post(call("echo", text="x"))
    client.send(whole[:50])
    with another(server) as other:
        other.send(post(call("wait")))
        assert passes(server.tools.started)
        with another(server) as idle:
            assert idle.ask(call("echo", text="x")).status == 200
            server.begin_to_stop()
            assert idle.at_end()
        client.send(whole[50:])
        response = client.response()
        assert "error" in response.json
        assert response.closes
        server.release()
        assert other.response().status == 200
    server.join()


def test_no_connection_is_accepted_after_the_end(server: Running) -> None:
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        server.connect()
