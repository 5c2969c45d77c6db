"""The PostgreSQL store on both loops, and servers over it: any node answers for any task. UPD.5, CAN.6."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any

import pytest
from mcp_tasks_adapters.storing import LoopThread, StoreEffect

from mcp_tasks_proto.inputs import StoreInput
from mcp_tasks_proto.testing.store_suite import STORE_CHECKS, Ask, Check
from tests.adapters.postgres_server import PostgresServer, Schema
from tests.adapters.store_harness import PATIENCE_S, opened, record
from tests.adapters.test_sqlite_servers import YES, Loop, both_loops, farm


@pytest.fixture
def schema(postgres: PostgresServer) -> Schema:
    return postgres.new_schema()


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
def test_it_keeps_the_promises_of_every_store(loop: Loop, schema: Schema, check: Check[Ask]) -> None:
    with asking(loop, schema.store()) as ask:
        check(ask)


# -- servers -------------------------------------------------------------------------------------------------


@both_loops
def test_upd5_an_answer_given_at_another_node_reaches_the_worker(loop: Loop, schema: Schema) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), schema.store()) as home,
            loop.node(farm(loop, []), schema.store()) as away,
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
def test_can6_a_cancel_at_another_node_reaches_the_worker(loop: Loop, schema: Schema) -> None:
    said: list[str] = []

    async def main() -> None:
        async with (
            loop.node(farm(loop, said), schema.store()) as home,
            loop.node(farm(loop, []), schema.store()) as away,
        ):
            task_id = await loop.create(home, "wait")
            await loop.when(lambda: bool(said))
            await loop.ask(away, "tasks/cancel", taskId=task_id)
            await loop.until(away, task_id, "cancelled")
        assert said == ["began", "told to stop"]

    loop.run(main)


@both_loops
def test_sub2_a_listener_at_another_node_hears_of_every_step(loop: Loop, schema: Schema) -> None:
    async def main() -> None:
        async with (
            loop.node(farm(loop, []), schema.store()) as home,
            loop.node(farm(loop, []), schema.store()) as away,
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
def test_life2_what_a_node_left_behind_fails_and_says_why(loop: Loop, schema: Schema) -> None:
    left = "task-one-0123456789abcdef"
    with opened(schema.store()) as gone:
        gone.saved(record(left, ttl_ms=None, node=gone.store.node))

    async def main() -> None:
        async with loop.node(farm(loop, []), schema.store()) as node:
            view = await loop.until(node, left, "failed")
            assert view["error"]["code"] == -32603
            assert "lost" in view["statusMessage"]

    loop.run(main)


@both_loops
def test_ttl2_expired_tasks_are_swept_slice_by_slice(loop: Loop, schema: Schema) -> None:
    with opened(schema.store()) as before:
        for number in range(100):
            before.saved(record(f"task-{number}"))

    async def main() -> None:
        async with loop.node(farm(loop, []), schema.store()) as node:
            task_id = await loop.create(node, "publish")
            await loop.when(lambda: schema.run("SELECT tasks FROM totals") == [(1,)])
            await loop.until(node, task_id, "input_required")

    loop.run(main)
