"""From what the user typed to UTF-8 files that DuckDB can read, losing nothing.

A clean file is read where it lies. Anything else (compressed, UTF-16, piped in, with lines that would stop
DuckDB) becomes a copy in a work folder, in one pass; many small files share one copy. Every line counts as
text, as blank or as set aside, and keeps its number: a line that is set aside is left empty in the copy.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, NamedTuple

from fencinglab.errors import InputError
from fencinglab.logs.clean import KEPT as KEPT
from fencinglab.logs.clean import Lines, Unclean, scan
from fencinglab.logs.clean import SetAside as SetAside
from fencinglab.logs.decode import LIMITS, Limits, Source, Spent, decoded, peek, unreadable
from fencinglab.logs.detect import EMPTY, FORMATS, PARQUET, Detected, detect, enough, sniff, taken_as

SMALL, MANY = 1 << 15, 64  # plain files of fewer bytes share a copy where there are more than MANY files


class File(NamedTuple):
    """One file of the input; its lines are those of `path` after the first `first_line`."""

    name: str  # as the user gave it; a member of a folder: folder/relative/path
    path: Path  # what DuckDB reads
    first_line: int  # 0-based
    sha256: str  # of the bytes as given
    size: int  # bytes as given
    lines: int  # of the decoded text, with blank and set-aside ones; 0 where the format is Parquet or not read
    blank: int  # of them, only white space
    detected: Detected = EMPTY
    marks: tuple[tuple[int, int], ...] = ()  # (lines, bytes) of `path` before some of its lines


_Taken = tuple[File, tuple[SetAside, ...]]


class Inputs(NamedTuple):
    """What was given, ready to be read."""

    files: tuple[File, ...]
    set_aside: tuple[SetAside, ...]
    skipped: tuple[str, ...] = ()  # members of folders that are no logs: hidden files, checksums, markers


def collect(
    given: Sequence[str],
    work: Path,
    stdin: BinaryIO | None = None,
    limits: Limits = LIMITS,
    wanted: str | None = None,
) -> Inputs:
    """The files behind paths, folders and `-` (standard input): in the order given, sorted within a folder, each once.

    `work` is an empty folder for copies, needed as long as the files are; `wanted` is the format that the user
    says. No file is refused for its format: `detected` names it. What is missing, cannot be opened, is packed
    other than by gzip or exceeds the limits is an InputError.
    """
    members, skipped = _members(given)
    run = _Run(work, limits, stdin, wanted, many=len(members) > MANY)
    with ThreadPoolExecutor() as pool:  # hashing holds up no other thread; copies are made in turn
        lying = pool.map(lambda member: _lying(member[0], member[1], run), members)
        taken = [one or _copied(*member, run) for one, member in zip(lying, members, strict=True)]
    return Inputs(
        tuple(file for file, _ in taken), tuple(entry for _, aside in taken for entry in aside), tuple(skipped)
    )


class _Run:
    """What the files of one run share: the work folder with its copies, and how much of the limits is spent."""

    def __init__(self, work: Path, limits: Limits, stdin: BinaryIO | None, wanted: str | None, many: bool) -> None:
        self.work, self.limits, self.stdin, self.wanted, self.many = work, limits, stdin, wanted, many
        self.spent = Spent()
        self.numbers = count(1)
        self.shared: dict[Detected, tuple[Path, int]] = {}  # the copy of line files of one kind, its lines so far

    def new(self) -> Path:
        return self.work / f"{next(self.numbers):05}.log"

    def literal(self, path: Path) -> Path | None:
        """The path under a name that DuckDB takes as it stands, or None where no link can be made.

        DuckDB expands `*`, makes a column of a folder `day=7`, and unpacks by the end of a name.
        """
        path = path.absolute()
        if str(path).isprintable() and not re.search(r"[*?[]|=.*[/\\]|\.(gz|zst)$", str(path)):
            return path
        link = self.new()
        try:
            link.symlink_to(path)
        except OSError:
            return None
        return link


class _Opened(NamedTuple):
    """An input whose beginning is known."""

    name: str
    run: _Run
    source: Source
    chunks: Iterator[bytes]
    changed: bool  # unpacked or decoded on the way
    found: Detected

    def unread(self, path: Path | None) -> _Taken | None:
        """The file, hashed, if it is of a format that is not read."""
        if self.found.format in FORMATS or self.found == EMPTY:
            return None
        self.source.exhaust()
        return self.file(path or Path(self.name), 0, Lines(0, 0, ()))

    def file(self, place: Path, first: int, scanned: Lines) -> _Taken:
        """The file as it is read from `place`, and what of it is set aside."""
        source, found = self.source, self.found
        if found.shape == "parquet" and not self.run.wanted:
            found = detect(place, self.name)
        whole = scanned.size - source.size in (0, 1)  # read as it lies; the last newline may be ours
        counts = scanned.all, scanned.blank, found, scanned.marks if whole else ()
        return File(self.name, place, first, source.hash.hexdigest(), source.size, *counts), scanned.set_aside


@contextmanager
def _opened(name: str, path: Path | None, run: _Run) -> Iterator[_Opened]:
    with ExitStack() as closing:
        try:
            stream = closing.enter_context(path.open("rb", buffering=0)) if path else run.stdin or sys.stdin.buffer
        except OSError as error:
            raise unreadable(name, error) from None
        if not path and stream.isatty():
            raise InputError(
                "- is standard input, and that is a terminal; pipe a log into it: cat LOG | fencinglab audit -"
            )
        source = Source(stream, name, run.limits, run.spent)
        chunks, changed = decoded(source)
        head, chunks = peek(chunks, enough)
        found = Detected("table", "parquet") if head.startswith(PARQUET) else sniff(head)
        yield _Opened(name, run, source, chunks, changed, taken_as(found, run.wanted, name) if run.wanted else found)


def _lying(name: str, path: Path | None, run: _Run) -> _Taken | None:
    """A file that can be read where it lies; None where a copy is needed."""
    try:
        status = path.stat() if path else None
    except OSError:  # `_copied` says which
        return None
    if not path or not status or not S_ISREG(status.st_mode) or (run.many and status.st_size < SMALL):
        return None
    with _opened(name, path, run) as given:
        if unread := given.unread(path):
            return unread
        place = None if given.changed else run.literal(path)
        with suppress(Unclean):
            return given.file(place, 0, scan(given.chunks, given.source, given.found.shape)) if place else None
        return None


def _copied(name: str, path: Path | None, run: _Run) -> _Taken:
    """A file that is read from a copy, which it may share with others of its kind."""
    with _opened(name, path, run) as given:
        if unread := given.unread(path):
            return unread
        place, first = run.shared.get(given.found) or (run.new(), 0)
        try:
            with place.open("ab") as copy:
                scanned = scan(given.chunks, given.source, given.found.shape, copy.write)
        except OSError as error:
            why = f"{run.work} cannot hold a copy of {name} ({error.strerror})"
            raise InputError(f"{why}; let TMPDIR name a folder on a larger disk") from None
        if given.found.shape == "lines":
            run.shared[given.found] = place, first + scanned.all
        return given.file(place, first, scanned)


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
        try:
            folder = Path(name).is_dir()
        except OSError as error:
            raise unreadable(name, error) from None
        if folder:
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
        raise unreadable(str(error.filename), error)

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
