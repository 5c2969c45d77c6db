"""The life of a task: five statuses, one table.

How to read this module
=======================

A task is a record that somebody polls. What may happen to it is written here once, as data, and
nowhere else in the package: every change of a status, in every role and era, is one lookup.

::

                      InputAsked
            .---------------------------->.
         working                    input_required
            '<----------------------------'
              InputsFullyAnswered/Withdrawn

    either one --WorkCompleted--> completed
    either one --WorkFailed-----> failed
    either one --WorkLost-------> failed
    either one --WorkStopped----> cancelled
    either one --GraceElapsed---> cancelled
    either one --HostCancelled--> cancelled
    either one --HostFailed-----> failed

Three ideas keep it honest.

**Triggers are facts whose guards are already resolved.** "An answer came" is not a trigger; "the last
outstanding request was answered" is, and "some were, others remain" is another. The caller counts,
picks the trigger, and looks it up. So no ``if`` outside of this table decides where a task goes.

**The table is total.** Every pair of status and trigger has a verdict, chosen among four:

* :class:`Goto` - the status changes;
* :data:`STAY` - the task takes the fact in (a status message, a partial answer) and keeps its status;
* :data:`IGNORE` - the fact is too late or means nothing; the sender is told all is well, nothing changes;
* :data:`REJECT` - the fact cannot be; its sender is told so, nothing changes.

**Terminal is terminal.** The columns of ``completed``, ``failed`` and ``cancelled`` hold IGNORE and REJECT:
nothing a peer or a worker does changes the view any more (LIFE.1). The one STAY is ``TtlChanged``: how
long an ended task can still be read is the host's to say (TTL.3).

A cancel request is not a transition. It is cooperative (CAN.6): the record notes that it was asked for,
the worker is told, and the status moves when the worker stops, finishes first, or lets its grace lapse.
2025-11-25 has it otherwise (LEG.5): there ``HostCancelled`` moves the status, and waits for nobody.
Likewise the end of a TTL is no status: the record ceases to be readable. And a worker whose node is gone may
be followed by another, which asks its questions again: the task and its keys stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import frozen

__all__ = [
    "IGNORE",
    "REJECT",
    "STAY",
    "TABLE",
    "TERMINAL",
    "Goto",
    "Status",
    "Trigger",
    "Verdict",
    "render_mermaid",
    "render_table",
    "transition",
]


class Status(Enum):
    """A task's status, with its wire name as value (LIFE.1)."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    # Members are singletons and compared by identity; Enum's own hash goes through a Python call.
    __hash__ = object.__hash__

    def __init__(self, word: str) -> None:
        self.terminal = word in ("completed", "failed", "cancelled")
        """Whether the task has ended for good."""


TERMINAL: Final = frozenset(status for status in Status if status.terminal)
"""The statuses that never change."""


class Trigger(Enum):
    """A fact about a task, its guards resolved."""

    WORK_PROGRESSED = "WorkProgressed"
    """The worker changed the status message, the TTL or the poll hint, or saved a checkpoint."""
    INPUT_ASKED = "InputAsked"
    """The worker asks for one or more inputs."""
    INPUT_ASKED_AFTER_CANCEL = "InputAskedAfterCancel"
    """The same, once cancellation was requested."""
    INPUT_ASKED_AGAIN = "InputAskedAgain"
    """A worker that was resumed asks what is outstanding already, or answered."""
    INPUTS_PARTLY_ANSWERED = "InputsPartlyAnswered"
    """At least one outstanding request was answered; others remain."""
    INPUTS_FULLY_ANSWERED = "InputsFullyAnswered"
    """The last outstanding requests were answered."""
    NOTHING_ANSWERED = "NothingAnswered"
    """An update named no outstanding request, or came after a cancel request."""
    INPUTS_PARTLY_WITHDRAWN = "InputsPartlyWithdrawn"
    """The worker gave up some of its requests; others remain."""
    INPUTS_FULLY_WITHDRAWN = "InputsFullyWithdrawn"
    """The worker gave up all of its outstanding requests."""
    CANCEL_REQUESTED = "CancelRequested"
    """The owner asked for cancellation."""
    TTL_CHANGED = "TtlChanged"
    """The host gave the task another lifetime."""
    WORK_COMPLETED = "WorkCompleted"
    """The worker returned a result, be it one that says ``isError``."""
    WORK_FAILED = "WorkFailed"
    """The worker ended with a protocol error."""
    WORK_STOPPED = "WorkStopped"
    """The worker stopped without a result, as a cancelled one does."""
    WORK_LOST = "WorkLost"
    """The node that the worker ran on is gone, and the worker with it."""
    WORK_RESUMED = "WorkResumed"
    """The same, and another node takes the work over."""
    GRACE_ELAPSED = "GraceElapsed"
    """A cancelled worker did not stop in time."""
    HOST_CANCELLED = "HostCancelled"
    """The host cancels the task at once, whatever its worker does."""
    HOST_FAILED = "HostFailed"
    """The host fails the task at once, whatever its worker does."""

    __hash__ = object.__hash__


@frozen
class Goto:
    """The task moves to ``status``."""

    status: Status

    def __str__(self) -> str:
        return f"-> {self.status.value}"


class _Word(Enum):
    STAY = "stay"
    IGNORE = "ignore"
    REJECT = "reject"

    def __str__(self) -> str:
        return self.value


STAY: Final = _Word.STAY
IGNORE: Final = _Word.IGNORE
REJECT: Final = _Word.REJECT

