"""The adapter kit: does a server, or a proxy, keep the contract? Checks for whatever speaks MCP Tasks.

:class:`Kit` is a run without I/O. It says what to send, and is told what comes; whoever has a socket or a
process carries it out (``mcp-tasks kit`` does, over HTTP and on stdio)::

    kit = Kit(KitSettings(), speaks_http=True)
    act = kit.begin(now_ms)
    while act is not None:
        act = kit.take(carry_out(act), now_ms)
    for rule in rules_of(kit.findings):
        print(rule.rule, rule.verdict.value, rule.reason)

A check that fails shows the exchanges that it saw. What a check cannot see it says so, and why.
"""

from mcp_tasks_proto.testing.kit.acts import (
    SECOND_RESPONSE,
    Act,
    Begun,
    Came,
    Close,
    Done,
    Ended,
    Fact,
    Next,
    Open,
    Pause,
    Post,
    Silent,
    Unreadable,
)
from mcp_tasks_proto.testing.kit.all_checks import CHECKS, NOT_CHECKED
from mcp_tasks_proto.testing.kit.checks import Answer, Check, Finding, Need, Strength, Verdict
from mcp_tasks_proto.testing.kit.desk import KitSettings, Role, ToolCall
from mcp_tasks_proto.testing.kit.engine import Kit
from mcp_tasks_proto.testing.kit.report import (
    RuleFinding,
    by_strength,
    counted,
    failures,
    finding_to_json,
    rule_to_json,
    rules_of,
)

__all__ = [
    "CHECKS",
    "NOT_CHECKED",
    "SECOND_RESPONSE",
    "Act",
    "Answer",
    "Begun",
    "Came",
    "Check",
    "Close",
    "Done",
    "Ended",
    "Fact",
    "Finding",
    "Kit",
    "KitSettings",
    "Need",
    "Next",
    "Open",
    "Pause",
    "Post",
    "Role",
    "RuleFinding",
    "Silent",
    "Strength",
    "ToolCall",
    "Unreadable",
    "Verdict",
    "by_strength",
    "counted",
    "failures",
    "finding_to_json",
    "rule_to_json",
    "rules_of",
]
