"""What must make no difference: a restart, and a proxy on the way.

Others of the kind are where their subject is: the borders of chunks (``test_wire_stdio``, ``test_wire_sse``,
and a real server in ``test_http_requests``), parsing and serialising (``test_wire_schema``), the hash seed
(``tests/purity/test_determinism.py``), the era (``test_two_eras``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_tasks_proto import AcceptReport, Input, RejectReport
from mcp_tasks_proto.requester import Completed, Failed, Outcome, Prompt
from mcp_tasks_proto.testing import ServerHost
from mcp_tasks_proto.testing.strategies import ToolScript, tool_scripts
from mcp_tasks_proto.wire.schema import record_from_json, record_to_json
from tests.model.test_pair import plans
from tests.model.test_proxy_chain import CODECS, make_chain
from tests.model.workshop import Plan
from tests.unit.world import TASK, make_engine, make_host

DECLARED: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}}


@define(eq=False)
class Server:
    """One host, that may put a new engine in place of its own before each fact."""

    restarts: bool
    host: ServerHost = field(factory=make_host)
    said: list[Any] = field(factory=list)

    def ask(self, method: str, params: dict[str, Any]) -> None:
        """Send a request, and note the reply."""
        self._restart()
        self.said.append(self.host.ask(method, params, principal="ada"))

    def report(self, fact: Input) -> None:
        """Hand in what a worker or the host reports, and note whether it was taken."""
        self._restart()
        effects = self.host.give(fact)
        self.said.append([one for one in effects if isinstance(one, AcceptReport | RejectReport)])

    def _restart(self) -> None:
        if self.restarts:
            self.host.engine = make_engine()
            records = self.host.store.records
            for task_id, record in records.items():
                records[task_id] = record_from_json(json.loads(json.dumps(record_to_json(record))))


visits = st.sampled_from(["get", "answer", "answer wrongly", "cancel", "wait"])


def play(script: ToolScript, visits: list[str], *, restarts: bool) -> Server:
    """Live through a script; before each of its reports there is a visit, as long as there are any."""
    server = Server(restarts)
    server.host.create_task("optional", task_id=TASK, principal="ada", capabilities=DECLARED)
    for fact, what in zip_longest(script.reports(TASK), visits):
        visit(server, what or "get")
        if fact is not None:
            server.report(fact)
    visit(server, "get")
    return server


def visit(server: Server, what: str) -> None:
    """Do what a caller does, or let time pass."""
    record = server.host.store.records.get(TASK)
    waiting = {} if record is None else {entry.key: entry.request for entry in record.outstanding}
    match what:
        case "answer":
            answers = {key: answer_to(request) for key, request in list(waiting.items())[:2]}
            server.ask("tasks/update", {"taskId": TASK, "inputResponses": answers})
        case "answer wrongly":
            server.ask(
                "tasks/update", {"taskId": TASK, "inputResponses": {key: {"no": 1} for key in waiting}}
            )
        case "cancel":
            server.ask("tasks/cancel", {"taskId": TASK})
        case "wait":
            server.host.now += 7
    server.ask("tasks/get", {"taskId": TASK})


def answer_to(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer that fits."""
    sampled = {"role": "assistant", "model": "none", "content": {"type": "text", "text": "no"}}
    others: dict[str, dict[str, Any]] = {"roots/list": {"roots": []}, "sampling/createMessage": sampled}
    return others.get(request["method"], {"action": "decline"})


@settings(max_examples=60, deadline=None)
@given(tool_scripts(), st.lists(visits, max_size=7))
def test_life4_a_restart_from_saved_records_makes_no_difference(
    script: ToolScript, visits: list[str]
) -> None:
    """GET.1, UPD.5, INP.1: the same replies, to the letter, and the same record."""
    stayed, restarted = (play(script, visits, restarts=restarts) for restarts in (False, True))
    assert restarted.said == stayed.said
    assert restarted.host.store.records == stayed.host.store.records


def told(outcome: Outcome) -> Any:
    """Return what a caller is told, without who told it."""
    match outcome:
        case Completed(result=result):
            return "completed", {name: value for name, value in result.items() if name != "_meta"}
        case Failed():
            return "failed", outcome.code, outcome.message, outcome.data
    return type(outcome).__name__


@settings(max_examples=40, deadline=None)
@given(plans, st.sampled_from([1, 2]), st.sampled_from(list(CODECS)), st.booleans())
def test_prx8_a_call_ends_the_same_directly_and_through_proxies(
    plan: Plan, hops: int, codec: str, listen: bool
) -> None:
    """PRX.10: the same outcome, the same questions in the same order, the same answers at the worker."""
    ways = []
    for proxies in (0, hops):
        chain = make_chain(plan, proxies, codec, listen=listen)
        key = chain.call()
        assert chain.settle(key)
        asked = [(prompt.key, prompt.request) for prompt in chain.requester.of(Prompt)]
        ways.append((told(chain.requester.outcomes[key]), asked, list(chain.workshop.answers.values())))
    assert ways[0] == ways[1]