Verdict = Goto | _Word
"""What the table says of one pair."""

_WORKING = Goto(Status.WORKING)
_INPUT_REQUIRED = Goto(Status.INPUT_REQUIRED)
_COMPLETED = Goto(Status.COMPLETED)
_FAILED = Goto(Status.FAILED)
_CANCELLED = Goto(Status.CANCELLED)

_ENDINGS: Mapping[Trigger, Verdict] = {
    Trigger.WORK_COMPLETED: _COMPLETED,
    Trigger.WORK_FAILED: _FAILED,
    Trigger.WORK_STOPPED: _CANCELLED,
    Trigger.WORK_LOST: _FAILED,
    Trigger.GRACE_ELAPSED: _CANCELLED,
    Trigger.HOST_CANCELLED: _CANCELLED,
    Trigger.HOST_FAILED: _FAILED,
}

_ENDED: Mapping[Trigger, Verdict] = {
    Trigger.WORK_PROGRESSED: IGNORE,
    Trigger.INPUT_ASKED: REJECT,
    Trigger.INPUT_ASKED_AFTER_CANCEL: REJECT,
    Trigger.INPUT_ASKED_AGAIN: REJECT,
    Trigger.INPUTS_PARTLY_ANSWERED: IGNORE,
    Trigger.INPUTS_FULLY_ANSWERED: IGNORE,
    Trigger.NOTHING_ANSWERED: IGNORE,
    Trigger.INPUTS_PARTLY_WITHDRAWN: IGNORE,
    Trigger.INPUTS_FULLY_WITHDRAWN: IGNORE,
    Trigger.CANCEL_REQUESTED: IGNORE,
    Trigger.TTL_CHANGED: STAY,
    Trigger.WORK_COMPLETED: IGNORE,
    Trigger.WORK_FAILED: IGNORE,
    Trigger.WORK_STOPPED: IGNORE,
    Trigger.WORK_LOST: IGNORE,
    Trigger.WORK_RESUMED: IGNORE,
    Trigger.GRACE_ELAPSED: IGNORE,
    Trigger.HOST_CANCELLED: REJECT,
    Trigger.HOST_FAILED: REJECT,
}

TABLE: Final[Mapping[tuple[Status, Trigger], Verdict]] = {
    **{
        (Status.WORKING, trigger): verdict
        for trigger, verdict in {
            Trigger.WORK_PROGRESSED: STAY,
            Trigger.INPUT_ASKED: _INPUT_REQUIRED,
            Trigger.INPUT_ASKED_AFTER_CANCEL: REJECT,
            Trigger.INPUT_ASKED_AGAIN: STAY,
            # Nothing is outstanding while a task is working, so nothing can be answered or withdrawn.
            Trigger.INPUTS_PARTLY_ANSWERED: IGNORE,
            Trigger.INPUTS_FULLY_ANSWERED: IGNORE,
            Trigger.NOTHING_ANSWERED: IGNORE,
            Trigger.INPUTS_PARTLY_WITHDRAWN: IGNORE,
            Trigger.INPUTS_FULLY_WITHDRAWN: IGNORE,
            Trigger.CANCEL_REQUESTED: STAY,
            Trigger.TTL_CHANGED: STAY,
            Trigger.WORK_RESUMED: STAY,
            **_ENDINGS,
        }.items()
    },
    **{
        (Status.INPUT_REQUIRED, trigger): verdict
        for trigger, verdict in {
            Trigger.WORK_PROGRESSED: STAY,
            Trigger.INPUT_ASKED: STAY,
            Trigger.INPUT_ASKED_AFTER_CANCEL: REJECT,
            Trigger.INPUT_ASKED_AGAIN: STAY,
            Trigger.INPUTS_PARTLY_ANSWERED: STAY,
            Trigger.INPUTS_FULLY_ANSWERED: _WORKING,
            Trigger.NOTHING_ANSWERED: IGNORE,
            Trigger.INPUTS_PARTLY_WITHDRAWN: STAY,
            Trigger.INPUTS_FULLY_WITHDRAWN: _WORKING,
            Trigger.CANCEL_REQUESTED: STAY,
            Trigger.TTL_CHANGED: STAY,
            Trigger.WORK_RESUMED: STAY,
            **_ENDINGS,
        }.items()
    },
    **{(status, trigger): verdict for status in TERMINAL for trigger, verdict in _ENDED.items()},
}
"""Every pair of status and trigger, with its verdict. ``docs/states.md`` is generated from it."""


def transition(status: Status, trigger: Trigger) -> Verdict:
    """Return what ``trigger`` does to a task that is in ``status``. Never raises: the table is total."""
    return TABLE[status, trigger]


def render_table() -> str:
    """Return the table as Markdown, one row a trigger, one column a status."""
    statuses = list(Status)
    lines = [
        "| trigger | " + " | ".join(status.value for status in statuses) + " |",
        "|---" * (len(statuses) + 1) + "|",
    ]
    for trigger in Trigger:
        cells = (str(TABLE[status, trigger]) for status in statuses)
        lines.append(f"| {trigger.value} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def render_mermaid() -> str:
    """Return the status changes of the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> working"]
    for status in Status:
        for trigger in Trigger:
            verdict = TABLE[status, trigger]
            if isinstance(verdict, Goto):
                lines.append(f"    {status.value} --> {verdict.status.value}: {trigger.value}")
    lines.extend(f"    {status.value} --> [*]" for status in Status if status.terminal)
    return "\n".join(lines) + "\n"
