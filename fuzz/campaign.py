"""One target fuzzed for a while, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from signal import SIGKILL
from time import monotonic
from typing import Final, TextIO

from attrs import define, field, frozen

from fuzz.findings import Finding, examine
from fuzz.paths import DICTIONARY, PROJECT, SEEDS, WORK, shown
from fuzz.revision import commit_now
from fuzz.targets import load

__all__ = ["Campaign", "Progress"]

LONGEST_INPUT: Final = 4096
INPUT_SECONDS: Final = 60
"""After which an input counts as one that does not end; machines may be busy."""
MEMORY_MB: Final = 2048
BEGINNING_SECONDS: Final = 300
"""How long a worker may take to begin; it takes a few seconds where the machine has nothing else to do."""
PATIENCE_SECONDS: Final = 30
"""How long after its time it may go on by itself; then it is told to end."""
ENDING_SECONDS: Final = 120
"""How long it may take to end once it was told to."""

_PROGRESS: Final = re.compile(r"cov: (?P<edges>\d+) .*?corp: (?P<corpus>\d+)/")


@frozen(kw_only=True)
class Progress:
    """How far a campaign has come."""

    executions: int
    executions_per_second: int
    edges: int
    """Transitions between lines of code that have been seen."""
    corpus: int
    """Inputs kept, because each reached something new."""
    seconds: float


@define(eq=False)
class Campaign:
    """Begins when it is made; :meth:`look` tells how it goes, and ends it when it is over.

    Raises ``OSError`` where it cannot begin: what it leaves behind has to be written somewhere.
    """

    target: str
    seconds: int
    luck: int = 0
    """What its choices are drawn from, for the same ones in each run; 0: others each time."""
    from_seeds: bool = False
    """Whether it begins without what earlier campaigns have kept; what it keeps itself is for later ones."""
    commit: str = field(init=False, factory=commit_now)
    """What is fuzzed, whatever is there by the end."""
    progress: Progress = field(init=False)
    over: bool = field(init=False, default=False)
    cpu_seconds: float = field(init=False, default=0.0)
    """What it has cost; known when it is over."""
    finding: tuple[Path, Finding] | None = field(init=False, default=None)
    """The input that ended it, and what that shows."""
    trouble: str | None = field(init=False, default=None)
    """Why it ended, where that is neither its time nor an input."""
    _folder: Path = field(init=False)
    _process: subprocess.Popen[bytes] = field(init=False)
    _began: float = field(init=False, factory=monotonic)
    _log: TextIO = field(init=False)
    _left_before: frozenset[Path] = field(init=False)
    """What earlier campaigns have left."""
    _stopped: bool = field(init=False, default=False)
    _begun: float | None = field(init=False, default=None)
    """After how many seconds it was ready to fuzz."""

    def __attrs_post_init__(self) -> None:
        self._folder = WORK / self.target
        corpus, anew, log = (self._folder / name for name in ("corpus", "corpus-from-seeds", "log"))
        if self.from_seeds and anew.exists():
            rmtree(anew)
        for folder in (corpus, anew, self._findings):
            folder.mkdir(parents=True, exist_ok=True)
        # What is new is kept in the first folder.
        inputs = [anew] if self.from_seeds else [corpus, anew]
        self._left_before = frozenset(self._findings.iterdir())
        self._counter.write_bytes(bytes(8))
        self.progress = Progress(executions=0, executions_per_second=0, edges=0, corpus=0, seconds=0.0)
        flags = [
            *(str(folder) for folder in (*inputs, SEEDS / self.target)),
            f"-dict={DICTIONARY}",
            f"-max_total_time={self.seconds}",
            f"-seed={self.luck}",
            f"-max_len={LONGEST_INPUT}",
            f"-timeout={INPUT_SECONDS}",
            f"-report_slow_units={INPUT_SECONDS}",
            f"-rss_limit_mb={MEMORY_MB}",
            f"-artifact_prefix={self._findings}/",
        ]
        command = [sys.executable, "-m", "fuzz.worker", self.target, str(self._counter), *flags]
        with log.open("wb") as said:
            self._process = subprocess.Popen(
                command,
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONHASHSEED": str(self.luck) if self.luck else "random"},
            )
        self._log = log.open(encoding="utf-8", errors="replace")

    @property
    def _counter(self) -> Path:
        return self._folder / "executions"

    @property
    def _findings(self) -> Path:
        return self._folder / "findings"

    def look(self) -> None:
        """Bring :attr:`progress` up to date, and note whether it is over."""
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        self.progress = self._read_progress()
        if pid:
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
            self._end()
            return
        if self.progress.edges and self._begun is None:
            self._begun = self.progress.seconds
        end = BEGINNING_SECONDS if self._begun is None else self._begun + self.seconds + PATIENCE_SECONDS
        if self.progress.seconds > end + ENDING_SECONDS:
            self._process.kill()
        elif self.progress.seconds > end and not self._stopped:
            self.stop()

    def _read_progress(self) -> Progress:
        edges, corpus = self.progress.edges, self.progress.corpus
        for match in _PROGRESS.finditer(self._log.read()):
            edges, corpus = int(match["edges"]), int(match["corpus"])
        executions = int.from_bytes(self._counter.read_bytes(), sys.byteorder)
        seconds = monotonic() - self._began
        since = max(seconds - self.progress.seconds, 0.001)
        speed = round((executions - self.progress.executions) / since)
        return Progress(
            executions=executions, executions_per_second=speed, edges=edges, corpus=corpus, seconds=seconds
        )

    def stop(self) -> None:
        """Have it end before its time."""
        self._stopped = True
        self._process.terminate()

    def _end(self) -> None:
        self.over = True
        self._log.close()
        left = set(self._findings.iterdir()) - self._left_before
        code = self._process.returncode
        if left:
            path = left.pop()
            self.finding = path, self._examine(path)
        elif self._stopped and code == -SIGKILL:
            self.trouble = "its process did not end, and was killed"
        elif not self.progress.edges:
            self.trouble = f"its process did not begin: see {shown(self._folder / 'log')}"
        elif code and not self._stopped:
            self.trouble = f"its process ended with {code}: see {shown(self._folder / 'log')}"

    def _examine(self, path: Path) -> Finding:
        """Look at an input once more, here: what takes too long or too much memory is not tried again."""
        kind = path.name.partition("-")[0]
        if kind != "crash":
            return Finding(f"{kind}: see {shown(self._folder / 'log')}", "nowhere in particular", "")
        again = examine(load(self.target), path.read_bytes())
        return again or Finding(f"not to be seen again: {shown(self._folder / 'log')}", "another process", "")
