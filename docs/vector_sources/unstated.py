"""What no vector states, and why not: parts of rules, for each rule has vectors for the rest of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["UNSTATED"]

UNSTATED: Final[Mapping[str, str]] = {
    "LIFE.2": "work whose node is gone, and is run again elsewhere: processes are the host's affair",
    "LIFE.6": "that an id is random: one id shows its length and its characters, never how it was drawn",
    "CAN.6": "that work is stopped where it runs: what a tool does with being told is the tool's affair",
    "SUB.4": "keep-alive comments: when they are due is a matter of sockets and their timers",
    "HTTP.1": "where a server listens: an address is no message",
    "STD.1": "an end of input that ends the process, and what else is on stdout: these are of processes",
    "REQ.6": "what a saved reference looks like: it is read by who wrote it",
    "LEG.2": "streams that are taken up again: the events that a server keeps for that are its own choice",
    "PRX.4": "that a transport does not send anything twice: what was sent is known by the transport alone",
    "PRX.5": "what is in a sealed handle: it is read by who sealed it",
    "PRX.13": "encryption at rest: nobody sees it from outside",
    "HIS.4": "that deleted means gone from the disk: a store has to show that",
    "SEC.2": "logs, metrics and comparisons in constant time: nobody sees them from outside",
    "LIM.3": "slow and stalled peers: time-outs of sockets belong to whoever owns them",
}
"""By rule, and for which part of it."""
