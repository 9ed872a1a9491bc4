"""Whatever is given becomes UTF-8 lines that DuckDB reads, and every line of it is accounted for."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import threading
import time
import tracemalloc
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencinglab.errors import InputError
from fencinglab.logs import decode
from fencinglab.logs.decode import Limits
from fencinglab.logs.detect import EMPTY, Detected
from fencinglab.logs.inputs import KEPT, MANY, collect
from fencinglab.logs.places import Places

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
LINES = Detected("log-lines", "lines")


@pytest.fixture
def work(tmp_path):
    """An empty folder for copies."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def put(tmp_path):
    """Write a file and give its path as the user would."""

    def write(name, content):
        path = tmp_path / "given" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def line(number):
    """A log line with a number in it."""
    return json.dumps({"worker": "w1", "n": number})


def texts(file):
    """The lines of a file as DuckDB gets them, ends taken off; blank and set-aside ones are empty."""
    lines = file.path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")[file.first_line :][: file.lines]
    return [one.decode().strip() for one in lines]


def duck(files):
    """The numbers in the log lines that DuckDB reads from all files."""
    paths = sorted({str(file.path) for file in files if file.detected == LINES})
    columns = "{worker: 'VARCHAR', n: 'BIGINT'}"
    read = f"select n from read_json(?, format = 'newline_delimited', records = 'true', columns = {columns})"
    return sorted(n for (n,) in duckdb.execute(read, [paths]).fetchall()) if paths else []


# --- where it lies, or a copy ---


def test_a_clean_file_is_read_where_it_lies(put, work):
    """A plain file is not copied; its hash, size and lines are those of its bytes."""
    content = f"{line(1)}\n\n{line(2)}".encode()
    name = put("a.jsonl", content)
    found = collect([name], work)

    [file] = found.files
    assert (file.name, file.path, file.first_line, file.detected) == (name, Path(name), 0, LINES)
    assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert (file.lines, file.blank, found.set_aside, found.skipped) == (3, 1, (), ())
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("name", ["a[1].jsonl", "a*.jsonl", "a?.jsonl", "day=7/a.jsonl", "a.jsonl.gz", "a.zst", "a\tb"])
def test_a_name_that_duckdb_would_interpret(put, work, name):
    """A plain file whose name DuckDB would expand, unpack or make a column of is read as it is, under its own name."""
    given_ = put(name, f"{line(7)}\n")
    put("a1.jsonl", f"{line(8)}\n")
    put("ab.jsonl", f"{line(9)}\n")
    [file] = collect([given_], work).files

    assert file.name == given_
    assert duck([file]) == [7]


def test_a_name_that_is_not_utf8(put, work):
    """A file name that is not UTF-8 is shown with a replacement and read all the same."""
    plain = put("a.jsonl", f"{line(7)}\n")
    odd = os.fsdecode(os.fsencode(plain) + b"\xff")
    try:
        Path(plain).rename(odd)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    [file] = collect([odd], work).files

    assert file.name == f"{plain}\ufffd"
    assert duck([file]) == [7]


