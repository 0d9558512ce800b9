"""Conditions that a source's decoder answers, so that the answer goes on and not the fields that nobody else reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.endpoints.files import Parquet, Table
from penstock.expr.nodes import Case, Expr, Literal
from penstock.expr.variant import bind
from penstock.expr.vectorized import is_vectorized
from penstock.patterns.choice import Choice
from penstock.patterns.filter import Filter
from penstock.patterns.node import FALSE, NOTHING, Paths, read_paths
from penstock.plan.plan import Entry, Stage
from penstock.schema import Path, Struct, project


@dataclass(frozen=True)
class Question:
    """What a step asks of the body as it came: a condition, or the number of the case that applies."""

    step: str
    expression: Expr
    reads: Paths


def decodes(entry: Entry) -> bool:
    """Typed columns come without a decoder."""
    return not isinstance(entry.source, (Parquet, Table))


def question(stage: Stage) -> Question | None:
    """The one question on which the step decides, if a decoder can answer it."""
    match stage.node:
        case Filter(predicate=predicate, missing=policy) if policy == FALSE:
            asked = predicate
        case Choice(cases=cases, missing=policy) if policy == FALSE:
            numbered = tuple((test, Literal(number)) for number, (_, test) in enumerate(cases))
            asked = Case(numbered, Literal(len(cases)))
        case _:
            return None
    schema = stage.scope.schema
    expression = bind(asked, schema)
    if not is_vectorized(expression, schema):
        return None
    return Question(stage.title, expression, read_paths((expression,)))


def worth_answering(questions: Iterable[Question], carried: Paths, schema: Struct) -> list[Question]:
    """The questions about fields that do not go on anyway, unless the answers are more than the fields they spare."""
    kept = set(leaves(part(schema, carried)))
    asked = [each for each in questions if not kept.issuperset(leaves(part(schema, each.reads)))]
    spared = set(leaves(part(schema, together(asked)))) - kept
    return asked if len(asked) <= len(spared) else []


def together(questions: Iterable[Question]) -> Paths:
    return NOTHING.union(*(each.reads for each in questions))


def part(schema: Struct, paths: Paths) -> Struct:
    """The part of a schema that is needed."""
    return schema if () in paths else project(schema, paths)


def leaves(schema: Struct, before: Path = ()) -> Iterator[Path]:
    for name, kind in schema.fields:
        if isinstance(kind, Struct):
            yield from leaves(kind, (*before, name))
        else:
            yield (*before, name)
