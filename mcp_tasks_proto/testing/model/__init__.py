"""Each role at its most naïve: what must come of whatever happens.

:class:`ServerModel` is the server: what each answer must be, after whatever happened before.
:class:`RequesterModel` is the requester: what a client sends and tells its callers.
:class:`LegacyServerModel` and :class:`LegacyRequesterModel` are the two toward a peer of 2025-11-25. The
proxy is in :mod:`mcp_tasks_proto.testing.model.proxy`.

All were written from the contract and know no engine, no table and no store. A server is one dictionary of
tasks, one event after the other, each done at once. Tell its model what happens to a server, in the order in
which that server made it durable, and compare what it says with what the server answered: :func:`difference`
does. Times are Unix milliseconds and are given with each event.

What the model of a server leaves to it: texts, ``lastUpdatedAt`` (it counts the changes of a view instead,
LIFE.5), and the caps of a store (TTL.2). ``docs/testing.md`` shows each at work.
"""

from mcp_tasks_proto.testing.model.agenda import ModelBounds
from mcp_tasks_proto.testing.model.answers import (
    SOME_TEXT,
    ErrorAnswer,
    PeerAnswer,
    ReportAnswer,
    ResultAnswer,
    difference,
)
from mcp_tasks_proto.testing.model.forms import answer_fits, may_be_asked
from mcp_tasks_proto.testing.model.legacy_requester import (
    LegacyRequesterModel,
    PutQuestion,
    is_no_end,
    legacy_outcome,
)
from mcp_tasks_proto.testing.model.legacy_server import (
    LegacyCaller,
    LegacyServerModel,
    WantedTask,
    legacy_view,
)
from mcp_tasks_proto.testing.model.received import ModelOutcome
from mcp_tasks_proto.testing.model.requester import RequesterModel
from mcp_tasks_proto.testing.model.server import ServerModel
from mcp_tasks_proto.testing.model.tasks import ModelCaller, ModelTask, Question
from mcp_tasks_proto.testing.model.watched import (
    Ended,
    SavedTask,
    Shown,
    Told,
    Viewed,
    WatchedTask,
    Withdrawn,
)

__all__ = [
    "SOME_TEXT",
    "Ended",
    "ErrorAnswer",
    "LegacyCaller",
    "LegacyRequesterModel",
    "LegacyServerModel",
    "ModelBounds",
    "ModelCaller",
    "ModelOutcome",
    "ModelTask",
    "PeerAnswer",
    "PutQuestion",
    "Question",
    "ReportAnswer",
    "RequesterModel",
    "ResultAnswer",
    "SavedTask",
    "ServerModel",
    "Shown",
    "Told",
    "Viewed",
    "WantedTask",
    "WatchedTask",
    "Withdrawn",
    "answer_fits",
    "difference",
    "is_no_end",
    "legacy_outcome",
    "legacy_view",
    "may_be_asked",
]
