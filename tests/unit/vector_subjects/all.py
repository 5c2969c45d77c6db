"""Every function and every role, by the names that the vectors have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from docs.vectors.runner import Subject
from tests.unit.vector_subjects import core, http, proxying
from tests.unit.vector_subjects.proxy import ProxySubject
from tests.unit.vector_subjects.receiver import ReceiverSubject
from tests.unit.vector_subjects.requester import RequesterSubject
from tests.unit.vector_subjects.server import ServerSubject

__all__ = ["FUNCTIONS", "ROLES"]

FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **core.FUNCTIONS,
    **http.FUNCTIONS,
    **proxying.FUNCTIONS,
}
ROLES: Final[Mapping[str, Callable[[Mapping[str, Any]], Subject]]] = {
    "server": ServerSubject,
    "proxy": ProxySubject,
    "requester": RequesterSubject,
    "receiver": ReceiverSubject,
}
