"""Choose, by the strategy of an aggregator, what makes one body of the members of a group."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from penstock.expr.types import type_of
from penstock.formats.arrow import arrow_type
from penstock.kernel.state.assembly import Assembly, Calling, Collecting, Folding, Partial, Result, Uniting
from penstock.kernel.state.reduce import FIRST, LAST, MAX, MIN, SUM, rough
from penstock.kernel.state.rows import fold_column
from penstock.patterns.aggregate import REOPEN, Aggregate
from penstock.patterns.strategy import Collect, Custom, Fold, Latest, Union
from penstock.plan.plan import Stage
from penstock.schema import DOUBLE, INTEGER, DecimalType, Struct, Type

_OPERATIONS = {"sum": SUM, "min": MIN, "max": MAX, "first": FIRST, "last": LAST}


def assembly_of(node: Aggregate, stage: Stage, value: pa.Field, after: pa.Field) -> Assembly:
    """The assembly of a strategy. `value` is the column of the members' bodies, `after` that of the groups' bodies."""
    match node.strategy:
        case Collect(into, of, head, tail):
            return Collecting(value, after, into, of, tuple(head), tuple(tail))
        case Union():
            return Uniting(value, after, False)
        case Latest():
            return Uniting(value, after, True)
        case Custom(function):
            return Calling(value, after, function, pa.schema(list(arrow_type(stage.after.schema))))
    assert isinstance(node.strategy, Fold)
    folding = Folding(after, *_folds(node.strategy, dict(stage.after.schema.fields), stage.scope.schema))
    # What died with the bytes that came is read again from them; any other body has to be there itself.
    needed = not stage.scope.raw and (folding.may_fail or node.closed != REOPEN)
    return replace(folding, value=value) if needed else folding


def buries(assembly: Assembly) -> bool:
    """Whether putting a group together may fail, so that all its members become dead letters."""
    return isinstance(assembly, Calling) or (isinstance(assembly, Folding) and assembly.may_fail)


def _total(kind: Type) -> pa.DataType:
    """The type of a running sum: on its way an exact sum may be larger than its result."""
    if isinstance(kind, DecimalType):
        return pa.decimal256(76, kind.scale)
    return arrow_type(kind)


def _mean_total(kind: Type) -> pa.DataType:
    return _total(kind if isinstance(kind, DecimalType) else DOUBLE)


def _folds(strategy: Fold, kinds: dict[str, Type], body: Struct) -> tuple[tuple[Partial, ...], tuple[Result, ...]]:
    """The running values and results of a fold, also unread ones, because a sum that overflows is always an error."""
    partials: list[Partial] = []
    results: list[Result] = []
    for number, (name, function, value) in enumerate(strategy.folds):
        source = fold_column(number)
        if value is None:
            results.append(Result(name, ()))
        elif function == "count":
            partials.append(Partial(f"{source}_count", SUM, source, pa.int64(), present=True))
            results.append(Result(name, (f"{source}_count",)))
        elif function == "mean":
            partials.append(Partial(f"{source}_sum", SUM, source, _mean_total(type_of(value, body))))
            partials.append(Partial(f"{source}_count", SUM, source, pa.int64(), present=True))
            results.append(Result(name, (f"{source}_sum", f"{source}_count")))
        else:
            kind = _total(kinds[name]) if function == "sum" else arrow_type(kinds[name])
            partials.append(Partial(f"{source}_{function}", _OPERATIONS[function], source, kind))
            results.append(Result(name, (f"{source}_{function}",)))
            if function == "sum" and kinds[name] == INTEGER:
                partials.append(Partial(rough(f"{source}_{function}"), SUM, source, arrow_type(DOUBLE)))
    return tuple(partials), tuple(results)
