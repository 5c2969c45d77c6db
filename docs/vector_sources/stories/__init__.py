"""Conversations from the traces of ``tests/traces``: stories in plain text.

Their language is that of ``mcp_tasks_proto.testing.traces``. Each line is taken apart here, and put into the
words of the vectors; no engine is asked. A told time that is no time of the story, and every text of an
error, is another implementation's own affair: a placeholder stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from docs.vector_sources.making import Vector, conversation
from docs.vector_sources.origins import ORIGINS
from docs.vector_sources.stories.facts import FactReader
from docs.vector_sources.stories.outputs import OutputReader
from docs.vector_sources.stories.scene import UPSTREAM_HINT_MS, UPSTREAM_TTL_MS, Scene
from mcp_tasks_proto.testing.traces.words import LINE, TraceError, Words

__all__ = ["LEFT_OUT", "TRACES", "vectors"]

TRACES: Final = sorted((Path(__file__).parents[3] / "tests" / "traces").glob("*.txt"))

LEFT_OUT: Final[Mapping[str, str]] = {
    "shows store": "its store answers step by step, in an order that is the engine's own",
    " process ": "processes take one another's work over: that is the host's affair",
    " viewer ": "people look at the ledger: the vectors of HIS say the same of each step",
    " proxy    project": "which project a caller belongs to is the host's affair",
    " legacy\n": "an upstream of 2025-11-25 is asked in an order that is the engine's own",
    " proxy    bridges": "the same of a caller of 2025-11-25",
    " proxy    speaks": "the same of a caller of 2025-11-25",
    " server   speaks": "the same of a caller of 2025-11-25",
    " promotes ": "which process ran a call is the host's affair",
    " cuts ": "how a result that is too long is cut is the proxy's choice",
    "=?base64?": "who writes a server's id in Base64 has to know it: the functions of HTTP.2 say the same",
    " keyed\n": "API keys matter to the ledger alone",
}
"""Traces with these words are no vectors, for this reason."""

TOLD: Final = re.compile(r"\s+> (?P<told>.*)")
PROSE: Final = re.compile(r"(?:[A-Z]+\.\d+(?:, |\. ))+")
RULE: Final = re.compile(r"[A-Z]+\.\d+")
PROXY: Final = re.compile(r"(?m)^\s+proxy\s")
LIMIT: Final = re.compile(r"(?m)^\s+server +(ttl_ms|poll_interval_ms) +(\d+)")
SERVERS: Final[Mapping[str, int]] = {"ttl_ms": 3_600_000, "poll_interval_ms": 1000}
"""What a server's tasks say of their lifetime and poll hint, where a story does not say it."""


def vectors() -> list[Vector]:
    """Return the conversation of each trace that can be one.

    Raises ``ValueError`` for one that cannot, and that ``LEFT_OUT`` gives no reason for.
    """
    found = []
    for path in TRACES:
        text = path.read_text(encoding="utf-8")
        if any(words in text for words in LEFT_OUT):
            continue
        try:
            found.append(_Story(text).vector(path.stem))
        except (TraceError, LookupError) as problem:
            raise ValueError(f"{path.name} is no vector, and LEFT_OUT does not say why: {problem}") from None
    return found


@define(eq=False)
class _Story:
    """One trace, as it becomes a conversation."""

    text: str
    _setup: dict[str, Any] = field(init=False)
    _steps: list[dict[str, Any]] = field(init=False, factory=list)
    _scene: Scene = field(init=False)
    _now: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        proxy = PROXY.search(self.text) is not None
        if proxy:
            self._setup = {"readers": "slow"}
            usual = {"ttl_ms": UPSTREAM_TTL_MS, "poll_interval_ms": UPSTREAM_HINT_MS}
        else:
            usual = {**SERVERS, **{name: int(value) for name, value in LIMIT.findall(self.text)}}
            self._setup = {"readers": "slow", "limits": dict(usual)}
        self._scene = Scene(proxy=proxy, **usual)

    def vector(self, name: str) -> Vector:
        """Return the conversation."""
        title, _, why, *lines = self.text.splitlines()
        prose = PROSE.match(why)
        rules = RULE.findall(prose[0] if prose else "")
        facts, outputs = FactReader(self._scene), OutputReader(self._scene)
        unfinished = ""
        for line in lines:
            if not line.startswith(" ") or not line.strip():
                continue
            if told := TOLD.fullmatch(line):
                expect = outputs.read(Words(told["told"]), told["told"])
                if expect is not None:
                    self._steps[-1]["expect"].append(expect)
            elif line.endswith("\\"):
                unfinished += line.removesuffix("\\")
            else:
                self._take(unfinished + line, facts)
                unfinished = ""
        return conversation(
            "proxy" if self._scene.proxy else "server",
            f"{rules[0]}/trace/{name}",
            title,
            self._steps,
            rules=" ".join(rules),
            source=ORIGINS[rules[0]],
            setup=self._setup,
        )

    def _take(self, line: str, facts: FactReader) -> None:
        """Take in a line that says how things are, or what happens."""
        match = LINE.fullmatch(line)
        if match is None:
            raise TraceError("a line of the script is: time, if it moves on; who; what")
        words = Words(match["words"])
        if match["speaker"] in ("server", "proxy"):
            return self._set_up(words)
        step: dict[str, Any] = {}
        if match["time"] is not None and int(match["time"]) != self._now:
            self._now = step["at_ms"] = int(match["time"])
            self._scene.times.add(self._now)
        self._steps.append({**step, "given": facts.read(match["speaker"], words), "expect": []})
        return None

    def _set_up(self, words: Words) -> None:
        match words.word("what"):
            case "tool":
                tool = {"name": words.word("its name"), "task": words.word("support")}
                self._setup.setdefault("tools", []).append(tool)
            case "method":
                self._setup.setdefault("methods", []).append(words.word("its name"))
            case "visibility":
                self._setup["input_visibility"] = words.word("which")
            case "before":
                name, tools = words.word("its name"), words.plain("without")
                upstream = {"name": name, "tools": tools, "tasks": not words.follows("without")}
                self._setup.setdefault("upstreams", []).append(upstream)
            case "collapses":
                self._setup["collapse"] = True
            case "profile":
                self._setup["task_tools"] = words.plain()
            case "gate":
                self._setup["gate_open"] = False
            case "keeps":
                self._setup["cached_methods"] = words.plain()
            case limit:
                self._setup.setdefault("limits", {})[limit] = words.integer("the limit")
