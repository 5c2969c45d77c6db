"""The engine's requests to a legacy server, and what the server says of itself, each to its place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field

from mcp_tasks_proto.errors import method_not_found
from mcp_tasks_proto.legacy.messages import ServerAsked
from mcp_tasks_proto.legacy.requester.asked import Reception
from mcp_tasks_proto.legacy.requester.calls import Calling, PlainCalls
from mcp_tasks_proto.legacy.requester.channel import Answer, Channel
from mcp_tasks_proto.legacy.requester.reading import complete, create_result, discover_result, legacy_params
from mcp_tasks_proto.legacy.requester.receiver import Receiver
from mcp_tasks_proto.legacy.requester.stream import OPENING, STREAM, ServerStream
from mcp_tasks_proto.legacy.requester.tasks import FollowedTasks
from mcp_tasks_proto.legacy.requester.tools import TaskTools
from mcp_tasks_proto.legacy.vocabulary import CANCELLED, TOOLS_CHANGED
from mcp_tasks_proto.negotiation import declares_tasks
from mcp_tasks_proto.requester.effects import SendRequest
from mcp_tasks_proto.requester.inputs import (
    AnswerGiven,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
)
from mcp_tasks_proto.requester.outcomes import ObservationLost, Outcome
from mcp_tasks_proto.vocabulary import CLIENT_CAPABILITIES, INPUT_METHODS
from mcp_tasks_proto.wire.jsonrpc import Notification, parse_message

__all__ = ["LegacyServer"]


@define(eq=False, repr=False)
class LegacyServer:
    """A legacy server, as the engine may take it for a modern one."""

    channel: Channel
    engine: Calling
    patience_ms: int | None = None
    """As for :class:`PlainCalls`, as is the next."""
    guesses: bool = True
    lasting_keys: bool = True
    """As for :class:`FollowedTasks`."""
    _tools: TaskTools = field(init=False)
    _calls: PlainCalls = field(init=False)
    _tasks: FollowedTasks = field(init=False)
    _stream: ServerStream = field(init=False)
    _receiver: Receiver = field(init=False)
    _reception: Reception = field(init=False)
    _left_behind: bool = field(init=False, default=False)
    """Whether a task goes on that nobody here follows any more: it may need its session."""

    def __attrs_post_init__(self) -> None:
        channel, settings = self.channel, self.channel.settings
        self._tools = TaskTools(channel)
        self._calls = PlainCalls(channel, self.engine, self.patience_ms, self.guesses)
        can_answer = any(name in settings.capabilities for name in ("elicitation", "sampling", "roots"))
        self._tasks = FollowedTasks(channel, can_answer, self.lasting_keys)
        self._stream = ServerStream(channel)
        self._receiver = Receiver(limits=settings.limits, timers=channel.timers, reply=channel.respond)
        self._reception = Reception(
            channel=channel, calls=self._calls, tasks=self._tasks, receiver=self._receiver
        )

    def tell_time(self, now: int) -> None:
        """Take note of the time."""
        self.channel.now = self._receiver.now = now

    # -- requests of the engine's --------------------------------------------------------------------------

    def begin(self, send: SendRequest) -> None:
        """Have a request of the engine's answered, as soon as a session stands."""
        method, params = send.message["method"], send.message["params"]
        self._when_ready(send.request, partial(self._perform, send.request, method, params))

    def _when_ready(self, inner: int, go: Callable[[], None]) -> None:
        """Go on with a request of the engine's as soon as a session stands."""
        self.channel.when_ready(
            go, inner=inner, fail=lambda failure: self.channel.give(evolve(failure, request=inner))
        )

    def stop(self, inner: int) -> None:
        """The engine gives a request up."""
        self._tools.stop(inner)
        self._stream.stop(inner)
        self._tasks.stop(inner)
        self._calls.stopped(inner)
        self.channel.stop_inner(inner)

    def _perform(self, inner: int, method: str, params: Mapping[str, Any]) -> None:
        channel, session = self.channel, self.channel.session
        assert session is not None
        match method:
            case "server/discover":
                channel.reply(inner, discover_result(session.initialized))
            case "subscriptions/listen":
                channel.refuse(inner, method_not_found(method))
            case "tools/list":
                channel.ask(inner, method, legacy_params(params), partial(self._listed, inner))
            case "tasks/get" | "tasks/update" | "tasks/cancel" if not isinstance(params.get("taskId"), str):
                channel.ask(inner, method, legacy_params(params), partial(self._answered, inner))
            case "tasks/get":
                self._stream_for_task(params["taskId"])
                self._tasks.poll(inner, params)
            case "tasks/update" if isinstance(params.get("inputResponses"), Mapping):
                self._tasks.update(inner, params)
            case "tasks/cancel":
                self._tasks.cancel(inner, params)
            case _ if method in INPUT_METHODS:
                self._call(inner, method, params)
            case _:
                channel.ask(inner, method, legacy_params(params), partial(self._answered, inner))

    def _stream_for_task(self, task_id: str) -> None:
        """A server may ask what its task needs on any stream."""
        if self._tasks.get(task_id) is not None:
            self._stream.want()

    @property
    def may_be_asked(self) -> bool:
        """Whether anything is under way for which the server may ask something."""
        return bool(self._calls or self._tasks)

    def _stream_again(self) -> None:
        """Have a stream in a new session, if it is still of use."""
        if self.may_be_asked:
            self._stream.want()

    def _call(self, inner: int, method: str, params: Mapping[str, Any]) -> None:
        if self._calls.go_on(inner, params):
            return
        self._stream.before(inner, partial(self._begin_call, inner, method, params))

    def _begin_call(self, inner: int, method: str, params: Mapping[str, Any]) -> None:
        if self.channel.session is None:  # it was lost while the call waited for its stream
            self._when_ready(inner, partial(self._call, inner, method, params))
            return
        declared = params["_meta"][CLIENT_CAPABILITIES]
        call = partial(self._call_as, inner, method, legacy_params(params), declared)
        if method == "tools/call" and declares_tasks(declared):
            self._tools.find_out(inner, params["name"], call)
        else:
            call(False)

    def _call_as(
        self, inner: int, method: str, own: dict[str, Any], declared: Mapping[str, Any], as_task: bool
    ) -> None:
        if as_task:
            self._calls.begin(inner, method, {**own, "task": {}}, self._became_task, declared)
        else:
            self._calls.begin(inner, method, own, self._answered, declared)

    def answer_given(self, given: AnswerGiven) -> None:
        """Somebody has answered what was asked on the way to the answer of a call, or elsewhere."""
        self._calls.answered(given.call, given.key, given.response)

    # -- answers of the server's -----------------------------------------------------------------------------

    def _answered(self, inner: int, answer: Answer) -> None:
        """A result that is none but a task's, which nobody had asked for, is no result (REQ.1)."""
        result = None if answer.response is None else answer.response.result
        if result is None:
            self.channel.relay(inner, answer)
        elif create_result(result) is not None and "content" not in result:
            self.channel.give(ResponseReceived(request=inner, message=None))
        else:
            self.channel.reply(inner, complete(result))

    def _became_task(self, inner: int, answer: Answer) -> None:
        """The handle; or the result, for a server need not make a task (trap 22)."""
        result = None if answer.response is None else answer.response.result
        handle = None if result is None else create_result(result)
        if handle is None:
            self._answered(inner, answer)
        else:
            self.channel.reply(inner, handle)

    def _listed(self, inner: int, answer: Answer) -> None:
        if answer.response is not None and answer.response.result is not None:
            self._tools.take_in(answer.response.result)
        self._answered(inner, answer)

    def opened(self) -> None:
        """The stream for what the server says unasked has begun."""
        self._stream.opened()

    # -- what the server says unasked ------------------------------------------------------------------------

    def asked(self, asked: ServerAsked) -> None:
        """The server asks something; what it does in a session that is gone, it does again in the next."""
        if self.channel.is_heard(asked.request):
            self._reception.take(asked)

    def heard(self, heard: NotificationReceived) -> None:
        """The server says something, on the way to an answer or not."""
        message = parse_message(heard.message)
        if not isinstance(message, Notification):
            return
        if message.method == TOOLS_CHANGED:
            self._tools.forget()
        elif message.method == CANCELLED:
            if self.channel.is_heard(heard.request):
                self._reception.cancelled(message.params.get("requestId"))
        elif (inner := self.channel.inner_of(heard.request)) is not None:
            self.channel.give(NotificationReceived(inner, heard.message))

    def timer(self, timer: Hashable) -> None:
        """Something is due."""
        match timer:
            case "parked", str() as task_id:
                self._tasks.waited_long_enough(task_id)
            case "received", str() as task_id:
                self._receiver.expire(task_id)
            case "legacy", int() as name:
                self.channel.timed_out(name)
            case "resume", int() as name:
                self.channel.resume(name)
            case "round", int() as name:
                self._calls.round_due(name)
            case _ if timer == OPENING:
                self._stream.opened()
            case _ if timer == STREAM and self.may_be_asked:
                self._stream.want()

    # -- sessions and ends -----------------------------------------------------------------------------------

    def follow(self, call: Hashable, reference: Mapping[str, Any]) -> dict[str, Any]:
        """Follow the task of a reference; return what is to be saved of it (REQ.6)."""
        self._tasks.follow(call, reference["taskId"], reference["keys"])
        saved = {**reference, "era": "legacy"}
        session = self.channel.session
        if session is not None and session.session_id is not None:
            known = {name: session.initialized.get(name) for name in ("capabilities", "serverInfo")}
            saved["session"] = {"id": session.session_id, "initialized": known}
        return saved

    def follow_task(self, task_id: str, capabilities: Mapping[str, Any]) -> None:
        """Follow a task of which nothing is known but its id; its caller declares these ``capabilities``."""
        self._tasks.follow(task_id, task_id, {})
        followed = self._tasks.get(task_id)
        assert followed is not None
        followed.capabilities = capabilities

    def leave_task(self, task_id: str) -> None:
        """Follow it no longer; polls of it that wait are answered all the same."""
        self._tasks.release(task_id)
        self._tasks.settled(task_id)

    @property
    def can_answer(self) -> bool:
        """Whether there is anybody here to be asked."""
        return self._tasks.can_answer

    def asked_elsewhere(self, task_id: str, keys: Iterable[str]) -> bool:
        """As :meth:`FollowedTasks.asked_elsewhere`."""
        return self._tasks.asked_elsewhere(task_id, keys)

    def settled(self, call: Hashable, outcome: Outcome) -> None:
        """A call of the engine's is over."""
        if isinstance(outcome, ObservationLost) and self._tasks.follows(call):
            self._left_behind = True
        self._calls.settled(call)
        self._tasks.settled(call)

    def session_lost(self) -> None:
        """The session is gone, and what was known of the server in it."""
        self._tools.forget()
        self._stream.lose()
        self._tasks.lose_streams()
        self._receiver.forget()
        if self.channel.http and self.may_be_asked:
            self.channel.when_ready(self._stream_again, fail=_do_without)

    def end_stream(self) -> None:
        """Nobody listens any more to what the server says unasked."""
        self._stream.end()

    def close(self) -> None:
        """End the session, unless somebody may come back to a task in it."""
        if self.channel.http and not self._left_behind:
            self.channel.end_session()


def _do_without(_: ResponseReceived | RequestFailed) -> None:
    """No session, no stream."""
