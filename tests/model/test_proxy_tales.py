"""Whatever story is told of it, the proxy engine is of one mind with the reference model."""

from __future__ import annotations

import pytest

from tests.model.proxy_tales import TALES, tell


@pytest.mark.parametrize("name", TALES)
def test_prx_the_engine_as_it_is_tells_every_story(name: str) -> None:
    tale, facts = TALES[name]
    tell(tale, **facts)
