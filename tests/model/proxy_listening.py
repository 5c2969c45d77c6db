"""Listen streams of a proxy under test: not told as stories, but held to what a stream may and must do.

PRX.14, SUB.1, SUB.2: the acknowledgement first, with what its caller may read and nothing else; then views
that the upstream has said, as their caller sees them, none older than one that was told; after an end nothing
more. However long a view has waited, its caller may read it when it is told, and an end is the one that is
kept. What a stream asks of upstreams and of the store is about its own tasks, and only reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from attrs import define, field

from mcp_tasks_proto.proxy import LoadTask, SaveBinding, SaveSnapshot, SendUpstream, StoredHandles
from mcp_tasks_proto.testing.model import ErrorAnswer
from mcp_tasks_proto.testing.model.proxy import ModelBinding, ProxyCaller, ProxyModel, Said
from mcp_tasks_proto.testing.model.proxy.views import shown_view
from mcp_tasks_proto.testing.model.tasks import ENDED
from tests.model.proxy_matching import same_view
from tests.model.proxy_wants import ANSWER_MS, ATTEMPTS, FAILED, LOADED

__all__ = ["Listening", "Stream"]

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Surroundings(Protocol):
    """What is around the streams."""

    model: ProxyModel
    now: int


@define(eq=False, kw_only=True)
class Stream:
    """One stream of a caller's."""

    exchange: int
    caller: ProxyCaller
    wanted: list[str] | None
    looked_for: list[str] = field(factory=list)
    """Handles whose look-up is under way."""
    agreed: dict[str, ModelBinding] = field(factory=dict)
    acknowledged: bool = False
    told: dict[str, Mapping[str, Any]] = field(factory=dict)
    """The last view of each task."""


