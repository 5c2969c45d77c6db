"""The ledger of a proxy: what became of the tasks of a project, and who may know (HIS).

Pure functions of the ledger, the viewer and the time: ``ledger`` makes and changes entries, ``access``
decides, ``controls`` makes requests of what is allowed, ``views`` shows, and ``retention`` says when it is
over. A store keeps the entries.
"""

from mcp_tasks_proto.history.access import (
    AccessDecision,
    AccessReason,
    Action,
    Viewer,
    decide_access,
    decide_project,
)
from mcp_tasks_proto.history.controls import control_request
from mcp_tasks_proto.history.entries import TaskEntry, TimelineEvent, entry_from_json, entry_to_json
from mcp_tasks_proto.history.ledger import (
    Observation,
    assign,
    count_polls,
    observe,
    opened,
    repeats,
)
from mcp_tasks_proto.history.retention import (
    DAY_MS,
    LONGEST_METADATA_MS,
    LONGEST_PAYLOAD_MS,
    Retention,
    of_project,
    outlived,
)
from mcp_tasks_proto.history.views import (
    LABELS,
    Assigned,
    Place,
    ProjectPage,
    ProjectView,
    place_of,
    project_list,
    project_page,
    task_page,
)

__all__ = [
    "DAY_MS",
    "LABELS",
    "LONGEST_METADATA_MS",
    "LONGEST_PAYLOAD_MS",
    "AccessDecision",
    "AccessReason",
    "Action",
    "Assigned",
    "Observation",
    "Place",
    "ProjectPage",
    "ProjectView",
    "Retention",
    "TaskEntry",
    "TimelineEvent",
    "Viewer",
    "assign",
    "control_request",
    "count_polls",
    "decide_access",
    "decide_project",
    "entry_from_json",
    "entry_to_json",
    "observe",
    "of_project",
    "opened",
    "outlived",
    "place_of",
    "project_list",
    "project_page",
    "repeats",
    "task_page",
]
