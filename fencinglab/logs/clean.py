"""The lines of a text, counted, and without those that would stop DuckDB.

A clean file costs little more than counting: Python looks at single lines only in a chunk that is not clean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fencinglab.errors import InputError
from fencinglab.logs.decode import Source, megabytes

KEPT = 1 << 16  # bytes of a set-aside entry that are kept


class SetAside(NamedTuple):
    """A line that cannot be read, or what a damaged gzip file lost."""

    source: str  # name:line, 1-based
    reason: str  # one short clause
    raw: bytes  # how it begins; payload, never for a report


class Lines(NamedTuple):
    """The lines of a text, by what became of them; the rest was passed on."""

    all: int
    blank: int  # only white space
    set_aside: tuple[SetAside, ...]
    marks: tuple[tuple[int, int], ...] = ()  # (lines, bytes) before each block, to find a line again
    size: int = 0  # bytes


class Unclean(Exception):
    """A text has lines that must not reach DuckDB, and there is nowhere to write it without them."""


def scan(chunks: Iterator[bytes], source: Source, shape: str, write: Callable[[bytes], object] | None = None) -> Lines:
    """Count the lines of a text and write it without those that would stop DuckDB (Unclean where there is no `write`).

    A line that is set aside is written as an empty one. In a document, a CSV header or a CSV field over several
    lines that would break what is round it: there each bad byte is written as U+FFFD.
    """
    lines = blank = size = 0
    marks: list[tuple[int, int]] = []
    aside: list[SetAside] = []
    begins = True  # a line begins with this block
    quoted = titled = False  # in a CSV: inside a field; after the header

    def put_aside(line: int, why: str, raw: bytes) -> None:
        where = f"{source.name}:{line}"
        if not aside or aside[-1].source != where:
            aside.append(SetAside(where, why, raw[:KEPT]))
            source.spent.set_aside += len(raw[:KEPT]) + 200  # and the objects that hold it
        if source.spent.set_aside > source.limits.set_aside:
            bound = megabytes(source.limits.set_aside)
            cure = "is it in another encoding? iconv -f WINDOWS-1252 -t UTF-8 reads the usual one"
            raise InputError(f"{where} cannot be read ({why}), nor can {bound} before it; {cure}")

    if shape == "parquet":  # no text: it passes as it is
        for chunk in chunks:
            if write:
                write(chunk)
        return Lines(0, 0, ())
    for block, why in _blocks(chunks, source, shape != "documents"):
        marks.append((lines, size))
        faulty = why or _fault(block)
        if faulty and not write:
            raise Unclean
        if why:
            put_aside(lines + 1, why, block)
            block = b"\n"
            lines += 1
        else:
            ended, empty = _counted(block, begins)
            lines, blank = lines + ended, blank + empty
        if faulty and not why:
            parts = block.split(b"\n")
            for at, part in enumerate(parts):
                odd = part.count(b'"') % 2 == 1
                if fault := _fault(part):
                    stays = shape == "documents" or (shape == "csv" and (odd or quoted or not titled))
                    put_aside(lines - ended + at + 1, f"{fault}, read as U+FFFD" if stays else fault, part)
                    parts[at] = part.replace(b"\0", b"\xff").decode("utf-8", "replace").encode() if stays else b""
                quoted, titled = quoted ^ odd, titled or bool(part.strip())
            block = b"\n".join(parts)
        elif shape == "csv":
            quoted, titled = quoted ^ (block.count(b'"') % 2 == 1), titled or bool(block.strip())
        begins = block.endswith(b"\n")
        size += len(block)
        if write:
            write(block)
    return Lines(lines, blank, tuple(aside), tuple(marks), size)


def _blocks(chunks: Iterator[bytes], source: Source, by_line: bool) -> Iterator[tuple[bytes, str]]:
    """(whole lines, "") about a chunk at a time, and (how it begins, why) for each line that is not kept.

    Not `by_line`, a line over the limit comes in several blocks. The last block ends with a newline in any case.
    """
    limit, long = source.limits.line, f"longer than {megabytes(source.limits.line)}"
    parts: list[bytes] = []
    held, dropping = 0, False
    for chunk in chunks:
        start = 0
        if dropping:
            start = chunk.find(b"\n") + 1
            dropping = not start
            if dropping:
                continue
        end = chunk.rfind(b"\n") + 1
        if end > start:
            block, parts, held = b"".join((*parts, chunk[start:end])), [], 0
            first = block.find(b"\n")
            if by_line and first > limit:
                yield block[: min(first, KEPT)], long
                block = block[first + 1 :]
            if block:
                yield block, ""
        parts.append(chunk[max(start, end) :])
        held += len(parts[-1])
        if held > limit:
            block, parts, held, dropping = b"".join(parts), [], 0, by_line
            if by_line:
                yield block[:KEPT], long
                continue
            cut = len(block) - 1
            while cut > len(block) - 4 and block[cut] & 0xC0 == 0x80:
                cut -= 1  # never inside a character
            yield block[:cut], ""
            parts, held = [block[cut:]], len(block) - cut
    rest = b"".join(parts)
    why, instead = source.lost or ("", b"")
    broken = bool(by_line and why and not instead)  # its last line is not whole
    if rest and not broken:
        yield rest + b"\n", ""
    if why:
        yield (rest if broken else instead)[:KEPT], why


_END = re.compile(rb"\n[ \t\r\v\f\n]*")
_BLANK_FIRST = re.compile(rb"[ \t\r\v\f]*\n")


def _counted(block: bytes, begins: bool) -> tuple[int, int]:
    """How many lines end in a block, and how many of them are white space; `begins`: the block begins with a line."""
    if begins and block.isspace():  # else a file of newlines would make a list of them
        count = block.count(b"\n")
        return count, count
    ends = _END.findall(block)  # the end of each line with text, and all the white space after it
    count = len(ends) if ends.count(b"\n") == len(ends) else block.count(b"\n")
    return count, count - len(ends) + bool(begins and _BLANK_FIRST.match(block))


def _fault(text: bytes) -> str:
    """Why DuckDB would stop at a text, or nothing."""
    if b"\0" in text:
        return f"byte {text.index(0) + 1} is NUL"
    if text.isascii():
        return ""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} (0x{text[error.start]:02x}) is not UTF-8"
    return ""