def test_standard_input(work):
    """`-` is read to its end into the work folder and called <stdin>; twice is once."""
    found = collect(["-", "-"], work, io.BytesIO(f"{line(1)}\n{line(2)}\n".encode()))

    [file] = found.files
    assert (file.name, file.path.parent, file.lines) == ("<stdin>", work, 2)
    assert duck([file]) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once(tmp_path, work):
    """A named pipe, as a shell makes of <(command), is copied like standard input."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[f"{line(1)}\nbad \xff\n".encode("latin-1")])
    writer.start()
    found = collect([str(pipe)], work)
    writer.join()

    assert duck(found.files) == [1]
    assert [entry.source for entry in found.set_aside] == [f"{pipe}:2"]


def test_an_empty_file_is_no_fault(put, work):
    """Files of nothing, packed or not, have no lines."""
    found = collect([put("a", b""), put("b", gzip.compress(b"")), put("c", b"\n \n")], work)

    assert [(file.lines, file.blank, file.detected) for file in found.files] == [
        (0, 0, EMPTY),
        (0, 0, EMPTY),
        (2, 2, EMPTY),
    ]
    assert all(file.path.exists() for file in found.files)


# --- folders ---


def test_a_folder_is_read_sorted_without_what_is_no_log(put, work, tmp_path):
    """A folder gives its files in order of their names; hidden files, checksums and markers are named as skipped."""
    for name in [
        "b.jsonl",
        "a/z.jsonl",
        "a/_SUCCESS",
        ".hidden",
        ".git/c.jsonl",
        "x.md5",
        "aws-logs-write-test",
        "_started",
    ]:
        put(name, f"{line(1)}\n")
    top = str(tmp_path / "given")
    found = collect([top], work)

    assert [file.name for file in found.files] == [f"{top}/a/z.jsonl", f"{top}/b.jsonl"]
    assert found.skipped == tuple(
        f"{top}/{name}" for name in [".git", ".hidden", "_started", "a/_SUCCESS", "aws-logs-write-test", "x.md5"]
    )


def test_a_link_back_up_ends(put, work, tmp_path):
    """A folder that links to itself is read once, and a linked file like any other."""
    put("a/b.jsonl", f"{line(1)}\n")
    (tmp_path / "given/a/up").symlink_to(tmp_path / "given")
    (tmp_path / "elsewhere").write_text(f"{line(2)}\n")
    (tmp_path / "given/linked").symlink_to(tmp_path / "elsewhere")
    found = collect([str(tmp_path / "given")], work)

    assert duck(found.files) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_a_folder_does_not_block(put, work, tmp_path):
    """A named pipe inside a folder is skipped."""
    put("a.jsonl", f"{line(1)}\n")
    os.mkfifo(tmp_path / "given/pipe")
    found = collect([str(tmp_path / "given")], work)

    assert (len(found.files), found.skipped) == (1, (f"{tmp_path}/given/pipe",))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not part of a checkout")
def test_an_export_folder_is_recognised(work):
    """The folder of a DynamoDB export is recognised by its summary, though its other markers are skipped."""
    found = collect([str(SAMPLES / "full-export")], work)

    formats = {Path(file.name).name: file.detected.format for file in found.files}
    assert formats.pop("manifest-summary.json") == "s3-full-export"
    assert set(formats.values()) == {"empty", "s3-full-export"}
    assert len(found.skipped) == 4


# --- the traps of the facts on logs ---


@pytest.mark.parametrize("name", ["a.gz", "a.json", "a"])
def test_trap_12_gz_by_magic(put, work, name):
    """gzip is told by its first bytes whatever the name says, and all members are read."""
    content = (
        gzip.compress(f"{line(1)}\n{line(2)[:5]}".encode()) + gzip.compress(f"{line(2)[5:]}\n".encode()) + b"\0" * 100
    )
    found = collect([put(name, content)], work)

    assert duck(found.files) == [1, 2]
    assert (found.files[0].lines, found.set_aside) == (2, ())
    assert found.files[0].sha256 == hashlib.sha256(content).hexdigest()


def test_trap_12_gz_that_ends_early(put, work):
    """Of a gzip file that was cut everything before the unfinished line is kept, and that line is set aside."""
    many = "".join(f"{line(n)} {hashlib.sha256(str(n).encode()).hexdigest()}\n" for n in range(2000))
    content = gzip.compress(many.replace("} ", ', "h": "').replace("\n", '"}\n').encode())
    content = content[: len(content) * 2 // 3]
    found = collect([put("a.gz", content)], work)

    [file], [entry] = found.files, found.set_aside
    assert 1000 < file.lines < 2000
    assert (entry.source, entry.reason) == (
        f"{file.name}:{file.lines}",
        "the gzip data ends too early: the rest of the file is lost",
    )
    assert texts(file)[-1] == ""
    assert [json.loads(one)["n"] for one in texts(file)[:-1]] == list(range(file.lines - 1))
    assert file.sha256 == hashlib.sha256(content).hexdigest()


def test_trap_12_gz_with_a_damage(put, work):
    """Of a damaged gzip file what was unpacked before is kept, and the loss is set aside."""
    whole = "".join(f"{line(n)}\n" for n in range(2000)).encode()
    content = bytearray(gzip.compress(whole[:20_000]) + gzip.compress(whole[20_000:]))
    content[-8] ^= 255  # the checksum of the second member
    found = collect([put("a.gz", bytes(content))], work)

    [file], [entry] = found.files, found.set_aside
    assert (entry.source, file.lines) == (f"{file.name}:2001", 2001)
    assert re.fullmatch(r"damaged gzip data \(.+ incorrect data check\): the rest of the file is lost", entry.reason)
    assert duck([file]) == list(range(file.lines - 1))


def test_trap_12_other_data_after_gz(put, work):
    """What follows the gzip data and is none itself is one entry set aside; the last line before it is kept."""
    found = collect([put("a.gz", gzip.compress(line(1).encode()) + b"plain\n")], work)

    [file], [entry] = found.files, found.set_aside
    assert (entry.source, entry.raw) == (f"{file.name}:2", b"plain\n")
    assert duck([file]) == [1]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x28\xb5\x2f\xfd\0\0", "is packed with zstd; unpack it first: zstd -d "),
        (bz2.compress(b"x"), "is packed with bzip2; unpack it first: bunzip2 -k "),
        (lzma.compress(b"x"), "is packed with xz; unpack it first: unxz -k "),
        (b"PK\x03\x04\0\0", "is packed with zip; unpack it first: unzip "),
        (gzip.compress(b"\0" * 257 + b"ustar\0", mtime=0), "is packed with tar; unpack it first: tar -xf "),
    ],
)
def test_trap_12_other_packings_are_refused(put, work, content, sentence):
    """Data packed another way is refused with the command that unpacks it."""
    name = put("a log", content)

    with pytest.raises(InputError, match=f"^{re.escape(name)} {sentence}'{re.escape(name)}'$"):
        collect([name], work)


def test_trap_12_a_cut_last_line_does_not_join_the_next_file(put, work):
    """Files that share a copy stay apart though the first ends inside a line."""
    cut = put("a", gzip.compress(f"{line(1)}\n{line(2)[:-4]}".encode()))
    found = collect([cut, put("b", gzip.compress(f"{line(3)}\n".encode()))], work)

    first, second = found.files
    assert first.path == second.path
    assert (texts(first), texts(second)) == ([line(1), line(2)[:-4]], [line(3)])
    assert Places(found.files).of(str(second.path), 3) == f"{second.name}:1"


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_trap_13_encodings(put, work, encoding, pack):
    """UTF-8, 16 and 32 are read with a byte order mark or without, packed or not, with CR LF and U+2028 inside."""
    rows = [json.dumps({"worker": "é\u2028\U0001f600", "n": n}, ensure_ascii=False) for n in range(3)]
    found = collect([put("a", pack("\r\n".join(rows).encode(encoding)))], work)

    [file] = found.files
    assert (file.lines, file.blank, found.set_aside) == (3, 0, ())
    assert texts(file) == rows
    assert duck([file]) == [0, 1, 2]


def test_trap_13_a_mark_stays_out_of_a_shared_copy(put, work):
    """The byte order mark of a file does not land in the middle of a copy."""
    names = [put(f"{n}", gzip.compress(f"\ufeff{line(n)}".encode())) for n in range(3)]

    assert duck(collect(names, work).files) == [0, 1, 2]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"worker": "\xff"}', "byte 13 (0xff) is not UTF-8"),
        (b'{"worker": "\xed\xa0\x80"}', "byte 13 (0xed) is not UTF-8"),
        (b'{"worker": "\0"}', "byte 13 is NUL"),
        (b'{"worker": "' + b"x" * 2000 + b'"}', "longer than 0.001907 MiB"),
    ],
)
def test_trap_13_lines_that_would_stop_duckdb(put, work, bad, reason):
    """A line with bytes that are not UTF-8, with NUL or too long is set aside, and the others keep their numbers."""
    content = line(1).encode() + b"\r\n\n" + bad + b"\r\n" + line(2).encode()
    found = collect([put("a", content)], work, limits=Limits(line=2000))

    [file], [entry] = found.files, found.set_aside
    assert (entry.source, entry.reason, entry.raw) == (f"{file.name}:3", reason, (bad + b"\r")[: len(entry.raw)])
    assert (file.lines, file.blank, texts(file)) == (4, 1, [line(1), "", "", line(2)])
    assert Places(found.files).of(str(file.path), 4) == f"{file.name}:4"
    assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


def test_trap_13_half_a_character_of_utf16(put, work):
    """Lines with a lone surrogate or with an odd last byte are set aside, the rest of a UTF-16 file is read."""
    rows = [line(1), '"\ud800"', '"\ufffd"', line(2), "x"]
    content = "\n".join(rows).encode("utf-16", "surrogatepass") + b"\0"
    found = collect([put("a", content)], work)

    assert [entry.source[-2:] for entry in found.set_aside] == [":2", ":3", ":5"]
    assert duck(found.files) == [1, 2]


def test_trap_13_a_document_keeps_its_shape(put, work):
    """In a pretty-printed document a bad byte is read as U+FFFD, since without its line the rest is no JSON."""
    records = [{"worker": "A", "dynamodb": {"Keys": {}, "SequenceNumber": "1"}} for _ in range(3)]
    content = json.dumps(records, indent=1).encode().replace(b"A", b"\xe9", 2)
    found = collect([put("a", content.replace(b"A", b"\0"))], work)

    [file] = found.files
    assert file.detected.shape == "documents"
    assert [row["worker"] for row in json.loads(file.path.read_bytes())] == ["\ufffd"] * 3
    assert [entry.source[-2:] for entry in found.set_aside] == [":3", "10", "17"]
    assert found.set_aside[0].reason == "byte 14 (0xe9) is not UTF-8, read as U+FFFD"


def test_trap_13_a_document_on_one_line(put, work):
    """Values on one line longer than the longest line are read in parts, never cut inside a character."""
    content = "".join(
        json.dumps({"eventSource": "aws:dynamodb", "w": "é€😀" * n}, ensure_ascii=False) for n in range(90)
    ).encode()
    for blank in range(12):
        found = collect(
            [put(f"a{blank}", b"\n" * blank + content + b'"\xff"' * (blank == 11))], work, limits=Limits(line=257)
        )

        assert [(f.lines, f.blank, f.detected.shape) for f in found.files] == [(blank + 1, blank, "documents")]
        assert [entry.source[-6:] for entry in found.set_aside] == ["a11:12"] * (blank == 11)
    assert found.files[0].path.read_bytes().strip() == content + '"\ufffd"'.encode()


def test_trap_18_the_same_file_twice(put, work, tmp_path):
    """One file under several names counts once; equal content in two files is kept, its duplicates are the reader's."""
    first, twin = put("a/x", f"{line(1)}\n"), put("b/x", f"{line(1)}\n")
    (tmp_path / "link").symlink_to(first)
    found = collect([first, str(tmp_path / "given"), first, f"{tmp_path}/given/a/../a/x", str(tmp_path / "link")], work)

    assert [file.name for file in found.files] == [first, f"{tmp_path}/given/b/x"]
    assert found.files[0].sha256 == found.files[1].sha256
    assert Path(twin).samefile(found.files[1].path)


