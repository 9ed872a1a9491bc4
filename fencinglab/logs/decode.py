"""The bytes of one input as lines of UTF-8 text: unpacked, decoded, counted, without what would stop DuckDB.

Everything is a generator over chunks of about a mebibyte, so memory stays bounded whatever the input holds,
and a clean file costs little more than its hash: Python looks at single lines only in a chunk that is not clean.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import shlex
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fencinglab.errors import InputError

CHUNK = 1 << 20
KEPT = 1 << 16  # bytes of a set-aside entry that are kept


class Limits(NamedTuple):
    """What bounds memory, disk and time, in bytes; beyond it a line is set aside, a file refused."""

    line: int = 16 << 20  # DuckDB's maximum_object_size
    expanded: int = 64 << 30  # all gzip files together, unpacked
    ratio: int = 1000  # unpacked to packed, of a file beyond `ratio_from`; no log comes near it
    ratio_from: int = 64 << 20
    set_aside: int = 256 << 20  # what is set aside is held in memory


LIMITS = Limits()


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


@dataclass
class Spent:
    """How much of the limits the inputs of one run have used up together."""

    expanded: int = 0
    set_aside: int = 0


@dataclass
class Source:
    """The chunks of one input, hashed and counted as they pass."""

    stream: BinaryIO
    name: str
    limits: Limits
    spent: Spent
    size: int = 0
    lost: tuple[str, bytes] | None = None  # why a gzip file ends before its time, and what stands there instead

    def __post_init__(self) -> None:
        self.hash = hashlib.sha256()
        self.step = min(CHUNK, self.limits.line // 2)  # so that a line over the limit lies within no chunk

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            chunk = self.stream.read(self.step)
        except OSError as error:
            raise unreadable(self.name, error) from None
        if not chunk:
            raise StopIteration
        self.hash.update(chunk)
        self.size += len(chunk)
        return chunk

    def exhaust(self) -> None:
        """Read to the end, for the hash."""
        for _ in self:
            pass


class Unclean(Exception):
    """A text has lines that must not reach DuckDB, and there is nowhere to write it without them."""


def unreadable(name: str, error: OSError) -> InputError:
    """The error for an input that the system does not give."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name}: no such file or folder; a relative path is looked up in {Path.cwd()}")
    cause = "; does it belong to another user?" if isinstance(error, PermissionError) else ""
    return InputError(f"{name} cannot be read ({error.strerror}){cause}")


def peek(chunks: Iterator[bytes], enough: Callable[[bytes], bool]) -> tuple[bytes, Iterator[bytes]]:
    """The beginning, as long as it takes, and all the chunks again."""
    head, seen = b"", []
    for chunk in chunks:
        seen.append(chunk)
        head += chunk
        if enough(head):
            break
    return head, chain(seen, chunks)


_GZIP = b"\x1f\x8b"
_PACKED = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"BZh": ("bzip2", "bunzip2 -k"),
    b"\xfd7zXZ\0": ("xz", "unxz -k"),
    b"PK\x03\x04": ("zip", "unzip"),
}
_MARKS = {
    codecs.BOM_UTF32_LE: "utf_32_le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf_32_be",
    codecs.BOM_UTF16_LE: "utf_16_le",
    codecs.BOM_UTF16_BE: "utf_16_be",
}
_ZEROS = {"0111": "utf_32_le", "1110": "utf_32_be", "0101": "utf_16_le", "1010": "utf_16_be"}


def decoded(source: Source) -> tuple[Iterator[bytes], bool]:
    """The chunks as UTF-8 without a byte order mark, and whether they were unpacked or decoded to be so.

    Data packed other than by gzip is an InputError with the command that unpacks it.
    """
    beginning = 4096
    head, chunks = peek(source, lambda head: len(head) >= beginning)
    changed = head.startswith(_GZIP)
    if changed:
        head, chunks = peek(_unpacked(chunks, source), lambda head: len(head) >= beginning)
    packed = next((known for magic, known in _PACKED.items() if head.startswith(magic)), None)
    if head[257:262] == b"ustar":
        packed = ("tar", "tar -xf")
    if packed:
        what, command = packed
        raise InputError(f"{source.name} is packed with {what}; unpack it first: {command} {shlex.quote(source.name)}")
    encoding = next((of for mark, of in _MARKS.items() if head.startswith(mark)), None) or _by_zeros(head[:beginning])
    if encoding:
        chunks = _utf8(chunks, encoding)
    return _unmarked(chunks), changed or bool(encoding)


def _by_zeros(head: bytes) -> str | None:
    """The encoding of wide characters without a mark: most of them are ASCII, so every second byte or more is zero."""
    if not head.replace(b"\0", b"").strip():
        return None
    zeros = [head[at::4].count(0) * 4 / len(head) for at in range(4)]
    return _ZEROS.get("".join("1" if share > 0.5 else "0" if share < 0.1 else "?" for share in zeros))


