"""What is counted, what is excluded, and that the records can be read; mutmut itself is not needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants.__main__ import RECORDS, chosen_modules, existing_tests, record_path, write_record
from tests.mutants.record import (
    NOT_JUSTIFIED,
    Mutant,
    again,
    excluded,
    mutants,
    parsed,
    reasons,
    recorded,
    rendered,
)
from tests.mutants.workspace import REPOSITORY, prepare, undecorated

GUARDED = """
def function(age):
    if age < 0:
        raise ValueError(f"{age} is no age", age)
    return cast(int, age)
"""


@pytest.mark.parametrize(
    ("before", "after", "out"),
    [
        ("is no age", "XXis no ageXX", True),
        ('f"{age} is no age"', "None", True),
        ("cast(int, age)", "cast(None, age)", True),
        ("cast(int, age)", "cast(int, None)", False),
        ("age < 0", "age <= 0", False),
        ('f"{age} is no age", age', "age", False),
        ('f"{age} is no age", age', 'f"{age} is no age", None', False),
        ("age < 0", "age < 0", False),
    ],
)
def test_what_only_people_read_is_excluded(before: str, after: str, out: bool) -> None:
    assert before in GUARDED
    assert excluded(GUARDED, GUARDED.replace(before, after)) is out


def test_a_text_without_a_space_counts() -> None:
    """It may be a word of the protocol."""
    assert not excluded("def function(): return 'taskId'", "def function(): return 'TASKID'")


def test_a_word_beside_a_text_counts() -> None:
    before = "def function(): return f('taskId', 'is not there')"
    assert not excluded(before, before.replace("taskId", "x").replace("not", "NOT"))


DECORATED = '''
class Person:
    age: int = field()

    @property
    def old(self):
        """Whether they are."""
        return self.age > 90

    @age.validator
    def _check(self, attribute, value):
        if value < 0:
            raise ValueError

    @classmethod
    def born(cls):
        return cls(0)

@cache
@checked(
    "twice",
)
def one():
    return 1

'''


def test_decorators_are_applied_after_the_function() -> None:
    lines = undecorated(DECORATED).splitlines()
    assert lines[lines.index("        return self.age > 90") + 1] == "    old = property(old)"
    assert lines[lines.index("            raise ValueError") + 1] == "    _check = age.validator(_check)"
    assert lines[lines.index("    def born(cls):") - 1] == "    @classmethod"
    assert lines[lines.index("    return 1") + 1] == "one = cache(checked('twice')(one))"
    assert sum("@" in line for line in lines) == 1


def test_all_of_the_core_can_be_read_without_decorators() -> None:
    for module in chosen_modules([]):
        compile(undecorated((REPOSITORY / module).read_text()), module, "exec")


MUTATED = """
def x_one__mutmut_orig(n):
    return n + 1

def x_one__mutmut_1(n):
    return n - 1

def x_one__mutmut_2(n):
    return n + 2

class Two:
    def xǁTwoǁhalf__mutmut_orig(self):
        return one(1 if self else 0)

    def xǁTwoǁhalf__mutmut_1(self):
        return one(2 if self else 0)

    def xǁTwoǁhalf__mutmut_2(self):
        return one(1 if self else 1)