def test_trap_19_the_order_given_is_kept(put, work):
    """Files stay in the order given, packed or not, so that lines keep a stable place."""
    names = [put("z", f"{line(1)}\n"), put("a", gzip.compress(f"{line(2)}\n".encode())), put("m", f"{line(3)}\n")]

    assert [file.name for file in collect(names, work).files] == names


def test_trap_26_a_csv_is_never_joined(put, work):
    """A CSV is read where it lies or from its own copy, its lines inside quotes counted as lines."""
    text = '@timestamp,@message\n2026-11-29,"{""a"":\n\n1}"\n'
    plain, packed = collect([put("a.csv", text), put("b.csv", gzip.compress(text.encode()))], work).files

    assert plain.detected == packed.detected == Detected("csv", "csv")
    assert (plain.lines, plain.blank, packed.first_line) == (4, 1, 0)
    assert plain.path != packed.path
    assert packed.path.read_text() == text


def test_trap_26_bad_bytes_in_a_csv(put, work):
    """A bad row is set aside; in the header and in a field over several lines the bad byte is read as U+FFFD."""
    content = b'job,gr\xf6\xdfe\na,1\nb\xff,2\nc,"x\ny\xff\nz"\nd,"\xff"\n'
    found = collect([put("a.csv", content)], work)

    [file] = found.files
    assert [(entry.source[-1], "U+FFFD" in entry.reason) for entry in found.set_aside] == [
        ("1", True), ("3", False), ("5", True), ("7", False),
    ]  # fmt: skip
    assert duckdb.execute("select * from read_csv(?, all_varchar = true)", [str(file.path)]).fetchall() == [
        ("a", "1"), ("c", "x\ny\ufffd\nz"),
    ]  # fmt: skip