@define(eq=False)
class Listening:
    """The streams of one process."""

    around: Surroundings
    streams: dict[int, Stream] = field(factory=dict)
    unread: list[int] = field(factory=list)
    """Streams on which something was sent, and has not left yet."""
    heard: dict[tuple[str, str], list[Mapping[str, Any]]] = field(factory=dict)
    """All that each upstream has said of each of its tasks."""
    past: list[ModelBinding] = field(factory=list)
    """Bindings of streams that are gone; what they had asked may still be answered."""
    asked: dict[Any, Stream] = field(factory=dict)
    sent: dict[int, SendUpstream] = field(factory=dict)
    unkept: set[str] = field(factory=set)
    """Tasks of which an end was heard that could not be kept: it is told all the same."""

    def opened(self, exchange: int, caller: ProxyCaller, wanted: list[str] | None) -> None:
        """A stream was asked for."""
        once = None if wanted is None else list(dict.fromkeys(wanted))
        looked_for = [handle for handle in once or () if StoredHandles().well_formed(handle)]
        self.streams[exchange] = Stream(exchange=exchange, caller=caller, wanted=once, looked_for=looked_for)

    def closed(self, exchange: int) -> None:
        """Its caller has gone."""
        stream = self.streams.pop(exchange, None)
        if stream is not None:
            self.past.extend(stream.agreed.values())

    def bindings(self) -> list[ModelBinding]:
        """Return the tasks that are or were listened to."""
        return [*self.past, *(one for stream in self.streams.values() for one in stream.agreed.values())]

    # -- what the engine wants for them ----------------------------------------------------------------------

    def asks(self, effect: LoadTask | SaveBinding | SaveSnapshot) -> None:
        """Something is asked of the store that no story wants."""
        if isinstance(effect, LoadTask):
            for stream in self.streams.values():
                if effect.handle in stream.looked_for and effect.token not in self.asked:
                    stream.looked_for.remove(effect.handle)
                    self.asked[effect.token] = stream
                    return
        handle = effect.handle if isinstance(effect, LoadTask) else ""
        if isinstance(effect, SaveSnapshot):
            handle = effect.snapshot.handle
            assert effect.snapshot.view in self.views_of(handle), "PRX.13: an end that its upstream said"
        assert any(one.handle == handle for one in self.bindings()), f"nobody wanted {effect}"

    def served(self, asked: Any, outcome: Any) -> None:
        """The store has answered."""
        model, now = self.around.model, self.around.now
        if isinstance(asked, SaveSnapshot):
            if outcome == FAILED or model.end_of(asked.snapshot.handle, now) is None:
                self.unkept.add(asked.snapshot.handle)
            return
        stream = self.asked.pop(asked.token, None)
        if stream is None:
            return
        binding = model.find(asked.handle, stream.caller, now)
        if outcome == LOADED and isinstance(binding, ModelBinding):
            stream.agreed[asked.handle] = binding

    def sends(self, effect: SendUpstream) -> None:
        """A request goes up that no story wants."""
        self.sent[effect.request] = effect
        params, method = effect.message["params"], effect.message["method"]
        task_ids = [params.get("taskId")]
        if method == "subscriptions/listen":
            task_ids = params["notifications"]["taskIds"]
        assert method in ("tasks/get", "subscriptions/listen"), f"nobody wanted {effect}"
        own = {
            (one.upstream, one.authorization, one.task_id)
            for one in self.bindings()
            if one.task_id is not None and (method != "tasks/get" or not self._is_long_gone(one))
        }
        asked = {(effect.upstream, effect.authorization, task_id) for task_id in task_ids}
        assert asked <= own, f"PRX.14: ids of others: {effect}"
        assert effect.task_path

    def _is_long_gone(self, binding: ModelBinding) -> bool:
        """Whether a handle has expired, and what was asked of it before that as well."""
        model = self.around.model
        return self.around.now >= binding.bound_at_ms + model.keep_ms + ATTEMPTS * ANSWER_MS

    def answered(self, sent: SendUpstream, _: Said) -> None:
        """One of those was answered."""
        del self.sent[sent.request]

    def stopped(self, name: int) -> None:
        """One of those was given up."""
        del self.sent[name]

    def may_note(self, handle: str) -> bool:
        """Whether what is seen of a task may be noted for a stream."""
        return any(one.handle == handle for one in self.bindings())

    def hears(self, upstream: str, view: Mapping[str, Any]) -> None:
        """An upstream says how a task stands."""
        self.heard.setdefault((upstream, str(view.get("taskId"))), []).append(view)

    # -- what is told on them --------------------------------------------------------------------------------

    def views_of(self, handle: str) -> list[Mapping[str, Any]]:
        """Return every view of a task that its caller may see."""
        model = self.around.model
        end = model.end_of(handle, self.around.now)
        views: list[Mapping[str, Any]] = [] if end is None else [end]
        for binding in self.bindings():
            if binding.handle == handle:
                said = self.heard.get((binding.upstream, str(binding.task_id)), [])
                shown = [shown_view(view, binding, model.clamps) for view in said]
                views += [view for view in shown if not isinstance(view, ErrorAnswer)]
        return views

    def told(self, exchange: int, message: Mapping[str, Any]) -> None:
        """Something is sent on a stream."""
        stream = self.streams[exchange]
        self.unread.append(exchange)
        params = dict(message["params"])
        assert params.pop("_meta")[SUBSCRIPTION] == exchange, "SUB.1: every message names its stream"
        if not stream.acknowledged:
            stream.acknowledged = True
            agreed = {} if stream.wanted is None else {"taskIds": list(self._agreed(stream))}
            assert message["method"] == "notifications/subscriptions/acknowledged"
            assert params == {"notifications": agreed}, "SUB.1: what its caller may read, and nothing else"
            return
        assert message["method"] == "notifications/tasks"
        self._told_view(stream, params)

    def _agreed(self, stream: Stream) -> list[str]:
        assert not stream.looked_for
        assert stream not in self.asked.values(), "not before all is looked up"
        return [handle for handle in stream.wanted or () if handle in stream.agreed]

    def _told_view(self, stream: Stream, view: dict[str, Any]) -> None:
        handle = view["taskId"]
        model, now = self.around.model, self.around.now
        binding, before = stream.agreed[handle], stream.told.get(handle)
        stream.told[handle] = view
        assert model.find(handle, stream.caller, now) is binding, "PRX.7: what its caller may read now"
        if before is not None:
            assert before["status"] not in ENDED, "SUB.2: nothing after the end"
            later = view["lastUpdatedAt"] >= before["lastUpdatedAt"] or view["status"] in ENDED
            assert later, "SUB.2: no older view"
        if binding.task_id is None and view["status"] not in ENDED:
            own = {name: value for name, value in view.items() if name != "lastUpdatedAt"}
            assert own == model.own_view(binding)
        elif binding.task_id is not None:
            assert view in self.views_of(handle), "PRX.14: a view that its upstream said"
        if view["status"] in ENDED and handle not in self.unkept:
            end = model.end_of(handle, now)
            assert end is not None, "HIS.4: an end that is not kept any more"
            assert same_view(view, end), "PRX.13: the end that is kept"

    def ended(self, exchange: int, message: Mapping[str, Any]) -> None:
        """A reply that no story tells: no stream ends by itself."""
        raise AssertionError(f"exchange {exchange} waits for no reply: {message}")

    def check_step(self) -> None:
        """A stream is acknowledged as soon as all is looked up (SUB.1)."""
        for stream in self.streams.values():
            waits = stream in self.asked.values()
            assert stream.acknowledged or waits, "SUB.1: an acknowledgement is missing"
