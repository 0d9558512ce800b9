"""The signature of all functions that run a pattern over a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from penstock.kernel.asked import Answers
from penstock.kernel.block import Block
from penstock.kernel.outcome import Outcome
from penstock.patterns.node import Node

Work: TypeAlias = Callable[[Any, Block, Answers], Outcome]
"""Takes the node, the messages that came, and the values of its expressions; `Answers.stage` is its place."""

Works: TypeAlias = dict[type[Node], Work]
"""Which function runs which pattern."""