# --- limits ---


class Endless(io.RawIOBase):
    """A stream of a first line, one long line of x, and a last line."""

    def __init__(self, size):
        self.parts = [f"{line(1)}\n".encode(), *[b"x" * (1 << 20)] * (size >> 20), f"\n{line(2)}\n".encode()]

    def read(self, size=-1):
        return self.parts.pop(0) if self.parts else b""


@pytest.mark.parametrize("lead", [0, 1], ids=["first line", "second line"])
def test_a_line_of_100_mb_is_set_aside_in_bounded_memory(work, lead):
    """A line of 100 MB is set aside with its beginning, and costs far less memory than its length."""
    stream = Endless(100 << 20)
    stream.parts = stream.parts if lead else [b'{"worker": "', *stream.parts[1:]]
    tracemalloc.start()
    found = collect(["-"], work, stream)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    [entry] = found.set_aside
    assert (entry.source, entry.reason, len(entry.raw)) == (f"<stdin>:{lead + 1}", "longer than 16 MiB", KEPT)
    assert duck(found.files) == [1, 2][1 - lead :]
    assert peak < 70 << 20


def test_a_gzip_bomb_is_bounded(put, work):
    """A file that unpacks to more than any log does is refused before it fills the disk."""
    name = put("bomb", gzip.compress(b"\n" * 5_000_000))
    with pytest.raises(
        InputError, match=f"{name} unpacks to more than 1,000 times its size, which no log does; it is likely"
    ):
        collect([name], work, limits=Limits(ratio_from=1_000_000))

    assert sum(path.stat().st_size for path in work.iterdir()) < 3_000_000


