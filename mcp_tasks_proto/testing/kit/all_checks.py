"""All checks, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcp_tasks_proto.testing.kit import (
    asked,
    heads,
    legacy,
    life,
    lifetime,
    listening,
    messages,
    negotiation,
    operations,
)
from mcp_tasks_proto.testing.kit.checks import Check

__all__ = ["CHECKS", "NOT_CHECKED", "WATCHES"]

WATCHES: Final[tuple[Check, ...]] = (
    *messages.WATCHES,
    *negotiation.WATCHES,
    *life.WATCHES,
    *asked.WATCHES,
    *lifetime.WATCHES,
    *listening.WATCHES,
    *heads.WATCHES,
)
"""Those that look at everything that was said for the others, and so come last."""

CHECKS: Final[tuple[Check, ...]] = (
    *messages.CHECKS,
    *negotiation.CHECKS,
    *life.CHECKS,
    *operations.CHECKS,
    *asked.CHECKS,
    *lifetime.CHECKS,
    *listening.CHECKS,
    *heads.CHECKS,
    *legacy.CHECKS,
    *WATCHES,
)
"""Every check there is."""

NOT_CHECKED: Final[Mapping[str, str]] = {
    "TTL.2": "a bound shows only to who fills the server up, which the kit does not",
    "TTL.3": "the kit cannot make a host change a lifetime",
    "LEG.10": "a server makes tasks at its client when it wants to; no request asks for one",
    "SEC.2": "logs are not seen from outside",
    "LIM.3": "a bound shows only to who fills the server up, which the kit does not",
}
"""Rules about servers for which there is no check, and why."""
