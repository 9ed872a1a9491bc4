"""The program of a request file: the operations in the order in which a worker uses them, each known by its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencinglab.dynamodb.placeholders import names_in
from fencinglab.dynamodb.requests import Requests, Use
from fencinglab.explore.hazards import Hazard

LEFT_OUT = ("renew", "schedule", "retry")  # kinds of optional operations that are not tried unless they are asked for


def tried(file: Requests, hazards: Sequence[Hazard], optional: bool) -> tuple[Use, ...]:
    """The operations of the file's program that a search uses: a release only where it may happen."""

    def is_tried(use: Use) -> bool:
        kind = file.operations[use.operation].kind
        if kind == "release":
            return any(hazard.name == "release" for hazard in hazards)
        return optional or not use.optional or kind not in LEFT_OUT

    return tuple(filter(is_tried, file.program))


def choices(program: Sequence[Use], kinds: Sequence[str], place: int) -> Iterator[int]:
    """The places from which a worker that has come to this one may choose: of several ways to finish any one."""
    for at in range(place, len(program)):
        yield at
        finishes = kinds[at] == "finish" and "finish" in kinds[at + 1 :]
        if not program[at].optional and not finishes:
            return


def following(kinds: Sequence[str], place: int) -> int:
    """The place after this one; after a finish other ways to finish are left out."""
    at = place + 1
    while kinds[place] == "finish" and at < len(kinds) and kinds[at] == "finish":
        at += 1
    return at


def needs(file: Requests, operation: str) -> set[str]:
    """What a worker must have learned from replies before it can send the operation."""
    one = file.operations[operation]
    return {name for name in names_in([one.input, one.expects]) if "." in name or name == "token"}


def words(program: Sequence[Use]) -> tuple[str, ...]:
    """A word for each place, in its ids and values: what is used again is another operation."""
    names = [use.operation for use in program]
    return tuple(
        f"{name}{names[: place + 1].count(name)}" if name in names[:place] else name for place, name in enumerate(names)
    )
