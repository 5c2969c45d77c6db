"""Which tests look for a mutant: those that reach it, the likely ones first, and no more than it is given."""

from __future__ import annotations

from tests.mutants.choosing import Chooser, Reach, function_of, module_of

SECONDS = {"slow": 3.0, "quick": 0.1, "usual": 1.0, "elsewhere": 0.1}


def chooser(seconds: float = 60.0) -> Chooser:
    tests = {"package.one.x_f": ["slow", "quick", "usual"], "package.one.xǁAǁg": ["slow", "elsewhere"]}
    return Chooser(Reach(tests, SECONDS, [], "digest"), seconds)


def test_a_mutant_is_of_a_function_and_of_a_module() -> None:
    assert function_of("package.one.x_f__mutmut_12") == "package.one.x_f"
    assert function_of("package.__init__.x_f__mutmut_12") == "package.x_f"
    assert module_of("package.one.xǁAǁg__mutmut_1") == "package.one"


def test_what_nothing_reaches_has_no_tests() -> None:
    assert chooser().tests_for("package.two.x_f__mutmut_1") == []


def test_the_quick_ones_come_first() -> None:
    assert chooser().tests_for("package.one.x_f__mutmut_1") == ["quick", "usual", "slow"]


def test_a_mutant_gets_its_seconds_and_no_more() -> None:
    assert chooser(1.2).tests_for("package.one.x_f__mutmut_1") == ["quick", "usual"]


def test_a_mutant_gets_one_test_at_least() -> None:
    assert chooser(0.01).tests_for("package.one.x_f__mutmut_1") == ["quick"]


def test_what_has_found_a_neighbour_comes_first() -> None:
    one = chooser(3.0)
    one.note("package.one.x_f__mutmut_1", "slow")
    assert one.tests_for("package.one.x_f__mutmut_2") == ["slow"]
    one.note("package.one.x_f__mutmut_2", "usual")
    assert one.tests_for("package.one.x_f__mutmut_3") == ["usual"]


def test_what_has_found_something_in_the_module_comes_first_where_it_reaches() -> None:
    one = chooser()
    one.note("package.one.x_f__mutmut_1", "usual")
    one.note("package.one.x_f__mutmut_2", "slow")
    assert one.tests_for("package.one.xǁAǁg__mutmut_1") == ["slow", "elsewhere"]
