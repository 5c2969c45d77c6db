"""The checker of the crash runs finds every kind of broken promise, and nothing where all are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from attrs import evolve

from tests.crash.checker import find_faults
from tests.crash.history import (
    AnswerAcknowledged,
    AnswerSent,
    Began,
    CancelAcknowledged,
    CancelSent,
    Checkpointed,
    Created,
    Delivered,
    Event,
    Killed,
    Note,
    Refused,
    Viewed,
)
from tests.crash.kinds import ERRING_TEXT, FAILING_CODE, FAILING_MESSAGE, ROUNDS, question

MADE_AT: Final = "2027-01-15T08:00:00.000Z"
MADE_AT_MS: Final = 1_800_000_000_000
TTL_MS: Final = 60_000
LOST: Final[dict[str, Any]] = {
    "statusMessage": "The worker was lost.",
    "error": {"code": -32603, "message": "lost", "data": {"reason": "worker_lost"}},
}

# -- what histories are made of ------------------------------------------------------------------------------


def view(status: str, second: int = 0, **members: Any) -> dict[str, Any]:
    """Return how the task stands, having changed last at that second of its life."""
    return {
        "resultType": "complete",
        "taskId": "a",
        "status": status,
        "createdAt": MADE_AT,
        "lastUpdatedAt": f"2027-01-15T08:00:{second:02}.000Z",
        "ttlMs": TTL_MS,
        **members,
    }


RESUMED_TOO_OFTEN: Final[dict[str, Any]] = {
    "statusMessage": "The worker was lost again.",
    "error": {"code": -32603, "message": "lost", "data": {"reason": "resumptions"}},
}


def lost(second: int) -> dict[str, Any]:
    """Return how a task ends whose process was killed."""
    return view("failed", second, **LOST)


def created(kind: str = "plain", task_id: str = "a", life: int = 1) -> Created:
    handle = {**view("working"), "resultType": "task", "taskId": task_id}
    return Created(task_id=task_id, life=life, kind=kind, view=handle)


def viewed(shown: dict[str, Any] | None, life: int = 1, at_second: int = 30) -> Viewed:
    at_ms = MADE_AT_MS + at_second * 1000
    return Viewed(task_id="a", life=life, asked_at_ms=at_ms, answered_at_ms=at_ms, view=shown)


def asks(second: int, **questions: str) -> dict[str, Any]:
    """Return the view of a task that asks; questions by their keys."""
    requests = {key: {"params": {"message": asked}} for key, asked in questions.items()}
    return view("input_required", second, inputRequests=requests)


def sent(key: str, asked: str, value: str) -> AnswerSent:
    return AnswerSent(task_id="a", life=1, key=key, question=asked, value=value)


def acknowledged(key: str) -> AnswerAcknowledged:
    return AnswerAcknowledged(task_id="a", life=1, key=key)


def delivered(asked: str, value: str, process: str = "first") -> Delivered:
    return Delivered(task_id="a", process=process, question=asked, value=value)


BEGAN: Final = Began(task_id="a", kind="plain", process="first")
RESUMABLE: Final = evolve(BEGAN, kind="resumable")
RESUMED: Final = evolve(RESUMABLE, process="second")
KILLED: Final = Killed(life=1)
CANCEL: Final = (CancelSent(task_id="a", life=1), CancelAcknowledged(task_id="a", life=1))
DONE: Final = view("completed", 5, result={"structuredContent": {"task": "a"}})
PLAIN: Final[Sequence[Event]] = (created(), viewed(view("working")), viewed(DONE), viewed(DONE, life=2))
ENDLESS: Final[Sequence[Event]] = (created("endless"), viewed(view("working")))

FIRST_LEFT, FIRST_RIGHT = (question(0, name) for name in ROUNDS[0])
EVERY_QUESTION: Final = [question(number, name) for number, names in enumerate(ROUNDS) for name in names]
KEYS: Final = ["left", "right", "left.2", "right.2", "left.3"]
ANSWERS: Final = {asked: f"answer to {asked}" for asked in EVERY_QUESTION}


def asking(kind: str = "asking") -> list[Event]:
    """Return the history of a task that asked all its questions, one after another."""
    history: list[Event] = [created(kind)]
    for second, (key, asked) in enumerate(zip(KEYS, EVERY_QUESTION, strict=True)):
        history.append(viewed(asks(second, **{key: asked})))
        history += [sent(key, asked, ANSWERS[asked]), acknowledged(key)]
    content = {"task": "a", "answers": ANSWERS}
    return [*history, viewed(view("completed", 9, result={"structuredContent": content}))]


def all_delivered(process: str = "first") -> list[Note]:
    return [BEGAN, *(delivered(asked, value, process) for asked, value in ANSWERS.items())]


# -- promises kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("history", "notes"),
    [
        pytest.param(PLAIN, [BEGAN], id="completed"),
        pytest.param(asking(), all_delivered(), id="answered"),
        pytest.param([*ENDLESS, *CANCEL, viewed(view("cancelled", 7))], [BEGAN], id="cancelled"),
        pytest.param([*ENDLESS, KILLED, viewed(lost(1), life=2)], [BEGAN], id="lost"),
        pytest.param([created("brief"), viewed(None, at_second=60)], [BEGAN], id="expired"),
        pytest.param([], [BEGAN], id="never acknowledged"),
        pytest.param(asking("resumable"), [RESUMABLE, *all_delivered()[1:], RESUMED], id="resumed"),
        pytest.param(
            asking("resumable"),
            [RESUMABLE, delivered(FIRST_LEFT, ANSWERS[FIRST_LEFT]), RESUMED,
             *all_delivered("second")[1:],
             Checkpointed(task_id="a", round=1), evolve(RESUMED, process="third", round=1)],
            id="resumed before and after a checkpoint",
        ),
        pytest.param(
            [created("resumable"), viewed(view("failed", 1, **RESUMED_TOO_OFTEN), life=9)],
            [RESUMABLE],
            id="resumed too often",
        ),
        pytest.param(
            [created("asking"), viewed(asks(1, left=FIRST_LEFT)), sent("left", FIRST_LEFT, "yes"),
             acknowledged("left"), KILLED, viewed(lost(2), life=2)],
            [BEGAN],
            id="answered and lost",
        ),
        pytest.param(
            [created("failing"), viewed(view("failed", 1, statusMessage=FAILING_MESSAGE, error={
                "code": FAILING_CODE, "message": FAILING_MESSAGE, "data": {"task": "a"}}))],
            [BEGAN],
            id="failed",
        ),
        pytest.param(
            [created("erring"), viewed(view("completed", 1, result={
                "isError": True, "content": [{"type": "text", "text": ERRING_TEXT}]}))],
            [BEGAN],
            id="erred",
        ),
    ],
)  # fmt: skip
def test_finds_nothing_where_there_is_nothing(history: Sequence[Event], notes: Sequence[Note]) -> None:
    assert find_faults(history, notes) == []


# -- promises broken -----------------------------------------------------------------------------------------


def fault(history: Sequence[Event], notes: Sequence[Note] = (BEGAN,)) -> str:
    """Return the one fault that there is."""
    [found] = find_faults(history, notes)
    return found


def test_life4_a_lost_creation() -> None:
    assert "does not know it, 30000 ms before its time is over" in fault([*PLAIN, viewed(None, life=2)])


def test_ttl1_a_task_that_outlives_its_time_or_comes_back() -> None:
    assert "still knows it after its time" in fault([*PLAIN, viewed(DONE, at_second=60)])
    gone = viewed(None, at_second=60)
    assert "knows it again" in fault([*PLAIN, gone, viewed(DONE, at_second=61)])


def test_ttl1_a_task_that_is_parked_for_ever() -> None:
    assert "it never ended: it is input_required" in fault([created(), viewed(asks(1, left=FIRST_LEFT))])
    assert "it never ended: it is working" in fault([created()])


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "failed"},
        {"lastUpdatedAt": "2027-01-15T08:00:06.000Z"},
        {"ttlMs": 120_000},
        {"result": {"structuredContent": {"task": "b"}}},
        {"statusMessage": "new"},
    ],
)
def test_life1_a_terminal_view_that_changes_in_any_member(changed: dict[str, Any]) -> None:
    found = fault([*PLAIN, viewed({**DONE, **changed}, life=2)])
    assert found == f"a (plain): life 2 shows another end: {', '.join(changed)} changed"


def test_life1_a_terminal_view_that_loses_a_member() -> None:
    less = {name: value for name, value in DONE.items() if name != "result"}
    assert "shows another end: result changed" in fault([*PLAIN, viewed(less, life=2)])


def test_life5_a_view_that_goes_back_or_changes_unsaid() -> None:
    back: list[Event] = [created(), viewed(view("working", 3)), viewed(view("working", 2)), viewed(DONE)]
    assert "shows an older state than was seen before" in fault(back)
    unsaid: list[Event] = [
        created(),
        viewed(view("working")),
        viewed(view("working", statusMessage="x")),
        viewed(DONE),
    ]
    assert "statusMessage changed, and lastUpdatedAt did not" in fault(unsaid)


def test_inp1_a_key_that_is_reused() -> None:
    history = asking()
    history.insert(-1, viewed(asks(8, left="another question")))
    assert "uses the key 'left' for another question" in fault(history, all_delivered())


def test_life6_an_id_that_is_reused() -> None:
    assert fault([*PLAIN, created()]) == "a: two creations got this id"


def test_upd5_an_answer_that_is_delivered_twice() -> None:
    again = delivered(FIRST_LEFT, ANSWERS[FIRST_LEFT])
    found = fault(asking(), [*all_delivered(), again])
    assert found == f"a: the answer to {FIRST_LEFT!r} was delivered 2 times"


def test_upd5_an_acknowledged_answer_that_is_still_asked_for() -> None:
    history = asking()
    history.insert(4, viewed(asks(0, left=FIRST_LEFT)))
    assert "still asks 'left', whose answer was acknowledged" in fault(history, all_delivered())


def test_upd5_an_acknowledged_answer_that_is_never_delivered() -> None:
    told = {asked: value for asked, value in ANSWERS.items() if asked != FIRST_LEFT}
    notes = [note for note in all_delivered() if note != delivered(FIRST_LEFT, ANSWERS[FIRST_LEFT])]
    result = {"structuredContent": {"task": "a", "answers": {**told, FIRST_LEFT: "made up"}}}
    faults = find_faults([*asking()[:-1], viewed(view("completed", 9, result=result))], notes)
    assert f"a (asking): the acknowledged answer to {FIRST_LEFT!r} was never delivered" in faults
    assert "a (asking): its result is not made of the answers that were delivered" in faults


def test_upd3_an_answer_that_comes_after_the_acknowledged_one_is_not_the_one_delivered() -> None:
    history: list[Event] = [created("asking"), viewed(asks(1, left=FIRST_LEFT))]
    for value in ("first", "late"):
        history += [sent("left", FIRST_LEFT, value), acknowledged("left")]
    history += [KILLED, viewed(lost(2), life=2)]
    assert find_faults(history, [BEGAN, delivered(FIRST_LEFT, "first")]) == []
    assert "answered with what nobody sent" in fault(history, [BEGAN, delivered(FIRST_LEFT, "late")])


def test_an_answer_that_nobody_sent() -> None:
    notes: list[Note] = [BEGAN, delivered(FIRST_LEFT, "made up")]
    history: list[Event] = [created("asking"), KILLED, viewed(lost(2), life=2)]
    assert "was answered with what nobody sent" in fault(history, notes)


def test_can6_an_acknowledged_cancellation_that_is_lost() -> None:
    late = [*ENDLESS, KILLED, *CANCEL, viewed(lost(7), life=2)]
    assert find_faults(late, [BEGAN]) == [], "it may have ended as lost before"
    history = [*ENDLESS, *CANCEL, KILLED, viewed(lost(7), life=2)]
    assert "its cancellation was acknowledged, and it ended as lost" in fault(history)


def test_can6_a_cancellation_that_nobody_asked_for() -> None:
    assert "nobody had asked for that" in fault([*ENDLESS, viewed(view("cancelled", 7))])


def test_work_that_begins_twice() -> None:
    again = evolve(BEGAN, process="second")
    assert fault(PLAIN, [BEGAN, again]) == "a: its work began 2 times"


def test_resumable_work_that_begins_twice_in_one_process() -> None:
    found = fault(asking("resumable"), [RESUMABLE, RESUMABLE, *all_delivered()[1:]])
    assert found == "a: its work began 2 times in one process"


def test_resumable_work_whose_answers_change_from_run_to_run() -> None:
    other = delivered(FIRST_LEFT, "another", "second")
    notes = [RESUMABLE, *all_delivered()[1:], RESUMED, other]
    assert f"a: {FIRST_LEFT!r} was answered in 2 ways" in find_faults(asking("resumable"), notes)


def test_resumable_work_that_forgets_a_checkpoint() -> None:
    notes = [RESUMABLE, *all_delivered()[1:], Checkpointed(task_id="a", round=2), evolve(RESUMED, round=1)]
    assert "went on at round 1, and a checkpoint of round 2 was durable" in fault(asking("resumable"), notes)


def test_resumable_work_that_ends_as_lost() -> None:
    assert "an end that its tool never makes" in fault(
        [created("resumable"), KILLED, viewed(lost(1), life=2)]
    )


def test_a_worker_that_is_called_lost_and_is_not() -> None:
    found = fault([*ENDLESS, Killed(life=2), viewed(lost(1), life=3)])
    assert "says the worker was lost, whose process is alive" in found


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("plain", view("completed", 5, result={"structuredContent": {"task": "b"}})),
        ("plain", view("failed", 5, statusMessage="?", error={"code": -32603, "message": "?"})),
        ("plain", view("failed", 5, **{**LOST, "statusMessage": "Failed."})),
        ("erring", DONE),
        ("failing", DONE),
        ("endless", DONE),
        ("asking", view("completed", 5, result={"structuredContent": {"task": "a", "answers": {}}})),
    ],
)
def test_life2_an_end_that_is_not_honest(kind: str, end: dict[str, Any]) -> None:
    assert "shows an end that its tool never makes" in fault([created(kind), viewed(end, life=2)])


def test_a_request_that_is_refused() -> None:
    refused = Refused(life=3, method="tasks/get", why="store_unavailable")
    assert fault([*PLAIN, refused]) == "life 3 did not do as it was asked by tasks/get: store_unavailable"


def test_life3_a_creation_that_is_no_handle() -> None:
    no_handle = evolve(created(), view=view("working"))
    assert "its creation was no handle" in fault([no_handle, *PLAIN[1:]])
