"""What moto answers otherwise than DynamoDB, put right: in moto itself for this whole process, and in a request.

What stays different: every read is consistent, also without ConsistentRead; forms that only DynamoDB refuses (`a = a`,
the bounds of BETWEEN the wrong way round, a set that names a member twice); functions of binary values; fractions
beyond 28 digits; and `ReturnValues` of UPDATED_NEW or UPDATED_OLD, which leave out what an update sets to what it was.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Collection
from decimal import Context, Decimal
from functools import cache
from typing import Any

_ONE = threading.Lock()
_SIZED = frozenset({"S", "SS", "NS", "B", "BS", "L", "M"})
_ORDERED = frozenset({"S", "N", "B"})
_EXACT = Context(prec=1000)
_NUMBER = re.compile(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,3})?")


def mend() -> None:
    """Let moto judge conditions, refuse updates and record changes as DynamoDB does."""
    with _ONE:  # what is put right twice is wrong again
        _mend()


@cache
def _mend() -> None:
    _conditions()
    _updates()
    _streams()


def kept(value: dict[str, Any]) -> dict[str, Any]:
    """The attribute value as DynamoDB keeps it: of a number no zeros that say nothing, {"N": "42"} for "042.0".

    ValueError for a text that is no number, for more than 38 digits, and beyond the magnitudes that DynamoDB stores.
    """
    [*names] = value
    if names == ["N"] and isinstance(value["N"], str):
        return {"N": _number(value["N"])}
    if names == ["NS"] and isinstance(value["NS"], list):
        return {"NS": [_number(str(one)) for one in value["NS"]]}
    return value


def _number(text: str) -> str:
    made = Decimal(text).normalize(_EXACT) if _NUMBER.fullmatch(text) else None
    if made is None or len(made.as_tuple().digits) > 38 or not -130 <= made.adjusted() <= 125:
        raise ValueError(f'{{"N": "{text[:60]}"}} is no number of at most 38 digits, between 1E-130 and 9.9E+125')
    return f"{made:f}" if made else "0"


def _conditions() -> None:
    """Values of two types are never equal nor in order: to moto true is 1, and NULL is what a missing attribute is."""
    from moto.dynamodb import comparisons as moto

    def alike(met: Callable[[Any, Any], bool], among: Collection[str] | None = None) -> Callable[[Any, Any], bool]:
        def expr(self: Any, item: Any) -> bool:
            kind = self.lhs.get_type(item)
            return kind == self.rhs.get_type(item) and (among is None or kind in among) and met(self, item)

        return expr

    def differs(self: Any, item: Any) -> bool:
        return not moto.OpEqual.expr(self, item)

    def between(self: Any, item: Any) -> bool:
        at_most = moto.OpLessThanOrEqual
        return at_most(self.start, self.attr).expr(item) and at_most(self.attr, self.end).expr(item)

    def one_of(self: Any, item: Any) -> bool:
        return any(moto.OpEqual(self.attr, value).expr(item) for value in self.possible_values)

    def size(self: Any, item: Any) -> int | None:
        return len(self.attr.expr(item)) if self.attr.get_type(item) in _SIZED else None

    def size_type(self: Any, item: Any) -> str | None:
        return "N" if self.attr.get_type(item) in _SIZED else None

    _put(moto.OpEqual, "expr", alike(moto.OpEqual.expr))
    _put(moto.OpNotEqual, "expr", differs)
    for order in (moto.OpLessThan, moto.OpLessThanOrEqual, moto.OpGreaterThan, moto.OpGreaterThanOrEqual):
        _put(order, "expr", alike(order.expr, _ORDERED))
    _put(moto.FuncBetween, "expr", between)
    _put(moto.FuncIn, "expr", one_of)
    _put(moto.FuncSize, "expr", size)
    _put(moto.FuncSize, "get_type", size_type)


def _updates() -> None:
    """An update that is refused changes nothing: moto carries out what stands before the fault, and keeps that."""
    from moto.dynamodb.models.dynamo_type import Item
    from moto.dynamodb.parsing.executors import UpdateExpressionExecutor
    from moto.dynamodb.parsing.validators import UpdateExpressionValidator

    def rehearsed(validate: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def validated(self: Any) -> Any:
            update = validate(self)
            UpdateExpressionExecutor(update, copy.deepcopy(self.item), self.expression_attribute_names).execute()
            return update

        return validated

    def or_nothing(update: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        return lambda self, updates: update(self, updates or {})  # without an expression it changes nothing

    _put(UpdateExpressionValidator, "validate", rehearsed(UpdateExpressionValidator.validate))
    _put(Item, "update_with_attribute_updates", or_nothing(Item.update_with_attribute_updates))


def _streams() -> None:
    """What changes nothing leaves no record, and an update that makes an item one.

    moto puts an item that is only its key first, and records that as well.
    """
    from moto.dynamodb.models.table import StreamShard

    def once(add: Callable[..., None]) -> Callable[..., None]:
        def added(self: Any, old: Any, new: Any) -> None:
            if old is not None and new is not None and old == new:
                return
            if old is None and new is getattr(self, "made", None):  # filled by now
                self.items.pop()
            self.made = new if old is None else None
            add(self, old, new)

        return added

    _put(StreamShard, "add", once(StreamShard.add))


def _put(owner: type, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)
