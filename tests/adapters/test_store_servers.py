"""Servers over a store they share: any node answers for any task, wherever its work runs. LIFE.4, UPD.5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from attrs import evolve
from mcp_tasks_adapters.storing import LoopThread, StoreEffect, StoreError
from mcp_tasks_adapters.toolkit import Limits, Server, TaskContext, ToolCall, elicit

from mcp_tasks_proto.effects import Save
from mcp_tasks_proto.inputs import StoreInput
from mcp_tasks_proto.records import TaskRecord
from mcp_tasks_proto.testing.store_suite import STORE_CHECKS, Ask, Check
from tests.adapters.loop_harness import YES, Loop, both_loops, farm
from tests.adapters.postgres_server import PostgresServer
from tests.adapters.store_harness import PATIENCE_S, Place, opened, record, sqlite_store

HARDLY_EVER_MS = 600_000


@both_loops
def test_upd5_an_answer_given_at_another_node_reaches_the_worker(loop: Loop, place: Place) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), place.store()) as home,
            loop.node(farm(loop, []), place.store()) as away,
        ):
            task_id = await loop.create(home, "publish")
            await loop.until(away, task_id, "input_required")
            await loop.ask(away, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            view = await loop.until(away, task_id, "completed")
            assert view["result"]["content"][0]["text"] == "Published."
            assert await loop.until(home, task_id, "completed") == view
        assert said == ["answered"]

    loop.run(main)


@both_loops
def test_can6_a_cancel_at_another_node_reaches_the_worker(loop: Loop, place: Place) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), place.store()) as home,
            loop.node(farm(loop, []), place.store()) as away,
        ):
            task_id = await loop.create(home, "wait")
            await loop.when(lambda: bool(said))
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            await loop.until(away, task_id, "cancelled")
        assert said == ["began", "told to stop"]

    loop.run(main)


@both_loops
def test_can6_a_worker_that_asks_before_it_hears_of_the_cancel_stops_all_the_same(
    loop: Loop, tmp_path: Path
) -> None:
    """It must not take the rejected question for an error of its own: the task would end as completed."""

    async def main() -> None:
        server, asks = Server("farm"), loop.event()

        @server.tool()
        async def hesitate(call: ToolCall) -> Any:
            async def run(task: TaskContext) -> Any:
                await asks.wait()
                await task.request_input({"sure": elicit(message="Sure?")})

            return call.task(run)

        async with (
            loop.node(server, sqlite_store(tmp_path / "tasks.db", poll_ms=HARDLY_EVER_MS)) as home,
            loop.node(farm(loop, []), sqlite_store(tmp_path / "tasks.db")) as away,
        ):
            task_id = await loop.create(home, "hesitate")
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            asks.set()
            await loop.until(away, task_id, "cancelled")

    loop.run(main)


@both_loops
def test_sub2_a_listener_at_another_node_hears_of_every_step(loop: Loop, place: Place) -> None:
    async def main() -> None:
        async with (
            loop.node(farm(loop, []), place.store()) as home,
            loop.node(farm(loop, []), place.store()) as away,
        ):
            task_id = await loop.create(home, "publish")
            await loop.until(home, task_id, "input_required")
            listener = loop.start(away, "subscriptions/listen", notifications={"taskIds": [task_id]})
            await loop.when(lambda: len(listener.sent) == 2)
            await loop.ask(home, "tasks/update", taskId=task_id, inputResponses={"sure": YES})
            await loop.when(lambda: listener.sent[-1]["params"].get("status") == "completed")
            assert listener.sent[1]["params"]["status"] == "input_required", "the snapshot"

    loop.run(main)


@both_loops
def test_ttl1_a_task_that_another_node_sweeps_stops_its_worker(loop: Loop, place: Place) -> None:
    said: list[str] = []

    async def main() -> None:
        async with loop.node(farm(loop, said), place.store()) as home:
            task_id = await loop.create(home, "wait", ttl_ms=3_600_000)
            await loop.when(lambda: bool(said))
            async with loop.node(farm(loop, []), place.store()) as away:
                expire(place, task_id)
                assert "error" in await loop.ask(away, "tasks/get", taskId=task_id)
            await loop.when(lambda: said == ["began", "told to stop"])

    loop.run(main)


def expire(place: Place, task_id: str) -> None:
    """Give a task a lifetime that has passed."""
    with opened(place.store()) as bench:
        current = bench.load(task_id)
        assert current is not None
        bench.saved(evolve(current, version=current.version + 1, ttl_ms=1), current.version)


@both_loops
def test_life4_a_task_is_there_after_a_restart_and_has_ended_in_good_order(loop: Loop, place: Place) -> None:
    said: list[str] = []
    task_ids: list[str] = []

    async def main() -> None:
        async with loop.node(farm(loop, said), place.store()) as node:
            for tool in ("publish", "publish", "wait"):
                task_ids.append(await loop.create(node, tool))
            await loop.until(node, task_ids[0], "input_required")
            await loop.ask(node, "tasks/update", taskId=task_ids[0], inputResponses={"sure": YES})
            await loop.until(node, task_ids[0], "completed")
        async with loop.node(farm(loop, []), place.store()) as node:
            await loop.until(node, task_ids[0], "completed")
            for task_id in task_ids[1:]:
                view = await loop.until(node, task_id, "cancelled")
                assert view["statusMessage"] == "The server stopped before the work was done."

    loop.run(main)


@both_loops
def test_life2_what_a_node_left_behind_fails_and_says_why(loop: Loop, place: Place) -> None:
    with opened(place.store()) as gone:
        for task_id in (FIRST.task_id, ASKED_TO_CANCEL.task_id):
            gone.saved(evolve(LEFT[task_id], node=gone.store.node))

    async def main() -> None:
        async with loop.node(farm(loop, []), place.store()) as node:
            view = await loop.until(node, FIRST.task_id, "failed")
            assert view["error"]["code"] == -32603
            assert view["error"]["data"] == {"reason": "worker_lost"}
            assert "lost" in view["statusMessage"]
            await loop.until(node, ASKED_TO_CANCEL.task_id, "cancelled")

    loop.run(main)


FIRST: TaskRecord = record("task-one-0123456789abcdef", ttl_ms=None)
ASKED_TO_CANCEL: TaskRecord = record("task-two-0123456789abcdef", ttl_ms=None, cancel_requested_at_ms=5)
LEFT = {one.task_id: one for one in (FIRST, ASKED_TO_CANCEL)}


@both_loops
def test_what_a_thread_says_after_the_end_of_the_loop_is_lost_without_a_sound(loop: Loop) -> None:
    threads: list[LoopThread] = []

    async def main() -> None:
        threads.append(loop.thread())

    loop.run(main)
    threads[0].post(lambda: pytest.fail("there is no loop any more"))


@both_loops
def test_a_store_that_cannot_be_opened_is_said_so(loop: Loop, tmp_path: Path) -> None:
    async def main() -> None:
        async with loop.node(farm(loop, []), sqlite_store(tmp_path)):
            raise AssertionError("it is a folder")

    with pytest.raises(StoreError, match="cannot be used"):
        loop.run(main)


@both_loops
def test_a_store_is_closed_though_the_server_could_not_be_made(loop: Loop, place: Place) -> None:
    server = farm(loop, [])
    server.version = 7  # type: ignore[assignment]
    store = place.store()

    async def main() -> None:
        async with loop.node(server, store):
            raise AssertionError("a version is text")

    with pytest.raises(BaseExceptionGroup):
        loop.run(main)
    assert store.node is None


@both_loops
def test_ttl2_expired_tasks_are_swept_slice_by_slice(loop: Loop, place: Place) -> None:
    with opened(place.store()) as before:
        before.ask([Save(record(f"task-{number}"), None, number) for number in range(500)])

    async def main() -> None:
        async with loop.node(farm(loop, [], Limits(sweep_batch=20)), place.store()) as node:
            task_id = await loop.create(node, "publish")
            await loop.when(lambda: place.run("SELECT tasks FROM totals") == [(1,)])
            await loop.until(node, task_id, "input_required")

    loop.run(main)


# -- the promises of a store, on either loop -----------------------------------------------------------------


class Asking:
    """Asks a store that is open on a loop, from outside of it (``store_suite.Ask``)."""

    def __init__(self, store: Any, thread: LoopThread) -> None:
        self._store = store
        self._thread = thread

    def __call__(self, effects: Sequence[StoreEffect]) -> Sequence[StoreInput]:
        answers: SimpleQueue[tuple[int, StoreInput]] = SimpleQueue()

        def submit() -> None:
            for number, effect in enumerate(effects):
                self._store.submit(effect, lambda answer, number=number: answers.put((number, answer)))

        self._thread.post(submit)
        found = dict(answers.get(timeout=PATIENCE_S) for _ in effects)
        return [found[number] for number in range(len(effects))]


@contextmanager
def asking(loop: Loop, store: Any) -> Iterator[Ask]:
    """Run the loop, with the store open on it, for the length of the block."""
    ready: SimpleQueue[tuple[LoopThread, Callable[[], object]]] = SimpleQueue()

    async def main() -> None:
        thread, over = loop.thread(), loop.event()
        await store.open(thread)
        ready.put((thread, over.set))
        await over.wait()
        await store.close()

    running = Thread(target=loop.run, args=(main,))
    running.start()
    thread, end = ready.get(timeout=PATIENCE_S)
    try:
        yield Asking(store, thread)
    finally:
        thread.post(end)
        running.join()


@both_loops
@pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
def test_it_keeps_the_promises_of_every_store(
    loop: Loop, postgres: PostgresServer, check: Check[Ask]
) -> None:
    with asking(loop, postgres.new_schema().store()) as ask:
        check(ask)
