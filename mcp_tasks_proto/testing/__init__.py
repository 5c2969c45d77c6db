"""Tools for testing the engines, and programs built on them. Pure, like the engines themselves."""

from mcp_tasks_proto.testing.client import Client
from mcp_tasks_proto.testing.host import ServerHost
from mcp_tasks_proto.testing.messages import request
from mcp_tasks_proto.testing.network import Crash, Fate, Network
from mcp_tasks_proto.testing.pair import Pair
from mcp_tasks_proto.testing.passages import Passage
from mcp_tasks_proto.testing.promises import Promises
from mcp_tasks_proto.testing.proxy_host import ProxyHost, ProxyStore
from mcp_tasks_proto.testing.recordings import Recorder, Replay, replay
from mcp_tasks_proto.testing.requester_host import RequesterHost
from mcp_tasks_proto.testing.store import DictStore

__all__ = [
    "Client",
    "Crash",
    "DictStore",
    "Fate",
    "Network",
    "Pair",
    "Passage",
    "Promises",
    "ProxyHost",
    "ProxyStore",
    "Recorder",
    "Replay",
    "RequesterHost",
    "ServerHost",
    "replay",
    "request",
]
