"""Records in memory that several nodes share, which hear of each other when the test says so."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from mcp_tasks_adapters.stores import MemoryStore
from mcp_tasks_adapters.storing import LoopThread, News, StoreEffect

from mcp_tasks_proto.effects import FindExpired, Load
from mcp_tasks_proto.inputs import LoadFailed, SaveFailed, StoreInput, WorkLost
from mcp_tasks_proto.records import TaskRecord


@define(eq=False)
class Shared:
    """The records, and the nodes that are at work on them."""

    memory: MemoryStore = field(factory=MemoryStore)
    nodes: dict[str, NodeStore] = field(factory=dict)
    gone: set[str] = field(factory=set)

    def node(self, name: str) -> NodeStore:
        """Return the store of another node."""
        self.nodes[name] = NodeStore(name, self)
        return self.nodes[name]

    def lose(self, name: str, *, cut_off: bool = True) -> None:
        """Take a node for gone; unless it is cut off, it only seems so, and does not know."""
        self.gone.add(name)
        self.nodes[name].cut_off = cut_off

    def tell(self) -> None:
        """Let one watch round trip pass: each node hears what the others did, and who is gone."""
        for node in list(self.nodes.values()):
            node.tell()

    def record(self, task_id: str) -> TaskRecord:
        """Return a record, which must be there."""
        found: list[StoreInput] = []
        self.memory.submit(Load(task_id, 1), found.append)
        record = getattr(found[0], "record", None)
        assert isinstance(record, TaskRecord)
        return record

    def named(self, name: str) -> list[str]:
        """Return the tasks whose work is this node's."""
        return [record.task_id for record in self.memory._records.values() if record.node == name]


@define(eq=False)
class NodeStore:
    """One node's way to the records."""

    node: str
    shared: Shared
    cut_off: bool = False
    held: list[tuple[StoreEffect, Callable[[StoreInput], None]]] | None = None
    """What waits until :meth:`let_go`, where it is a list."""
    news: list[News] = field(factory=list)
    _hear: Callable[[News], None] | None = None

    async def open(self, loop: LoopThread) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def submit(self, effect: StoreEffect, answer: Callable[[StoreInput], None]) -> None:
        if self.held is not None:
            self.held.append((effect, answer))
        elif not self.cut_off:
            self.shared.memory.submit(effect, answer)
        elif isinstance(effect, Load | FindExpired):
            answer(LoadFailed(effect.token))
        else:
            answer(SaveFailed(effect.token))

    def let_go(self) -> None:
        """Carry out what was held back, and all that comes of it."""
        held, self.held = self.held or [], None
        for effect, answer in held:
            self.submit(effect, answer)

    def watch(self, concerns: Callable[[str], bool], hear: Callable[[News], None]) -> Callable[[], None]:
        self._hear = hear
        return self.shared.memory.watch(concerns, lambda news: self.news.append(news))

    def tell(self) -> None:
        """Say what is new since the last time, unless nothing gets through."""
        news, self.news = self.news, []
        if self._hear is None or self.cut_off:
            return
        for one in news:
            self._hear(one)
        for name in sorted(self.shared.gone - {self.node}):
            for task_id in self.shared.named(name):
                self._hear(WorkLost(task_id, name))
