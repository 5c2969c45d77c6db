"""Requesters and servers that crash: whatever happens for a while, each call ends, and the outcome is true.

LIFE.4, UPD.5, INP.1 on one side, REQ.3, REQ.4 and REQ.6 on the other.
"""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import Status
from mcp_tasks_proto.requester import Completed, Failed, ObservationLost, Prompt
from mcp_tasks_proto.testing import Client, Fate, Network, Passage
from tests.model.mill import Grinding, Mill, answer_to, make_engine
from tests.model.test_network import LONG_MS, check_records, fates, plans
from tests.model.test_pair import passages, skews
from tests.model.watch import Watch
from tests.model.workshop import make_requester


def answered(prompt: Prompt) -> tuple[int, dict[str, object]]:
    """Return the right answer, some time later."""
    return 500, answer_to(prompt.request["params"]["message"])


@settings(max_examples=100, deadline=None)
@given(plans, fates, passages, st.booleans(), skews, st.lists(st.integers(1, 9_000), max_size=3))
def test_each_call_ends_and_the_outcome_is_the_true_one(
    plan: Grinding, story: list[Fate], storm: list[Passage], listen: bool, skew_ms: int, lives: list[int]
) -> None:
    """Servers crash, the caller's process does, and the next one goes on; messages are lost or come twice."""
    mill = Mill(plan)
    network = Network(make_engine=make_engine, work=mill.work, fates=story, promises=Watch)
    client = Client(
        network=network,
        requester=make_requester(listen=listen),
        answer=answered,
        passages=storm,
        skew_ms=skew_ms,
    )
    call, reference = client.call("grind"), None
    for life in lives:
        network.run(life)
        reference = client.requester.references.get(call, reference)
        if reference is None or call in client.requester.outcomes:
            break
        client.crash(make_requester(listen=listen))
        call = client.resume(json.loads(json.dumps(reference)))
    assert client.settle(call, within_ms=LONG_MS)
    outcome = client.requester.outcomes[call]
    check_records(network)
    assert all(times == 1 for times in mill.starts.values()), "a run is started once"
    reference = client.requester.references.get(call, reference)
    if reference is None:
        assert isinstance(outcome, ObservationLost | Failed), "no task was ever heard of"
    else:
        record = network.store.records[reference["taskId"]]
        assert record.status is Status.COMPLETED
        assert isinstance(outcome, Completed)
        assert record.result is not None
        assert outcome.result["content"] == record.result["content"]
        assert {entry.key for entry in record.inputs} in (set(), plan.keys()), "nothing is asked twice"
    network.run(LONG_MS)
    assert not client.requester.in_flight
    assert client.requester.deadline is None
