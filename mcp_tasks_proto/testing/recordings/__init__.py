"""Recordings: what an engine was told and what it said, as JSON lines, to be lived through again.

A golden trace (:mod:`mcp_tasks_proto.testing.traces`) is written by a person, to be read. A recording is made
by a program that runs, to find out what happened: on a fault in production, or with another version of this
package::

    lines = []
    engine = Recorder(ServerEngine(settings=settings, tools=tools), lines.append)
    ...                                        # engine.handle(...), as ever
    assert replay(lines).same

The first line says how the engine was made, each other line what it was told, when, and what came of it::

    {"recording": 1, "library": "0.1.0", "role": "server", "era": "modern", "engine": {"$type": ...}}
    {"now": 1700000000000, "input": {"$type": "TimePassed"}, "effects": [...], "deadline": null}

An engine does the same on the same inputs, for time, randomness and the store are among them; what keys do,
which are not in a recording, is under ``"keys"``. Where it raised, the line has ``"raised"`` and ``"text"``
in place of ``"effects"`` and ``"deadline"``. A line with ``"end"`` is the last one. How values are written is
in :mod:`mcp_tasks_proto.testing.recordings.values`.

Nothing here touches a file: lines go out, and come in, one by one.
"""

from mcp_tasks_proto.testing.recordings.differences import Difference, Kind, Member, Part
from mcp_tasks_proto.testing.recordings.recorder import LINE_BYTES, Recorder, Take, end_line
from mcp_tasks_proto.testing.recordings.replayer import DIFFERENCES, Replay, Unreadable, replay
from mcp_tasks_proto.testing.recordings.values import UnwritableError

__all__ = [
    "DIFFERENCES",
    "LINE_BYTES",
    "Difference",
    "Kind",
    "Member",
    "Part",
    "Recorder",
    "Replay",
    "Take",
    "Unreadable",
    "UnwritableError",
    "end_line",
    "replay",
]