def test_gzip_files_together_are_bounded(put, work):
    """The sum of all that is unpacked is bounded too."""
    names = [put(str(n), gzip.compress(f"{line(n)}\n".encode() * 100)) for n in range(20)]

    with pytest.raises(
        InputError, match=r"the gzip files together unpack to more than 0\.009537 MiB; give fewer files at a time"
    ):
        collect(names, work, limits=Limits(expanded=10_000))


def test_newlines_alone(put, work):
    """A file of nothing but newlines is counted at once and in little memory."""
    tracemalloc.start()
    [file] = collect([put("a", b"\n" * 20_000_000)], work).files
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (file.lines, file.blank) == (20_000_000, 20_000_000)
    assert peak < 70 << 20


def test_what_is_set_aside_is_bounded(put, work):
    """A file of another encoding is refused, with the command that converts it, before its lines fill the memory."""
    name = put("latin", "".join(f'{{"worker": "é", "n": {n}}}\n' for n in range(1000)).encode("latin-1"))

    with pytest.raises(
        InputError, match=r"latin:\d+ cannot be read \(byte 13 \(0xe9\) is not UTF-8\), nor can .*iconv -f WIND"
    ):
        collect([name], work, limits=Limits(set_aside=100_000))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_many_small_files_are_quick_and_share_a_copy(put, work, tmp_path, pack):
    """Hundreds of small files become one that DuckDB opens, each line still under its own name."""
    for n in range(500):
        put(f"{n:05}", pack(f"{line(n)}\n\n{line(n)}\n".encode()))
    start = time.process_time()
    found = collect([str(tmp_path / "given")], work)
    spent = time.process_time() - start

    assert MANY < 500
    assert {file.path for file in found.files} == {next(work.iterdir())}
    assert duck(found.files) == sorted([*range(500)] * 2)
    assert Places(found.files).of(str(found.files[0].path), 3 * 321 + 3) == f"{tmp_path}/given/00321:3"
    assert spent < 2


