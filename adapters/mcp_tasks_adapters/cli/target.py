"""From a TARGET on the command line to the server object that it names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

from mcp_tasks_adapters.toolkit import Server

__all__ = ["TargetError", "load_server"]

FORMS = "package.module:attr or path/to/file.py:attr"


class TargetError(Exception):
    """TARGET names no server; the message says why and what to do.

    ``author_traceback`` is where the author's own code failed, when that is what went wrong.
    """

    def __init__(self, message: str, author_traceback: str = "") -> None:
        super().__init__(message)
        self.author_traceback = author_traceback


def load_server(target: str) -> Server:
    """Import what ``target`` names and return the server. Raises :class:`TargetError`."""
    place, colon, attribute = target.rpartition(":")
    if not colon or not place or not attribute.isidentifier():
        raise TargetError(f"{target!r} is not of the form {FORMS}.")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    try:
        found = getattr(module, attribute)
    except AttributeError:
        raise TargetError(f"{place} has no attribute {attribute!r}.{_hint(place, module)}") from None
    if not isinstance(found, Server):
        kind = type(found).__name__
        raise TargetError(
            f"{target} is a {kind}, not a Server of mcp_tasks_adapters.toolkit.{_hint(place, module)}"
        )
    return found


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module of its own name, with its folder importable, as ``python file.py`` would."""
    if not path.is_file():
        raise TargetError(f"There is no file {path}.")
    sys.path.insert(0, str(path.parent.resolve()))
    name = path.stem if path.stem not in sys.modules else f"served_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} cannot be read as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _author_failed(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    """Import a module by name, from the current folder too."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise TargetError(f"{name!r} is not the name of a module; for a file, end it in .py ({FORMS}).")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise TargetError(f"There is no module {error.name} here or among the installed ones.") from None
        raise _author_failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _author_failed(name, error) from error


def _author_failed(place: str, error: BaseException) -> TargetError:
    trace = _after_import(error.__traceback__)
    lines = traceback.format_exception(type(error), error, trace)
    return TargetError(f"{place} could not be imported: {type(error).__name__}: {error}", "".join(lines))


def _after_import(trace: TracebackType | None) -> TracebackType | None:
    """Skip the frames of this module and of the import system: the rest is the author's."""
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if filename not in {__file__, importlib.__file__} and not filename.startswith("<frozen importlib"):
            return trace
        trace = trace.tb_next
    return None


def _hint(place: str, module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Server)]
    return f" Did you mean {' or '.join(f'{place}:{name}' for name in names)}?" if names else ""
