"""The request files that come with the package, by name, and those of your own."""

from __future__ import annotations

from pathlib import Path

from fencinglab.dynamodb.parse import made, parse, read
from fencinglab.dynamodb.requests import Requests, renamed
from fencinglab.dynamodb.rest import completed, lacks, told
from fencinglab.errors import InputError, nearest

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "requests"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "data" / "requests"  # in a checkout
LONGEST = 1_000_000  # bytes of a file


def names() -> tuple[str, ...]:
    """The request files that come with the package, by name in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def find(wanted: str, rest: str = "") -> Requests:
    """The request file of that name, or in that file; InputError for anything else.

    What it lacks is taken from the file `rest`, and `taken` says what that was; without one it must be whole.
    """
    text, name = source(wanted)
    raw = read(text, name)
    if not rest or not lacks(raw):
        return made(raw, name)
    other, of = source(rest)
    whole = parse(other, of)
    file = made(completed(raw, read(other, of), name, of), name)
    return told(file, raw, renamed(whole, lambda _: file.tables[0]["TableName"]) if len(file.tables) == 1 else whole)


def source(wanted: str) -> tuple[str, str]:
    """The text of the request file of that name, or in that file, and the name of the file."""
    path = FOLDER / f"{wanted}.json" if wanted in names() else Path(wanted)
    if not path.exists():
        near = f"nearest: {', '.join(nearest(path.stem, names()))}"
        raise InputError(f"`{wanted}` is neither a request file that comes with fencinglab nor a file; {near}")
    try:
        with path.open("rb") as opened:
            content = opened.read(LONGEST + 1)
        if len(content) > LONGEST:
            raise InputError(f"{wanted}: is longer than {LONGEST:,} bytes; a request file is some pages of JSON")
        return content.decode("utf-8-sig"), path.name
    except OSError as error:
        raise InputError(f"{wanted}: cannot be read ({error.strerror}); name a JSON file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{wanted}: byte {error.start + 1} is not UTF-8; save it as UTF-8 text") from None