# --- what cannot be given ---


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("s3://b/p", "is not on this machine; fetch it first: aws s3 cp --recursive s3://b/p ./p"),
        ("s3://b", "is not on this machine; fetch it first: aws s3 cp --recursive s3://b ./b"),
        ("s3://b/a log/", "is not on this machine; fetch it first: aws s3 cp --recursive 's3://b/a log/' './a log'"),
        ("s3://b/p/x.json.gz", "is not on this machine; fetch it first: aws s3 cp s3://b/p/x.json.gz ./x.json.gz"),
        ("https://h/x.json", "is not on this machine; fetch it first: curl https://h/x.json -o ./x.json"),
        ("", "an empty path names no log; is it a shell variable that is not set?"),
        ("no/such.log", f"no such file or folder; a relative path is looked up in {Path.cwd()}"),
    ],
)  # fmt: skip
def test_names_that_cannot_be_read(work, name, sentence):
    """A name that leads nowhere is refused with what to do."""
    with pytest.raises(InputError, match=f"^{name}:? ?{re.escape(sentence)}$"):
        collect([name], work)


def test_a_folder_without_a_file(put, work, tmp_path):
    """A folder that holds nothing to read is refused, with what was left out of it."""
    put("a/_SUCCESS", b"")
    (tmp_path / "none").mkdir()

    with pytest.raises(InputError, match="none is a folder without a log file; give the folder that the logs lie in"):
        collect([f"{tmp_path}/none"], work)
    with pytest.raises(
        InputError, match=r"given/ is a folder without a log file \(.*/given/a/_SUCCESS left out\); give"
    ):
        collect([f"{tmp_path}/given/"], work)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_no_right_to_read(put, work, tmp_path):
    """A file or folder without the right to read it is refused by its name."""
    name = put("shut/a", b"x")
    Path(name).chmod(0)
    with pytest.raises(
        InputError, match=r"shut/a cannot be read \(Permission denied\); does it belong to another user"
    ):
        collect([name], work)
    Path(name).parent.chmod(0)
    with pytest.raises(InputError, match=r"shut cannot be read \(Permission denied\)"):
        collect([str(tmp_path / "given")], work)
    Path(name).parent.chmod(0o700)


def test_a_failing_disk(work, monkeypatch):
    """A read error in the middle is told by the input's name, a write error by the folder of the copies."""

    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match=r"<stdin> cannot be read \(Input/output error\)"):
        collect(["-"], work, Broken())
    work.rmdir()
    with pytest.raises(
        InputError, match=r"work cannot hold a copy of <stdin> \(No such file or directory\); let TMPDIR"
    ):
        collect(["-"], work, io.BytesIO(line(1).encode()))


def test_a_terminal_is_no_input(work):
    """`-` at a terminal is refused instead of waiting for ever."""

    class Terminal(io.BytesIO):
        def isatty(self):
            return True

    with pytest.raises(InputError, match="- is standard input, and that is a terminal; pipe a log into it"):
        collect(["-"], work, Terminal())


# --- formats ---


def test_the_format_that_the_user_says(put, work):
    """A format given by name takes the place of the one found."""
    name = put("a", "nothing known\n")

    assert collect([name], work).files[0].detected.format == "other"
    assert collect([name], work, wanted="log-lines").files[0].detected == LINES


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_parquet(put, work, tmp_path, pack):
    """Parquet is read where it lies or from its own copy, and has no lines."""
    duckdb.execute(f"copy (select 'a' as job, 41 as token) to '{tmp_path}/x' (format parquet)")
    content = pack((tmp_path / "x").read_bytes())
    [file] = collect([put("x.parquet", content)], work).files

    assert (file.detected, file.lines, file.size) == (Detected("table", "parquet"), 0, len(content))
    assert duckdb.execute("select * from read_parquet(?)", [str(file.path)]).fetchall() == [("a", 41)]


