"""The timelines and the incidents that come with the package, by name, and timelines in files of your own."""

from __future__ import annotations

from pathlib import Path

from fencinglab.errors import InputError, nearest
from fencinglab.model.timeline import Timeline, parse

_PACKAGE = Path(__file__).parents[1]
_DATA = _PACKAGE if (_PACKAGE / "timelines").is_dir() else _PACKAGE.parent / "data"  # in a checkout
FOLDER, INCIDENTS = _DATA / "timelines", _DATA / "incidents"
ENDING = ".timeline"
LONGEST = 100_000  # bytes of a file


def names() -> tuple[str, ...]:
    """The timelines that come with the package, by name in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{ENDING}")))


def incidents() -> tuple[str, ...]:
    """The incidents that come with the package, by name (`C07-leader-not-told`) in order of their numbers."""
    return tuple(sorted(path.stem for path in INCIDENTS.glob(f"*{ENDING}")))


def find(wanted: str, beside: Path | None = None) -> Timeline:
    """The timeline of that name, or in that file; a name is looked for `beside` another file first.

    An incident may be named by its number or by its words alone: `C07` and `leader-not-told`.
    Nothing of that name, a file that cannot be read and a text that is no timeline are each an InputError.
    """
    near = beside.parent / f"{wanted}{ENDING}" if beside else None
    if near and near.is_file():
        return _read(near, str(near))
    known = _known()
    if wanted in known:
        return _read(known[wanted], known[wanted].name)
    path = Path(wanted)
    if wanted and path.exists():
        return _read(path, wanted)
    near_by = ", ".join(nearest(path.name.removesuffix(ENDING), known))
    raise InputError(
        f"`{wanted}` is neither a timeline that comes with fencinglab (`fencinglab replay` lists them) nor a file; "
        f"nearest: {near_by}"
    )


def _known() -> dict[str, Path]:
    """{what a timeline or an incident may be called: its file}."""
    told = {word: INCIDENTS / f"{name}{ENDING}" for name in incidents() for word in (name, *name.split("-", 1))}
    return told | {name: FOLDER / f"{name}{ENDING}" for name in names()}


def companions(timeline: Timeline, wanted: str) -> tuple[Timeline, ...]:
    """The timelines that this one, found as `wanted`, names under `also`."""
    path = Path(wanted)
    beside = path if wanted not in _known() and path.is_file() else None
    return tuple(find(name, beside) for name in timeline.also)


def _read(path: Path, file: str) -> Timeline:
    try:
        with path.open("rb") as opened:
            content = opened.read(LONGEST + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); name a text file") from None
    if len(content) > LONGEST:
        raise InputError(f"{file}: is longer than {LONGEST:,} bytes; a timeline is a page of text")
    try:
        return parse(content.decode("utf-8"), file)
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start + 1} is not UTF-8; save it as UTF-8 text") from None
