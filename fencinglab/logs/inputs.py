"""From what the user typed to UTF-8 files that DuckDB can read, losing nothing.

A clean file is read where it lies. Anything else (compressed, UTF-16, piped in, with lines that would stop
DuckDB) becomes a copy in a work folder, in one pass; many small files share one copy. Every line counts as
text, as blank or as set aside, and keeps its number: a line that is set aside is left empty in the copy.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from fencinglab.errors import InputError
from fencinglab.logs.detect import EMPTY, FORMATS, PARQUET, Detected, detect, enough, sniff, taken_as

CHUNK = 1 << 20
KEPT = 1 << 16  # bytes of a set-aside entry that are kept
SMALL, MANY = 1 << 18, 64  # plain files of fewer bytes share a copy where there are more than MANY files


class Limits(NamedTuple):
    """What bounds memory, disk and time, in bytes: beyond it a line is set aside, a file refused."""

    line: int = 16 << 20  # DuckDB's maximum_object_size
    expanded: int = 64 << 30  # all gzip files together, decompressed
    ratio: int = 1000  # decompressed to compressed, of a file beyond `ratio_from`; no log comes near it
    ratio_from: int = 64 << 20
    set_aside: int = 256 << 20  # what is set aside is held in memory


class File(NamedTuple):
    """One file of the input: the lines of `path` that begin after `first_line`."""

    name: str  # as the user gave it; a member of a folder: folder/relative/path
    path: Path  # what DuckDB reads
    first_line: int  # 0-based
    sha256: str  # of the bytes as given
    size: int  # bytes as given
    lines: int  # of the decoded text, with blank and set-aside ones; 0 where the format is Parquet or not read
    blank: int  # of them, only white space
    detected: Detected = EMPTY


class SetAside(NamedTuple):
    """A line that cannot be read, or what a damaged gzip file lost."""

    source: str  # name:line, 1-based
    reason: str  # one short clause
    raw: bytes  # how it begins; payload, never for a report


class Inputs(NamedTuple):
    """What was given, ready to be read."""

    files: tuple[File, ...]
    set_aside: tuple[SetAside, ...]
    skipped: tuple[str, ...] = ()  # members of folders that are no logs: hidden files, checksums, markers


def collect(
    given: Sequence[str],
    work: Path,
    stdin: BinaryIO | None = None,
    limits: Limits = Limits(),
    wanted: str | None = None,
) -> Inputs:
    """The files behind paths, folders and `-` (standard input): in the order given, sorted within a folder, each once.

    `work` is an empty folder for copies, needed as long as the files are; `wanted` is the format that the user
    says. No file is refused for its format: `detected` names it. What is missing, cannot be opened, is packed
    other than by gzip or exceeds the limits is an InputError.
    """
    members, skipped = _members(given)
    files: list[File] = []
    aside: list[SetAside] = []
    with ExitStack() as closing:
        folder = _Work(work, limits, len(members) > MANY, closing)
        for name, path in members:
            file, lost = _take(name, path, stdin or sys.stdin.buffer, folder, wanted)
            files.append(file)
            aside += lost
    return Inputs(tuple(files), tuple(aside), tuple(skipped))


def locate(files: Sequence[File], path: Path | str, line: int) -> str:
    """`name:line` in what the user gave, for a 1-based line of a `path` that DuckDB read."""
    path = Path(path)
    for file in files:
        if file.first_line < line <= file.first_line + file.lines and file.path == path:
            return f"{file.name}:{line - file.first_line}"
    return f"{path}:{line}"


# In folders only. `manifest-summary.json` stays: without it an export of no items would be an empty log.
_NO_LOG = re.compile(
    r"\..*|.*\.(md5|checksum|crc)|manifest-files\.json|_SUCCESS|_(started|committed)(_\d+)?|aws-logs-write-test"
)
_FETCH = {"s3": "aws s3 cp --recursive {} {}", "gs": "gcloud storage cp --recursive {} {}"}


def _members(given: Sequence[str]) -> tuple[list[tuple[str, Path | None]], list[str]]:
    """(name, path) of every file, None for standard input; and the names that folders hold besides."""
    found: dict[str, tuple[str, Path | None]] = {}
    skipped: list[str] = []
    for name in given:
        if not name.strip():
            raise InputError("an empty path names no log; is it a shell variable that is not set?")
        if url := re.match(r"(\w{2,})://.*?([^/]*)/*$", name):
            fetch = _FETCH.get(url[1], "curl {} -o {}").format(shlex.quote(name), shlex.quote(f"./{url[2]}"))
            if "." in url[2]:  # one object
                fetch = fetch.replace(" --recursive", "")
            raise InputError(f"{name} is not on this machine; fetch it first: {fetch}")
        members: list[tuple[str, Path | None]] = [(name, Path(name)) if name != "-" else ("<stdin>", None)]
        if os.path.isdir(name):
            members, left_out = _folder(name.rstrip("/\\") or name, Path(name))
            skipped += left_out
            if not members:
                why = f" ({', '.join(left_out[:3])} left out)" if left_out else ""
                raise InputError(f"{name} is a folder without a log file{why}; give the folder that the logs lie in")
        for shown, path in members:
            real = os.path.realpath(path) if path else shown
            found.setdefault(real, (os.fsencode(shown).decode("utf-8", "replace"), path))
    return list(found.values()), skipped


def _folder(name: str, top: Path) -> tuple[list[tuple[str, Path | None]], list[str]]:
    members: list[tuple[str, Path | None]] = []
    skipped: list[str] = []
    seen: set[str] = set()

    def stop(error: OSError) -> None:
        raise _unreadable(str(error.filename), error)

    for folder, inner, names in os.walk(top, followlinks=True, onerror=stop):
        real = os.path.realpath(folder)
        hidden = [one for one in inner if one.startswith(".")]
        inner[:] = [] if real in seen else [one for one in inner if one not in hidden]  # a link may lead back up
        for one in [] if real in seen else [*names, *hidden]:
            path = Path(folder, one)
            shown = f"{name}/{path.relative_to(top).as_posix()}"
            if _NO_LOG.fullmatch(one) or not (path.is_file() or path.is_symlink()):
                skipped.append(shown)
            else:
                members.append((shown, path))
        seen.add(real)
    return sorted(members), sorted(skipped)


def _unreadable(name: str, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name}: no such file or folder; a relative path is looked up in {Path.cwd()}")
    return InputError(f"{name} cannot be read ({error.strerror}); does it belong to another user?")


class _Copy:
    """A file in the work folder that input files are written to, and its lines so far."""

    def __init__(self, path: Path, closing: ExitStack) -> None:
        self.path, self.lines = path, 0
        self.file = closing.enter_context(path.open("wb"))

    def write(self, block: bytes) -> None:
        try:
            self.file.write(block)
        except OSError as error:
            where = self.path.parent
            raise InputError(f"{where} cannot hold a copy of the input ({error.strerror}); set TMPDIR to a larger disk") from None


class _Work:
    """The work folder, and what all files of one run share: copies of line files and what the limits have left."""

    def __init__(self, folder: Path, limits: Limits, many: bool, closing: ExitStack) -> None:
        self.folder, self.limits, self.many, self.closing = folder, limits, many, closing
        self.expanded = self.kept = self.made = 0
        self.shared: dict[Detected, _Copy] = {}

    def path(self) -> Path:
        self.made += 1
        return self.folder / f"{self.made:05}.log"

    def copy(self, found: Detected) -> _Copy:
        """Where a file of this kind goes: line files one after another, any other into a file of its own."""
        if found.shape != "lines":
            return _Copy(self.path(), self.closing)
        if found not in self.shared:
            self.shared[found] = _Copy(self.path(), self.closing)
        return self.shared[found]

    def link(self, path: Path) -> Path | None:
        """The path under a name that DuckDB takes literally, or None where links cannot be made.

        It expands `*`, makes a column of `day=7/`, and unpacks by the name's end.
        """
        text = str(path)
        odd = re.search(r"[*?[]|=.*[/\\]|\.(gz|zst)$", text) or not text.isprintable()
        if not odd:
            return path
        link = self.path()
        try:
            link.symlink_to(path)
        except OSError:
            return None
        return link
