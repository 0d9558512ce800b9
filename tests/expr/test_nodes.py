from __future__ import annotations

from penstock.expr.nodes import Compare, Field, In, Literal, Lookup


def test_one_and_true_are_different_literals() -> None:
    assert len({Literal(1), Literal(1.0), Literal(True), Literal(1)}) == 3
    assert In(Field(("a",)), (1,)) != In(Field(("a",)), (True,))
    assert Lookup(Field(("a",)), ((1, 2),)) != Lookup(Field(("a",)), ((1, 2.0),))
    assert len({Lookup(Field(("a",)), ((1, 2),)), Lookup(Field(("a",)), ((1, 2),))}) == 1


def test_walk_visits_every_node() -> None:
    tree = Compare("<", Field(("a",)), Literal(1))
    assert list(tree.walk()) == [tree, Field(("a",)), Literal(1)]
