"""Traces: what is said to a server engine and what it says, as text that reads like documentation.

A trace is prose with a script in it. Lines that begin at the margin are prose. Indented lines are the script:
a time, who speaks, and what is said, on the next line as well after a backslash; ``>`` begins what the engine
says. ::

    Trap 1: an empty update runs nothing again

    UPD.3. Servers have taken an update without answers for a reason to run the tool once more.

        server   tool render optional
        +0       client   1 tools/call render {"frames": 3}
                          > start tool 1 render {"frames": 3}, may become a task
                 handler  1 becomes T
                          > reply 1 task T working made +0
                          > start work T
        +100     client   2 tasks/update T
                          > reply 2 complete

:func:`play` lives through the script and returns the text with the engine's lines as they really are: a trace
is right when that changes nothing. :mod:`mcp_tasks_proto.testing.traces.facts` lists what can be said, and
:mod:`mcp_tasks_proto.testing.traces.effects` how the engine's effects are told.
"""

from mcp_tasks_proto.testing.traces.player import play
from mcp_tasks_proto.testing.traces.words import TraceError

__all__ = ["TraceError", "play"]
