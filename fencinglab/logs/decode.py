"""The bytes of one input as UTF-8: hashed, unpacked, decoded.

Everything is a generator over chunks of bounded size, so memory stays bounded whatever the input holds.
"""

from __future__ import annotations

import codecs
import hashlib
import shlex
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fencinglab.errors import InputError

CHUNK = 1 << 16  # bytes: of more, every copy would be new pages from the system


class Limits(NamedTuple):
    """What bounds memory, disk and time, in bytes; beyond it a line is set aside, a file refused."""

    line: int = 16 << 20  # DuckDB's maximum_object_size
    expanded: int = 64 << 30  # all gzip files together, unpacked
    ratio: int = 1000  # unpacked to packed, of a file beyond `ratio_from`; no log comes near it
    ratio_from: int = 64 << 20
    set_aside: int = 256 << 20  # what is set aside is held in memory


LIMITS = Limits()


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


def megabytes(count: int) -> str:
    """A number of bytes to be read."""
    return f"{count / (1 << 20):,.4g} MiB"


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
                bound = f"the gzip files together unpack to more than {megabytes(limits.expanded)}"
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
