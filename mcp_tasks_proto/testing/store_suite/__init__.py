"""Does a store keep its promises? Checks for whoever writes one.

A check takes a way to ask the store and raises :class:`BrokenPromise` when an answer is wrong. With pytest::

    @pytest.mark.parametrize("check", STORE_CHECKS, ids=str)
    def test_keeps_its_promises(check):
        with my_empty_store() as store:
            check(store.ask)

``ask`` takes a list of effects, puts them to the store without waiting in between, and returns the list of
their answers, in the order of the effects (:data:`Ask`). Each check wants a store that is empty. The rules
that a broken promise names are those of ``mcp_tasks_adapters/stores/contract.md``.

A store that several nodes share has :data:`NODE_CHECKS` to meet as well; each wants a :class:`Nodes`.
:func:`compare` runs a store beside the obvious one, on any effects you like: made by hypothesis, for example.
"""

from mcp_tasks_proto.testing.store_suite.asking import Ask, BrokenPromise, Check, Nodes, StoreEffect, compare
from mcp_tasks_proto.testing.store_suite.many_nodes import NODE_CHECKS
from mcp_tasks_proto.testing.store_suite.one_node import STORE_CHECKS

__all__ = [
    "NODE_CHECKS",
    "STORE_CHECKS",
    "Ask",
    "BrokenPromise",
    "Check",
    "Nodes",
    "StoreEffect",
    "compare",
]
