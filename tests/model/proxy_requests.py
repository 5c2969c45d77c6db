"""How each request goes through a proxy, told as one straight story; what is to be said is the model's.

A story is a generator. It yields what it wants of the store, of randomness, of an upstream or of the time,
and is resumed with what came of that. Where nobody waits any more it goes on, as the proxy does, but tells
nobody. :mod:`tests.model.proxy_world` compares all that stories want with what an engine does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from mcp_tasks_proto.proxy import StoredHandles
from mcp_tasks_proto.testing.model import ErrorAnswer, PeerAnswer, ResultAnswer
from mcp_tasks_proto.testing.model.answers import ACKNOWLEDGED, SOME_TEXT
from mcp_tasks_proto.testing.model.proxy import (
    ModelBinding,
    ModelDiscovery,
    Path,
    ProxyCaller,
    ProxyModel,
    Said,
    call_failed,
    complete,
    in_the_way,
)
from mcp_tasks_proto.testing.model.proxy.calls import kind_of
from mcp_tasks_proto.testing.model.proxy.views import is_view
from mcp_tasks_proto.testing.model.tasks import ENDED, WORKING
from mcp_tasks_proto.wire.base64url import to_text
from tests.model.proxy_wants import (
    ATTEMPTS,
    COLLAPSE_MS,
    DUE,
    FAILED,
    FIRST_PAUSE_MS,
    LOADED,
    ORDER,
    PROMOTE_MS,
    SAVED,
    STATE_MS,
    Binds,
    Draws,
    Given,
    Keeps,
    Knows,
    Loads,
    Run,
    Sends,
    Stage,
    Story,
    Waits,
    Want,
)

__all__ = ["Requests"]

STALE: Final = ErrorAnswer(code=-32602, names="requestState")


@define(eq=False)
class Requests:
    """The stories of one process."""

    stage: Stage
    running: dict[str, Sends] = field(factory=dict)
    """Promoted calls, by handle."""
    ending: set[str] = field(factory=set)
    """Those whose end is on its way to the store."""

    @property
    def model(self) -> ProxyModel:
        """The model."""
        return self.stage.model

    def again(self, first: Sends) -> Generator[Want, Any, Said]:
        """Send what may be repeated, at once, but not what timed out (PRX.4)."""
        for attempt in range(1, ATTEMPTS + 1):
            want = evolve(first, story=None)
            said: Said = yield want
            if said.problem != "unavailable" or want.timed_out or attempt == ATTEMPTS:
                break
        return said

    # -- discovery -----------------------------------------------------------------------------------------

    def discover(self, target: tuple[str, str]) -> Generator[Want, Any, ModelDiscovery | str]:
        """Find out what an upstream is (PRX.2)."""
        asked_at_ms = self.stage.now
        parts: list[Mapping[str, Any]] = []
        for method in ("server/discover", "tools/list"):
            want = Sends(upstream=target[0], authorization=target[1], method=method, params={})
            said = yield from self.again(want)
            if said.result is None:
                fault = "refused" if said.error is not None else said.problem
                return f"upstream_{fault}"
            parts.append(said.result)
            if "tools" not in parts[0].get("capabilities", {}):
                break
        if "2026-07-28" not in parts[0].get("supportedVersions", ()):
            return "upstream_invalid"
        listed = parts[1].get("tools", []) if len(parts) > 1 else []
        return ModelDiscovery(
            tasks=bool(parts[0]["capabilities"].get("extensions")),
            tools={tool["name"]: "optional" for tool in listed},
            until_ms=asked_at_ms + min(part.get("ttlMs", 0) for part in parts),
        )

    # -- calls -----------------------------------------------------------------------------------------------

    def call(
        self,
        story: Story,
        name: str,
        caller: ProxyCaller,
        responses: Mapping[str, Any] | None = None,
        given: Given | str | None = None,
    ) -> Run:
        """``tools/call``, from the decision to the reply; ``given``: behind the state that it brings back."""
        place = self.model.place_of(name, caller)
        if isinstance(place, ErrorAnswer):
            return place
        answers: dict[str, Any] | ErrorAnswer = dict(responses or {})
        if given is not None:
            answers = self._opened(given, name, caller, responses or {})
        if isinstance(answers, ErrorAnswer):
            return answers
        if isinstance(given, Given) and given.handle is not None:
            return (yield from self._next_round(story, name, caller, given.handle, answers))
        found = yield Knows(target=(place[0], caller.authorizations[place[0]]))
        if not story.open:
            return None
        if isinstance(found, str):
            return in_the_way(found)
        path = self.model.called(name, caller, found)
        if isinstance(path, ErrorAnswer):
            return path
        if path.row == "promote":
            story.due_at_ms, story.due_order = self.stage.now + PROMOTE_MS, next(ORDER)
        brought: dict[str, Any] = {}
        if answers and path.kinds:
            brought["inputResponses"] = answers
        if isinstance(given, Given) and given.upstream_state is not None:
            brought["requestState"] = given.upstream_state
        call = self._sent(story, path, brought)
        said = yield call
        sent = 1
        while True:
            if said == DUE:
                promoted = yield from self._promote(story, call, name, path, caller)
                if promoted or not story.open:
                    return None
                said = call.early if call.early is not None else (yield call)
                if call.early is not None:
                    break
                continue
            if path.row == "collapse" and not path.declares and needs_a_task(said):
                path = evolve(path, declares=True)  # it was not carried out (PRX.17)
            elif said.problem != "unavailable" or said.sent or call.timed_out or sent >= ATTEMPTS:
                break
            sent += 1
            call = self._sent(story, path, brought)
            said = yield call
        story.leaves = story.due_at_ms = None
        return (yield from self._settled(story, name, path, caller, said))

    def _sent(self, story: Story, path: Path, brought: Mapping[str, Any]) -> Sends:
        story.leaves = Sends(
            upstream=path.upstream,
            authorization=path.authorization,
            method="tools/call",
            params={"name": path.tool, "arguments": {}, **brought},
            declares=path.declares,
            kinds=frozenset(path.kinds),
            on_task_path=path.declares,
            slow=True,
        )
        return story.leaves

    def _settled(self, story: Story, name: str, path: Path, caller: ProxyCaller, said: Said) -> Run:
        result = said.result
        if result is None:
            return call_failed(said)
        match result.get("resultType", "complete"):
            case "complete":
                return ResultAnswer({"resultType": "complete", **result})
            case "input_required":
                asked = result["inputRequests"].values()
                if any(kind_of(request) not in path.kinds for request in asked):
                    return in_the_way("upstream_undeclared_input")
                state = result.get("requestState")
                return self._round(story, name, caller, result["inputRequests"], state=state)
            case "task" if path.declares:
                return (yield from self._adopted(story, name, path, caller, result))
            case "task":
                self.stage.forget((path.upstream, path.authorization))
                self._orphaned(path.upstream, path.authorization, result.get("taskId"))
                return in_the_way("upstream_unasked_task")
        return in_the_way("upstream_invalid")

    def _adopted(
        self, story: Story, name: str, path: Path, caller: ProxyCaller, result: Mapping[str, Any]
    ) -> Run:
        """An upstream's new task: durable before its handle is told, or cancelled there (PRX.6)."""
        if not is_view(result) or not result["taskId"]:
            self._orphaned(path.upstream, path.authorization, result.get("taskId"))
            return in_the_way("upstream_invalid")
        since = self.stage.now
        bound = yield from self._bound(
            path,
            name,
            caller,
            result["taskId"],
            lambda handle, now: self.model.made(handle, name, path, caller, result, now, since_ms=since),
        )
        if bound.early == SAVED and story.open and path.row == "collapse":
            return (yield from self._watched(story, name, caller, bound.handle, first=True))
        if bound.early == SAVED and story.open:
            return bound.answer
        if bound.early == SAVED:
            self.stage.drop(bound.handle)
        self._orphaned(path.upstream, path.authorization, result["taskId"])
        return in_the_way("binding_not_stored" if bound.early == FAILED else bound.early)

    def _bound(
        self,
        path: Path,
        name: str,
        caller: ProxyCaller,
        task_id: str | None,
        apply: Callable[[str, int], PeerAnswer],
    ) -> Generator[Want, Any, Binds]:
        binding = {
            "upstream": path.upstream,
            "authorization": path.authorization,
            "upstream_task_id": task_id,
            "principal": caller.principal,
            "project": caller.project,
            "tool": name,
        }
        handle = to_text((yield Draws(binding=binding)))
        want = Binds(binding=binding, apply=apply, handle=handle)
        want.early = yield want
        return want

    def _orphaned(self, upstream: str, authorization: str, task_id: Any) -> None:
        """Nobody has a handle of it: its upstream is told, as best one can."""
        if isinstance(task_id, str) and task_id:
            self.stage.begin(f"orphan {task_id}", self._orphan(upstream, authorization, task_id))

    def _orphan(self, upstream: str, authorization: str, task_id: str) -> Run:
        for failures in range(1, ATTEMPTS + 1):
            said = yield Sends(
                upstream=upstream,
                authorization=authorization,
                method="tasks/cancel",
                params={"taskId": task_id},
                declares=True,
                on_task_path=True,
            )
            if said.problem != "unavailable" or failures == ATTEMPTS:
                break
            yield Waits(due_at_ms=self.stage.now + (FIRST_PAUSE_MS << (failures - 1)))
        return None

    # -- rounds of input -------------------------------------------------------------------------------------

    def _round(
        self,
        story: Story,
        name: str,
        caller: ProxyCaller,
        asked: Mapping[str, Mapping[str, Any]],
        *,
        state: str | None = None,
        handle: str | None = None,
    ) -> PeerAnswer:
        """End a request with a round of input, and a state that only this caller can bring back (INP.4)."""
        story.given = Given(
            principal=caller.principal,
            tool=name,
            asked=asked,
            upstream_state=state,
            handle=handle,
            until_ms=self.stage.now + STATE_MS,
        )
        told: dict[str, Any] = {"resultType": "input_required", "requestState": SOME_TEXT}
        return ResultAnswer({**told, "inputRequests": asked} if asked else told)

    def _opened(
        self, given: Given | str, name: str, caller: ProxyCaller, responses: Mapping[str, Any]
    ) -> dict[str, Any] | ErrorAnswer:
        """Read what is brought back: forged, foreign, transplanted and too old are one."""
        if isinstance(given, str) or self.stage.now >= given.until_ms:
            return STALE
        if (given.principal, given.tool) != (caller.principal, name):
            return STALE
        return self.model.answers(given.asked, responses, caller)

    def _next_round(
        self, story: Story, name: str, caller: ProxyCaller, handle: str, answers: Mapping[str, Any]
    ) -> Run:
        """A collapsed call goes on, perhaps with answers (PRX.17)."""
        outcome = yield Loads(handle=handle)
        if outcome == FAILED:
            return in_the_way("store_unavailable")
        binding = self.model.find(handle, caller, self.stage.now, purpose="round")
        if isinstance(binding, ErrorAnswer):
            return STALE
        end = self.model.end_of(handle, self.stage.now)
        if end is not None:
            return self._collapsed(end)
        if answers and story.open:
            told = yield from self._answered(binding, answers, caller)
            if told != ACKNOWLEDGED:
                return told
        if not story.open:
            return None
        return (yield from self._watched(story, name, caller, handle, first=False))

    def _watched(self, story: Story, name: str, caller: ProxyCaller, handle: str, *, first: bool) -> Run:
        """Ask how a hidden task stands until there is something to say, or it has taken a while."""
        binding = self.model.bindings[handle]
        until_ms = self.stage.now + COLLAPSE_MS
        story.abandons = binding if first else None
        while True:
            view = yield from self._fetched(binding, polled=False)
            if not story.open:
                return None
            pause_ms = self.model.poll_floor_ms
            if not isinstance(view, ErrorAnswer):
                if view["status"] in ENDED:
                    return self._collapsed(view)
                if view["status"] != WORKING:
                    return self._round(story, name, caller, view["inputRequests"], handle=handle)
                pause_ms = view["pollIntervalMs"]
            elif view != in_the_way("upstream_unavailable"):
                return view
            if self.stage.now >= until_ms:
                return self._round(story, name, caller, {}, handle=handle)
            yield Waits(due_at_ms=min(until_ms, self.stage.now + pause_ms))

    def abandoned(self, binding: ModelBinding) -> None:
        """Nobody can come back to a hidden task."""
        self.stage.drop(binding.handle)
        self._orphaned(binding.upstream, binding.authorization, binding.task_id)

    def _collapsed(self, view: Mapping[str, Any]) -> PeerAnswer:
        """The call ends as its task has."""
        if view["status"] == "completed":
            return ResultAnswer(view["result"])
        if view["status"] == "cancelled":
            return in_the_way("task_cancelled")
        error = view["error"]
        return ErrorAnswer(code=error["code"], data=error.get("data"), names=error["message"])

    # -- promotion -------------------------------------------------------------------------------------------

    def _promote(
        self, story: Story, call: Sends, name: str, path: Path, caller: ProxyCaller
    ) -> Generator[Want, Any, bool]:
        """The call has taken long: it becomes a task, unless it is answered before that is durable."""
        node, since = self.stage.node, self.stage.now
        bound = yield from self._bound(
            path,
            name,
            caller,
            None,
            lambda handle, now: self.model.promoted(handle, name, path, caller, node, now, since_ms=since),
        )
        in_time = story.open and call.early is None
        if bound.early == SAVED and not in_time:
            self.stage.drop(bound.handle)
        if bound.early != SAVED or not in_time:
            return False
        assert bound.answer is not None
        self.stage.tell(story, bound.answer)
        story.leaves = None
        self.running[bound.handle] = call
        binding = self.model.bindings[bound.handle]
        said: Said = yield call
        view = self._promoted_end(binding, said)
        del self.running[bound.handle]
        yield from self._kept_at_last(bound.handle, view)
        return True

    def _promoted_end(self, binding: ModelBinding, said: Said) -> dict[str, Any]:
        kind = None if said.result is None else said.result.get("resultType", "complete")
        if kind is None:
            return self.model.own_end(binding, said, failed=call_failed(said))
        if kind == "complete":
            return self.model.own_end(binding, said)
        if kind == "task":
            assert said.result is not None
            self._orphaned(binding.upstream, binding.authorization, said.result.get("taskId"))
        reasons = {"input_required": "input_after_promotion", "task": "upstream_unasked_task"}
        failed = in_the_way(reasons.get(kind, "upstream_invalid"))
        return self.model.own_end(binding, said, failed=failed)

    def _kept_at_last(self, handle: str, view: Mapping[str, Any], *, failures: int = 0) -> Run:
        """An end that was earned is tried until it is there."""
        self.ending.add(handle)
        while True:
            if failures:
                pause_ms = FIRST_PAUSE_MS << (failures - 1)
                yield Waits(due_at_ms=self.stage.now + min(pause_ms, 30_000))
            kept = yield Keeps(handle=handle, view=view)
            if kept != FAILED:
                break
            failures += 1
        self.ending.discard(handle)
        return None

    def lost(self, handle: str, node: str) -> Run:
        """A node has gone (PRX.16)."""
        outcome = yield Loads(handle=handle)
        if outcome == LOADED and handle not in self.running and handle not in self.ending:
            view = self.model.lost(handle, node)
            if view is not None:
                yield Keeps(handle=handle, view=view)
        return None

    # -- tasks/* ---------------------------------------------------------------------------------------------

    def _found(
        self, story: Story, handle: str, caller: ProxyCaller, purpose: str
    ) -> Generator[Want, Any, ModelBinding | ErrorAnswer]:
        refused = self.model.refused(caller)
        if refused is not None:
            return refused
        if not StoredHandles().well_formed(handle):
            return self.model.find(handle, caller, self.stage.now, purpose=purpose)
        outcome = yield Loads(handle=handle)
        if outcome == FAILED or not story.open:
            return in_the_way("store_unavailable")
        return self.model.find(handle, caller, self.stage.now, purpose=purpose)

    def get(self, story: Story, handle: str, caller: ProxyCaller) -> Run:
        """``tasks/get``."""
        binding = yield from self._found(story, handle, caller, "read")
        if isinstance(binding, ErrorAnswer):
            return binding
        end = self.model.end_of(handle, self.stage.now)
        if end is not None:
            self.stage.note(handle, end["status"], polled=True)
            return complete(end)
        if binding.task_id is None:
            self.stage.note(handle, WORKING, polled=True)
            return complete(self.model.own_view(binding))
        view = yield from self._fetched(binding, polled=True)
        return view if isinstance(view, ErrorAnswer) else complete(view)

    def _asked(self, binding: ModelBinding, method: str, **params: Any) -> Sends:
        return Sends(
            upstream=binding.upstream,
            authorization=binding.authorization,
            method=method,
            params={"taskId": binding.task_id, **params},
            declares=True,
            kinds=frozenset(binding.kinds),
            on_task_path=True,
        )

    def _fetched(
        self, binding: ModelBinding, *, polled: bool
    ) -> Generator[Want, Any, Mapping[str, Any] | ErrorAnswer]:
        """Ask how a task stands; an end is kept before it is told (PRX.13)."""
        said = yield from self.again(self._asked(binding, "tasks/get"))
        if said.result is None:
            if said.error is not None and said.error["code"] == -32602:
                outcome = yield Loads(handle=binding.handle)
                if outcome == FAILED:
                    return self.model.not_told(binding, said, self.stage.now)
            return self.model.view(binding, said, self.stage.now)
        view = self.model.view(binding, said, self.stage.now)
        if isinstance(view, ErrorAnswer):
            return view
        if view["status"] not in ENDED:
            self.stage.note(binding.handle, view["status"], polled=polled)
            return view
        kept = yield Keeps(handle=binding.handle, view=view, polled=polled)
        over = self.model.end_of(binding.handle, self.stage.now) is None
        return view if kept == FAILED or over else kept

    def update(self, story: Story, handle: str, responses: Mapping[str, Any], caller: ProxyCaller) -> Run:
        """``tasks/update``: what is outstanding, the upstream says just before."""
        binding = yield from self._found(story, handle, caller, "read")
        if isinstance(binding, ErrorAnswer):
            return binding
        if self.model.end_of(handle, self.stage.now) or binding.task_id is None or not responses:
            return ACKNOWLEDGED
        return (yield from self._answered(binding, responses, caller))

    def _answered(self, binding: ModelBinding, responses: Mapping[str, Any], caller: ProxyCaller) -> Run:
        """Carry answers up to what is outstanding."""
        view = yield from self._fetched(binding, polled=False)
        if isinstance(view, ErrorAnswer):
            return view
        answers = self.model.answers(view.get("inputRequests", {}), responses, caller)
        if isinstance(answers, ErrorAnswer) or not answers:
            return answers if isinstance(answers, ErrorAnswer) else ACKNOWLEDGED
        said = yield from self.again(self._asked(binding, "tasks/update", inputResponses=answers))
        return self.model.acknowledged(binding, said, self.stage.now, answers=True)

    def cancel(self, story: Story, handle: str, caller: ProxyCaller) -> Run:
        """``tasks/cancel``."""
        binding = yield from self._found(story, handle, caller, "cancel")
        if isinstance(binding, ErrorAnswer):
            return binding
        if self.model.end_of(handle, self.stage.now):
            return ACKNOWLEDGED
        if binding.task_id is None:
            return (yield from self._cancel_own(binding))
        said = yield from self.again(self._asked(binding, "tasks/cancel"))
        return self.model.acknowledged(binding, said, self.stage.now, answers=False)

    def _cancel_own(self, binding: ModelBinding) -> Run:
        handle = binding.handle
        if handle in self.ending:
            return ACKNOWLEDGED
        call = self.running.pop(handle, None)
        if call is not None:
            self.stage.stop(call)
            self.ending.add(handle)
        view = self.model.own_end(binding, None)
        kept = yield Keeps(handle=handle, view=view)
        if kept != FAILED:
            self.ending.discard(handle)
            return ACKNOWLEDGED
        if call is not None:
            self.stage.begin(f"end of {handle}", self._kept_at_last(handle, view, failures=1))
        return in_the_way("store_unavailable")


def needs_a_task(said: Said) -> bool:
    """Whether this is the -32021 of a tool that cannot do without a task (NEG.5)."""
    data = None if said.error is None else said.error.get("data")
    return data == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
