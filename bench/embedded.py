"""The core as an embedder runs it, with no loop and no sockets: bytes in, bytes out."""

from __future__ import annotations

import secrets
import time
from collections import deque

from mcp_tasks_adapters.stores.memory import MemoryStore

from bench.messages import TOOL, call_body, task_of
from mcp_tasks_proto import (
    CallBecameTask,
    HmacSealer,
    Input,
    Limits,
    MessageReceived,
    Reply,
    ServerEngine,
    ServerSettings,
    StartTool,
    StartWork,
    ToolDeclaration,
    WorkCompleted,
)
from mcp_tasks_proto.effects import Delete, FindExpired, Load, Save
from mcp_tasks_proto.wire.jsonrpc import decode, encode_checked

__all__ = ["Embedded"]

MANY = 10_000_000


class Embedded:
    """An engine, a memory store, and one tool whose calls become tasks that complete at once."""

    def __init__(self) -> None:
        self._limits = Limits(tasks=MANY, tasks_per_principal=MANY)
        settings = ServerSettings(
            name="bench", version="1.0", sealer=HmacSealer([bytes(32)]), limits=self._limits
        )
        tool = ToolDeclaration(name=TOOL, definition={"name": TOOL, "inputSchema": {"type": "object"}})
        self._engine = ServerEngine(settings=settings, tools=[tool])
        self._store = MemoryStore()
        self._exchange = 0

    def answer(self, data: bytes) -> bytes:
        """Take in a message; return the reply to it."""
        self._exchange += 1
        reply = b""
        received = MessageReceived(exchange=self._exchange, message=decode(data, self._limits))
        inputs: deque[Input] = deque([received])
        while inputs:
            step = self._engine.handle(inputs.popleft(), now=time.time_ns() // 1_000_000)
            for effect in step.effects:
                match effect:
                    case Load() | Save() | Delete() | FindExpired():
                        self._store.submit(effect, inputs.append)
                    case Reply(message=dict() as message):
                        reply = encode_checked(message)  # as the servers do
                    case StartTool(exchange=exchange):
                        inputs.append(CallBecameTask(exchange=exchange, task_id=secrets.token_urlsafe(24)))
                    case StartWork(task_id=task_id):
                        result = {"content": [{"type": "text", "text": "hello"}]}
                        inputs.append(WorkCompleted(task_id=task_id, token=task_id, result=result))
        return reply

    def fill(self, tasks: int) -> list[str]:
        """Make this many tasks; return their ids."""
        body = call_body()
        return [task_of(self.answer(body)) for _ in range(tasks)]