"""


@pytest.fixture
def mutated(tmp_path: Path) -> Path:
    """What mutmut leaves: one mutant was found, one survived, one met its time limit, one was not run."""
    lines = MUTATED.splitlines()
    spans, codes = {}, {}
    for number, line in enumerate(lines, 1):
        name = line.strip().removeprefix("def ").partition("(")[0]
        if "__mutmut_" in name:
            spans[name] = [number, number + 1]
            codes[f"package.module.{name}"] = 0
    outcomes = {"x_one__mutmut_1": 1, "x_one__mutmut_2": 0, "xǁTwoǁhalf__mutmut_1": -24}
    exit_codes = {
        key: outcomes.get(key.rpartition(".")[2]) for key in codes if not key.endswith("__mutmut_orig")
    }
    path = tmp_path / "module.py"
    path.write_text(MUTATED)
    path.with_suffix(".py.spans").write_text(json.dumps({"version": 1, "spans": spans}))
    path.with_suffix(".py.meta").write_text(json.dumps({"exit_code_by_key": exit_codes, "other": 7}))
    return path


def verdicts(found: list[Mutant]) -> list[tuple[str, str]]:
    return [(mutant.function, mutant.verdict) for mutant in found]


def test_verdicts_are_read_from_what_mutmut_keeps(mutated: Path) -> None:
    found = mutants(mutated)
    assert verdicts(found) == [
        ("one", "killed"),
        ("one", "survived"),
        ("Two.half", "timed out"),
        ("Two.half", "not run"),
    ]
    assert found[1].change == ("- return n + 1", "+ return n + 2")


def test_a_module_that_the_last_run_was_not_about_has_none(mutated: Path) -> None:
    """Its verdicts are kept, and its copy is as it is."""
    mutated.write_text("def one(n):\n    return n + 1\n")
    assert mutants(mutated) == []


def test_only_what_a_test_has_found_is_kept_from_one_run_to_the_next(mutated: Path) -> None:
    again(mutated)
    assert [verdict for _, verdict in verdicts(mutants(mutated))] == ["killed", *["not run"] * 3]
    assert json.loads(mutated.with_suffix(".py.meta").read_text())["other"] == 7


def test_a_record_says_what_it_was_made_of(mutated: Path, tmp_path: Path) -> None:
    record = recorded("package/module.py", "c0ffee", "tests/unit", mutants(mutated), {})
    assert (record.judged, record.percent_killed) == (4, 50.0)
    assert record.survivors == (("one\n- return n + 1\n+ return n + 2", NOT_JUSTIFIED),)
    assert not record.justified
    assert parsed(rendered(record)) == record
    path = tmp_path / "record.txt"
    assert reasons(path) == {}
    path.write_text(rendered(record).replace(NOT_JUSTIFIED, "for a long reason " * 12))
    because = reasons(path)
    assert because == {"one\n- return n + 1\n+ return n + 2": ("for a long reason " * 12).strip()}
    later = recorded("package/module.py", "c0ffee", "tests/unit", mutants(mutated)[:3], because)
    assert later.justified
    assert parsed(rendered(later)) == later


def test_a_text_that_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="a record without commit, found, mutants, tests"):
        parsed("module     one\n")


def test_the_workspace_has_the_modules_and_says_which_are_mutated(tmp_path: Path) -> None:
    module = "mcp_tasks_proto/records.py"
    workspace = tmp_path / "workspace"
    prepare([module], workspace)
    assert "outstanding = property(outstanding)" in (workspace / module).read_text()
    other = "mcp_tasks_proto/lifecycle.py"
    assert (workspace / other).read_text() == (REPOSITORY / other).read_text()
    assert f'only_mutate = ["{module}"]' in (workspace / "pyproject.toml").read_text()
    assert (workspace / "tests" / "mutants").is_dir()


def test_a_module_that_was_copied_as_it_is_will_be_mutated(tmp_path: Path) -> None:
    done, copied = "mcp_tasks_proto/lifecycle.py", "mcp_tasks_proto/records.py"
    texts = {done: "def x_transition__mutmut_orig(): ...", copied: "def transition(): ..."}
    for module, text in texts.items():
        path = tmp_path / "mutants" / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    prepare([done, copied], tmp_path)
    assert (tmp_path / "mutants" / done).exists()
    assert not (tmp_path / "mutants" / copied).exists()


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match="no mcp_tasks_proto/nothing"):
        chosen_modules(["mcp_tasks_proto/nothing"])


@pytest.mark.parametrize("name", ["README.md", "adapters", "tests/mutants", "mcp_tasks_proto/py.typed"])
def test_what_has_no_module_of_the_core_is_named(name: str) -> None:
    with pytest.raises(SystemExit, match=f"{name} has no module of mcp_tasks_proto"):
        chosen_modules([name])


def test_tests_that_are_not_there_are_named() -> None:
    assert existing_tests(["tests/unit", "tests/unit/test_timers.py::test_one"])
    with pytest.raises(SystemExit, match=r"no tests/unit/test_timer\.py"):
        existing_tests(["tests/unit/test_timer.py"])


def test_without_mutmut_it_is_said_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="`make mutants` installs it"):
        command.mutate(["mcp_tasks_proto/timers.py"], ["tests/unit"], 1, 20.0, 1024)


def test_a_record_outlives_a_run_that_was_interrupted(
    mutated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reasons in it are nowhere else."""
    path, found = tmp_path / "record.txt", mutants(mutated)
    assert not write_record("package/module.py", ["tests/unit"], found[:3], path)
    kept = path.read_text().replace(NOT_JUSTIFIED, "nobody can see it")
    path.write_text(kept)
    again(mutated)
    assert not write_record("package/module.py", ["tests/unit"], mutants(mutated), path)
    assert path.read_text() == kept
    assert "record.txt, stays as it was" in capsys.readouterr().out
    assert write_record("package/module.py", ["tests/unit"], found[:3], path)
    assert reasons(path) == {"one\n- return n + 1\n+ return n + 2": "nobody can see it"}


def test_verdicts_that_were_cut_off_are_made_anew(tmp_path: Path) -> None:
    module = "mcp_tasks_proto/lifecycle.py"
    path = tmp_path / "mutants" / module
    path.parent.mkdir(parents=True)
    path.write_text("def x_transition__mutmut_orig(): ...")
    path.with_suffix(".py.meta").write_text('{"exit_code_by_key": {"a"')
    prepare([module], tmp_path)
    assert not path.exists()
    assert not path.with_suffix(".py.meta").exists()


def records() -> list[Path]:
    return sorted(RECORDS.glob("*.txt"))


@pytest.mark.parametrize("path", records(), ids=lambda path: path.stem)
def test_each_record_is_of_a_module_and_has_a_reason_for_each_survivor(path: Path) -> None:
    record = parsed(path.read_text())
    assert (REPOSITORY / record.module).exists()
    assert record_path(record.module) == path
    assert record.justified


def test_each_module_that_runs_in_production_and_has_functions_has_a_record() -> None:
    modules = [module for module in chosen_modules([]) if "def " in (REPOSITORY / module).read_text()]
    assert [module for module in modules if not record_path(module).exists()] == []


def test_at_least_95_percent_of_all_that_were_made_are_found() -> None:
    done = [parsed(path.read_text()) for path in records()]
    judged = sum(record.judged for record in done)
    assert sum(record.percent_killed * record.judged for record in done) / judged >= 95