def test_a_format_that_is_not_read_is_only_hashed(put, work):
    """Nothing is unpacked of a file that will be refused."""
    content = gzip.compress(b'{"Item": {"pk": {"S": "a"}}}\n' * 1000)
    [file] = collect([put("a", content)], work).files

    assert (file.detected.format, file.lines, file.size) == ("s3-full-export", 0, len(content))
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert list(work.iterdir()) == []


# --- for any content ---

END = st.sampled_from([b"\n", b"\r\n"])
BLANK = st.sampled_from([b"", b" ", b"\t \t", b"\v\f"])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=40)
BAD = st.sampled_from([b'{"worker": "\xff"}', b"\0", b'{"worker": "\xc3"}', b'{"worker": "' + b"x" * 300 + b'"}'])


@st.composite
def logs(draw):
    """(bytes as given, lines as bytes, encoding) of a log of JSON lines, blank lines and bad lines."""
    encoding = draw(st.sampled_from(["utf-8", *ENCODINGS]))
    good = TEXT.map(lambda text: json.dumps({"worker": text, "n": 7}, ensure_ascii=False).encode()).filter(
        lambda one: len(one) <= 250
    )
    kinds = [good, good, BLANK] + [BAD] * (encoding == "utf-8")
    lines = draw(st.lists(st.one_of(kinds), max_size=30))
    text = b"".join(one + draw(END) for one in lines)
    if draw(st.booleans()) and text:
        text = text[:-1]  # no newline at the end
    lines = text.split(b"\n")
    content = text if encoding == "utf-8" else text.decode().encode(encoding)
    if draw(st.booleans()):
        cuts = sorted(draw(st.lists(st.integers(0, len(content)), max_size=3)))
        content = b"".join(gzip.compress(content[a:b]) for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True))
    return content, lines[:-1] if lines[-1] == b"" else lines, encoding


def told(one):
    """What must become of a line: text, blank or aside."""
    if b"\xff" in one or b'\xc3"' in one or b"\0" in one or len(one) > 300:
        return "aside"
    return "text" if one.strip(b" \t\r\v\f") else "blank"


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(logs(), min_size=1, max_size=4), st.sampled_from([1, 7, 64, 4096, decode.CHUNK]))
def test_every_line_is_accounted_for(tmp_path_factory, given_, chunk):
    """For any files: lines = text + blank + set aside, all at their own numbers, and DuckDB reads just the text."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "work").mkdir()
    names = []
    for n, (content, _, _) in enumerate(given_):
        names.append(str(folder / f"{n}"))
        Path(names[-1]).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "CHUNK", chunk)
        found = collect(names, folder / "work", limits=Limits(line=300))

    for file, (content, lines, _) in zip(found.files, given_, strict=True):
        fates = [told(one) for one in lines]
        assert file.detected in ((LINES,) if "text" in fates else (LINES, EMPTY, Detected("other", "lines")))
        if file.detected.format == "other":  # which is not looked into
            continue
        aside = [entry.source for entry in found.set_aside if entry.source.startswith(f"{file.name}:")]
        assert (file.sha256, file.size) == (hashlib.sha256(content).hexdigest(), len(content))
        assert file.lines == len(lines)
        assert file.blank == fates.count("blank")
        assert aside == [f"{file.name}:{n}" for n, fate in enumerate(fates, 1) if fate == "aside"]
        if file.detected == LINES:
            for n, (one, fate) in enumerate(zip(lines, fates, strict=True), 1):
                assert texts(file)[n - 1] == (one.decode().strip() if fate == "text" else "")
                assert Places(found.files).of(str(file.path), file.first_line + n) == f"{file.name}:{n}"
    text = [
        told(one) == "text"
        for file, (_, lines, _) in zip(found.files, given_, strict=True)
        for one in lines
        if file.detected == LINES
    ]
    assert duck(found.files) == [7] * sum(text)
