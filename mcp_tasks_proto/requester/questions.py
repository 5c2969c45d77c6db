"""What a task asks, and what it is answered: each question once, each answer once (REQ.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define

from mcp_tasks_proto.errors import ErrorObject
from mcp_tasks_proto.input_requests import missing_capabilities
from mcp_tasks_proto.requester.calls import Call, SentUpdate, Watch
from mcp_tasks_proto.requester.effects import KeepReference, Prompt, WithdrawPrompt
from mcp_tasks_proto.requester.outcomes import Failed, Fault, Outcome, failure
from mcp_tasks_proto.requester.reference import KeyState, LedgerEntry
from mcp_tasks_proto.requester.requests import Requests, backoff
from mcp_tasks_proto.requester.rounds import CANCELLED_ANSWER, answerable, is_elicitation

__all__ = ["Questions"]

Outstanding = Mapping[str, Mapping[str, Any]]
"""Input requests by key."""


@define(eq=False, repr=False, kw_only=True)
class Questions:
    """The ledgers of all tasks that one requester watches."""

    requests: Requests
    settle: Callable[[Call, Outcome], None]

    def keep(self, watch: Watch) -> None:
        """Have the reference saved."""
        self.requests.out.append(KeepReference(watch.call.key, watch.reference.to_json()))

    # -- asking ------------------------------------------------------------------------------------------

    def compare(self, watch: Watch, outstanding: Outstanding, *, changed: bool) -> None:
        """Prompt for what is new, withdraw what is moot, submit what was answered.

        ``changed``: whether the reference has to be saved in any case. An answer that the server refused, to
        a question that is still there, ends the call: it is not shown again, and would wait for ever.
        """
        changed |= self._drop_moot(watch, outstanding)
        if watch.cancelling:
            return self.keep(watch) if changed else None
        ledger, limits = watch.reference.ledger, self.requests.settings.limits
        new = {
            key: entry
            for key, request in outstanding.items()
            if key not in ledger and (entry := self._entry(watch, request))
        }
        if new and len(ledger) + len(new) > limits.ledger_keys:
            message = "the task has made too many input requests (RequesterLimits.ledger_keys)"
            return self.settle(watch.call, Failed(code=None, message=message, fault=Fault.SERVER))
        for key in outstanding:
            if error := watch.refused.get(key):
                return self.settle(watch.call, failure(error))
        ledger.update(new)
        if new or changed:
            self.keep(watch)
        for key, request in outstanding.items():
            self._prompt(watch, key, request, again=key not in new)
        return self.submit(watch)

    def _entry(self, watch: Watch, request: Mapping[str, Any]) -> LedgerEntry | None:
        """Return how a new key begins; ``None``: it is for somebody else, or there is no answer to it.

        An elicitation that nobody can ever be shown, of a kind that was not declared or malformed, is
        cancelled, so that the task does not wait in vain.
        """
        settings, asked = self.requests.settings, {"request": request}
        if answerable(request, settings.capabilities):
            return LedgerEntry(KeyState.SHOWN)
        # What the call that made the task declared, another process may be able to answer.
        promised = missing_capabilities(asked, watch.reference.capabilities) is None
        declared_here = missing_capabilities(asked, settings.capabilities) is None
        if not is_elicitation(request) or (promised and not declared_here):
            return None
        return LedgerEntry(KeyState.ANSWERED, CANCELLED_ANSWER)

    def _prompt(self, watch: Watch, key: str, request: Mapping[str, Any], *, again: bool) -> None:
        """Show a question that nobody has answered and that this process has not shown before."""
        entry = watch.reference.ledger.get(key)
        if entry is None or entry.state is not KeyState.SHOWN or entry.prompted:
            return
        if again and not answerable(request, self.requests.settings.capabilities):
            return  # the process that had it on show was able to do what this one is not
        entry.prompted, entry.on_show = True, request
        self.requests.out.append(Prompt(call=watch.call.key, key=key, request=request, again=again))

    def withdraw(self, watch: Watch) -> None:
        """Take every prompt of a task off the screen."""
        for key in watch.reference.ledger:
            self._withdraw(watch, key)

    def _withdraw(self, watch: Watch, key: str) -> None:
        entry = watch.reference.ledger[key]
        if entry.on_show is not None:
            entry.on_show = None
            self.requests.out.append(WithdrawPrompt(watch.call.key, key))

    def _drop_moot(self, watch: Watch, outstanding: Outstanding) -> bool:
        """Forget what the server no longer waits for; whether answers were among it."""
        dropped = False
        for key, entry in watch.reference.ledger.items():
            if key in outstanding:
                continue
            self._withdraw(watch, key)
            if entry.state is KeyState.ANSWERED and key not in watch.submitted:
                entry.state, entry.response = KeyState.SENT, None
                dropped = True
        return dropped

    # -- answering -----------------------------------------------------------------------------------------

    def answer(self, watch: Watch, key: str, response: Mapping[str, Any]) -> None:
        """Take in the answer to a prompt, and send it as soon as no other update is under way."""
        entry = watch.reference.ledger[key]
        entry.on_show = None
        entry.state, entry.response = KeyState.ANSWERED, response
        self.keep(watch)
        self.submit(watch)

    def submit(self, watch: Watch) -> None:
        """Send every answer that the server may not have, unless that is under way or no longer wanted."""
        if watch.cancelling or watch.updating is not None:
            return
        if self.requests.timers.get(("update", watch.task_id)) is not None:
            return
        answers = {
            key: entry.response
            for key, entry in watch.reference.ledger.items()
            if entry.state is KeyState.ANSWERED
        }
        if not answers:
            return
        if watch.one_by_one:
            first = next(iter(answers))
            answers = {first: answers[first]}
        watch.submitted = tuple(answers)
        params = {"taskId": watch.task_id, "inputResponses": answers}
        watch.updating = self.requests.send(SentUpdate(watch=watch), "tasks/update", params)

    def acknowledged(self, watch: Watch) -> None:
        """The server has the answers: they are not sent again."""
        watch.updating, watch.update_failures = None, 0
        watch.denied.discard(SentUpdate)
        for key in watch.submitted:
            entry = watch.reference.ledger[key]
            entry.state, entry.response = KeyState.SENT, None
        watch.submitted = ()
        self.keep(watch)
        self.submit(watch)

    def failed(self, watch: Watch, pause_ms: int) -> None:
        """It is not known whether the server has the answers: the same ones are sent again."""
        watch.updating, watch.submitted = None, ()
        watch.update_failures += 1
        wait_ms = max(backoff(self.requests.settings, watch.update_failures), pause_ms)
        self.requests.timers.set(("update", watch.task_id), self.requests.now + wait_ms)

    def refused(self, watch: Watch, error: ErrorObject) -> None:
        """The server will not take them: all of an update or nothing (UPD.4), so that each is tried alone.

        One that is refused alone is not sent again. Whether it was wrong, or there is no such task any more,
        the next view tells.
        """
        if len(watch.submitted) > 1:
            watch.one_by_one = True
            watch.updating, watch.submitted = None, ()
            self.submit(watch)
        else:
            watch.refused |= dict.fromkeys(watch.submitted, error)
            self.acknowledged(watch)
