"""A run of the kit: one check after the other, and what they find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, evolve, field

from mcp_tasks_proto.testing.kit.acts import Act, Close, Fact, Next, Pause, Script
from mcp_tasks_proto.testing.kit.all_checks import CHECKS
from mcp_tasks_proto.testing.kit.checks import Broken, Check, Finding, Need, Unseen, Verdict
from mcp_tasks_proto.testing.kit.desk import HEARD_BYTES, Desk, KitSettings
from mcp_tasks_proto.testing.kit.survey import Unlisted, Unreachable, survey

__all__ = ["Kit"]

TIDIED: Final = 64
"""At most so many tasks are cancelled at the end."""
TIDY_MS: Final = 5_000
"""So long that may take, after the time of the run itself."""


@define(eq=False)
class Kit:
    """Examines one server.

    ::

        act = kit.begin(now_ms)
        while act is not None:
            act = kit.take(carry_out(act), now_ms)

    Each act is answered by one fact, see :mod:`mcp_tasks_proto.testing.kit.acts`. ``now_ms`` is Unix
    milliseconds. Nothing that a server sends makes this raise.
    """

    settings: KitSettings
    speaks_http: bool
    has_other_caller: bool = False
    """Whether posts of the caller 1 go out with credentials of their own (SEC.1)."""
    checks: Sequence[Check] = CHECKS
    findings: list[Finding] = field(init=False, factory=list)
    """What is known of the checks that are over, in their order."""
    unreachable: str | None = field(init=False, default=None)
    """Why there was nothing to examine, where there was nothing."""
    unlisted: tuple[str, ...] = field(init=False, default=())
    """Tools that the settings name and the server does not list: where there are any, no more was done."""
    out_of_time: bool = field(init=False, default=False)
    """Whether the time of the run was over before everything had been examined."""
    doing: str = field(init=False, default="looking at the server")
    """What goes on, for people."""
    desk: Desk = field(init=False)
    """What is known of the server."""
    _script: Script[None] = field(init=False)
    _until: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.desk = Desk(self.settings, self.speaks_http, self.has_other_caller)
        self._script = self._run()

    def begin(self, now_ms: int) -> Act | None:
        """Return the first act; ``None``: there is nothing to do."""
        self.desk.now_ms = now_ms
        self._until = now_ms + self.settings.total_ms
        return next(self._script, None)

    def take(self, fact: Fact, now_ms: int) -> Act | None:
        """Take the fact that answers the last act; return the next one, ``None`` at the end."""
        self.desk.now_ms = max(self.desk.now_ms, now_ms)
        try:
            return self._script.send(fact)
        except StopIteration:
            return None

    # -- the run -------------------------------------------------------------------------------------------

    def _run(self) -> Script[None]:
        try:
            yield from self._in_time(survey(self.desk))
        except Unreachable as error:
            self.unreachable = str(error)
            return
        except Unlisted as error:
            self.unlisted = error.names
            return
        except Unseen:
            pass  # the time is up, as every check will say
        yield from self._closing()
        for check in self.checks:
            self.doing = check.name
            self.findings.append((yield from self._judge(check)))
            yield from self._closing()
        self.doing = "leaving the server as it was"
        yield from self._tidy()

    def _judge(self, check: Check) -> Script[Finding]:
        finding = Finding(check=check, verdict=Verdict.PASS)
        try:
            self._see_to_needs(check)
            script = check.run(self.desk)
            if script is not None:
                yield from self._in_time(script)
        except Broken as error:
            return evolve(finding, verdict=Verdict.FAIL, reason=error.reason, answers=error.answers)
        except Unseen as error:
            return evolve(finding, verdict=Verdict.NOT_OBSERVABLE, reason=error.reason)
        return finding

    def _see_to_needs(self, check: Check) -> None:
        for need in Need:
            if need in check.needs and need in self.desk.lacking:
                raise Unseen(self.desk.lacking[need])

    def _in_time(self, script: Script[None]) -> Script[None]:
        """Go through a conversation. Raises :class:`Unseen` when the time of the whole run is up."""
        fact: Fact | None = None
        while True:
            try:
                act = script.send(fact)
            except StopIteration:
                return
            left = self._until - self.desk.now_ms
            if left <= 0:
                self.out_of_time = True
                script.close()
                raise Unseen(f"the time for the whole run was over ({self.settings.total_ms} ms)")
            if self.desk.heard_bytes > HEARD_BYTES:
                script.close()
                raise Unseen(f"the server has said more than a run takes in ({HEARD_BYTES} bytes)")
            fact = yield _within(act, left)

    def _closing(self) -> Script[None]:
        """Close what a check has left open."""
        for exchange in list(self.desk.open):
            del self.desk.open[exchange]
            yield Close(exchange)

    def _tidy(self) -> Script[None]:
        """Cancel the tasks that were made and have not ended, in so much time as that may take."""
        until = self.desk.now_ms + TIDY_MS
        for task_id, era in list(self.desk.running.items())[:TIDIED]:
            if self.desk.now_ms < until:
                params = {"taskId": task_id}
                legacy = era == "legacy"
                post = (
                    self.desk.legacy("tasks/cancel", params)
                    if legacy
                    else self.desk.request("tasks/cancel", params)
                )
                yield from self.desk.tried(post, max(1, until - self.desk.now_ms))


def _within(act: Act, left: int) -> Act:
    """Return an act that takes no longer than what is left."""
    match act:
        case Next(exchange=exchange, within_ms=within_ms):
            return Next(exchange, min(within_ms, left))
        case Pause(ms=ms):
            return Pause(min(ms, left))
    return act
