"""What servers can have wrong, and the check of the kit that has to see it: at least one fault for each."""

from __future__ import annotations

from typing import Final

from tests.unit.kit_faults import legacy, messages, tasks
from tests.unit.kit_faults.ways import Planted

__all__ = ["ALL"]

ALL: Final[tuple[Planted, ...]] = (*messages.plant.planted, *tasks.plant.planted, *legacy.plant.planted)
