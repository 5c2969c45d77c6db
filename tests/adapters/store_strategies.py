"""Any sequence of effects, for hypothesis to put to a store."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from mcp_tasks_adapters.storing import StoreEffect

from mcp_tasks_proto.effects import Delete, FindExpired, ListTasks, Load, Quota, Save
from tests.adapters.store_harness import NOW, record

_ids = st.sampled_from(["a", "b", "c", "d"])
_versions = st.integers(1, 3)
_quotas = st.none() | st.builds(
    Quota,
    tasks=st.integers(1, 4),
    tasks_per_principal=st.integers(1, 3),
    task_bytes=st.integers(1, 60),
)
_PRINCIPALS: Final = {"a": None, "b": "ann", "c": None, "d": "ann"}
"""A record keeps its owner for life."""
_records = st.builds(
    lambda task_id, **changes: record(task_id, principal=_PRINCIPALS[task_id], **changes),
    _ids,
    version=_versions,
    ttl_ms=st.sampled_from([None, 1, 2, 5, 5]),
    payload_bytes=st.integers(0, 30),
)
_token = st.just("token")

effect_lists: st.SearchStrategy[list[StoreEffect]] = st.lists(
    st.one_of(
        st.builds(Save, _records, st.none(), _token, _quotas),
        st.builds(Save, _records, _versions, _token, _quotas),
        st.builds(Load, _ids, _token),
        st.builds(Delete, _ids, _versions, _token),
        st.builds(FindExpired, st.integers(NOW, NOW + 6), st.integers(1, 3), _token),
        st.builds(
            ListTasks,
            principal=st.sampled_from(["ann", "bob"]),
            after=st.none() | _ids,
            limit=st.integers(1, 3),
            token=_token,
        ),
    ),
    max_size=30,
)