def _unpacked(chunks: Iterator[bytes], source: Source) -> Iterator[bytes]:
    """What the gzip members hold, up to the first damage."""
    member, fresh, members, made, limits = zlib.decompressobj(31), True, 0, 0, source.limits
    piece = 1 << 14
    for left in (chunk[at : at + piece] for chunk in chunks for at in range(0, len(chunk), piece)):
        while left := left.lstrip(b"\0") if fresh else left:
            before = member.copy()
            try:
                text = member.decompress(left, source.step)
            except zlib.error as error:
                yield from _up_to_damage(before, left)
                gzip = left.startswith(_GZIP) or not (fresh and members)
                why = f"damaged gzip data ({error})" if gzip else "other data after the gzip data"
                source.lost = f"{why}: the rest of the file is lost", b"" if gzip else left
                source.exhaust()
                return
            if text:  # an empty chunk ends a text
                yield text
            made += len(text)
            source.spent.expanded += len(text)
            if source.spent.expanded > limits.expanded:
                bound = f"the gzip files together unpack to more than {_size(limits.expanded)}"
                raise InputError(f"{source.name}: {bound}; give fewer files at a time")
            if made > limits.ratio_from and made > limits.ratio * source.size:
                bound = f"unpacks to more than {limits.ratio:,} times its size"
                raise InputError(f"{source.name} {bound}, which no log does; it is likely a gzip bomb")
            fresh = member.eof
            left = member.unused_data if fresh else member.unconsumed_tail
            if fresh:
                member, members = zlib.decompressobj(31), members + 1
    while text := member.decompress(b"", source.step):
        yield text
    if not (fresh or member.eof):
        source.lost = "the gzip data ends too early: the rest of the file is lost", b""


def _up_to_damage(member: Any, piece: bytes) -> Iterator[bytes]:
    """What a piece of gzip data holds before its damage, of which zlib by itself gives nothing."""
    with suppress(zlib.error):
        for byte in piece:
            if text := member.decompress(bytes((byte,))):
                yield text


def _utf8(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """UTF-16 or UTF-32 as UTF-8; what cannot be decoded becomes a byte that is not UTF-8 either."""
    decode, rest = getattr(codecs, f"{encoding}_decode"), b""
    for chunk in chain(chunks, (b"",)):
        given = rest + chunk
        try:
            text, used = decode(given, "strict", not chunk)
        except UnicodeDecodeError:
            text, used = decode(given, "replace", not chunk)
            text = text.replace("\ufffd", "\udcff")
        rest = given[used:]
        yield text.encode("utf-8", "surrogateescape")


def _unmarked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    head, chunks = peek(chunks, lambda head: len(head) >= 3)
    mark = 3 if head.startswith(codecs.BOM_UTF8) else 0
    for chunk in chunks:
        yield chunk[mark:]
        mark = max(0, mark - len(chunk))


def scan(chunks: Iterator[bytes], source: Source, shape: str, write: Callable[[bytes], object] | None = None) -> Lines:
    """Count the lines of a text and write it without those that would stop DuckDB (Unclean where there is no `write`).

    A line that is set aside is written as an empty one. In a document, a CSV header or a CSV field over several
    lines that would break what is round it: there each bad byte is written as U+FFFD.
    """
    lines = blank = 0
    aside: list[SetAside] = []
    begins = True  # a line begins with this block
    quoted = titled = False  # in a CSV: inside a field; after the header

    def put_aside(line: int, why: str, raw: bytes) -> None:
        where = f"{source.name}:{line}"
        if not aside or aside[-1].source != where:
            aside.append(SetAside(where, why, raw[:KEPT]))
            source.spent.set_aside += len(raw[:KEPT]) + 200  # and the objects that hold it
        if source.spent.set_aside > source.limits.set_aside:
            bound = _size(source.limits.set_aside)
            cure = "is it in another encoding? iconv -f WINDOWS-1252 -t UTF-8 reads the usual one"
            raise InputError(f"{where} cannot be read ({why}), nor can {bound} before it; {cure}")

    if shape == "parquet":  # no text: it passes as it is
        for chunk in chunks:
            if write:
                write(chunk)
        return Lines(0, 0, ())
    for block, why in _blocks(chunks, source, shape != "documents"):
        faulty = why or _fault(block)
        if faulty and not write:
            raise Unclean
        if why:
            put_aside(lines + 1, why, block)
            block = b"\n"
        else:
            blank += _blank(block, begins)
        if faulty and not why:
            parts = block.split(b"\n")
            for at, part in enumerate(parts):
                odd = part.count(b'"') % 2 == 1
                if fault := _fault(part):
                    stays = shape == "documents" or (shape == "csv" and (odd or quoted or not titled))
                    put_aside(lines + at + 1, f"{fault}, read as U+FFFD" if stays else fault, part)
                    parts[at] = part.replace(b"\0", b"\xff").decode("utf-8", "replace").encode() if stays else b""
                quoted, titled = quoted ^ odd, titled or bool(part.strip())
            block = b"\n".join(parts)
        elif shape == "csv":
            quoted, titled = quoted ^ (block.count(b'"') % 2 == 1), titled or bool(block.strip())
        lines += block.count(b"\n")
        begins = block.endswith(b"\n")
        if write:
            write(block)
    return Lines(lines, blank, tuple(aside))


def _blocks(chunks: Iterator[bytes], source: Source, by_line: bool) -> Iterator[tuple[bytes, str]]:
    """(whole lines, "") about a chunk at a time, and (how it begins, why) for each line that is not kept.

    Not `by_line`, a line over the limit comes in several blocks. The last block ends with a newline in any case.
    """
    limit, long = source.limits.line, f"longer than {_size(source.limits.line)}"
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


_BLANK = re.compile(rb"\n[ \t\r\v\f]*(?=\n)")
_BLANK_FIRST = re.compile(rb"[ \t\r\v\f]*\n")


def _blank(block: bytes, begins: bool) -> int:
    """How many lines of white space end in a block; `begins` when the block begins with a line."""
    if begins and block.isspace():  # else a file of newlines would make a list of them
        return block.count(b"\n")
    return len(_BLANK.findall(block)) + bool(begins and _BLANK_FIRST.match(block))


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


def _size(count: int) -> str:
    return f"{count / (1 << 20):,.4g} MiB"
