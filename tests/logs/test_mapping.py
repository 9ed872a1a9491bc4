"""Which field fills which column: known names, the user's words, durations and the TOML file."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencinglab.errors import InputError, UsageError
from fencinglab.logs import mapping
from fencinglab.logs.mapping import FIELDS, MappingSpec, resolve

ARTICLE = (  # the item of the request-status article
    "requestId", "apiStatus", "leaseOwner", "leaseExpiresAt", "fencingToken", "writtenToken", "writtenBy", "attempt",
    "version", "terminalVersion", "responseHash", "nextPollAt", "operationId", "alertId", "createdAt", "ttl",
)  # fmt: skip


def found(*names: str, of: str = "stream", **said: str) -> dict[str, str]:
    """The mapping of a log with these fields."""
    return dict(resolve(MappingSpec(fields=said), names, of).fields)


# --- known names ---


def test_the_item_of_the_article_needs_no_word():
    """Every attribute of the request-status item is recognised; `attempt`, times of creation and TTL are nothing."""
    assert found(*ARTICLE) == {
        "status": "apiStatus", "holder": "leaseOwner", "expires_at": "leaseExpiresAt", "token": "fencingToken",
        "written_token": "writtenToken", "writer": "writtenBy", "version": "version",
        "terminal_version": "terminalVersion", "value": "responseHash", "next_poll": "nextPollAt",
        "operation": "operationId", "alert": "alertId",
    }  # fmt: skip


KNOWN = {
    # the spelling counts for nothing
    "leaseOwner": {"holder": "leaseOwner"},
    "lease_owner": {"holder": "lease_owner"},
    "LEASE-OWNER": {"holder": "LEASE-OWNER"},
    "leaseowner": {"holder": "leaseowner"},
    "lockedBy": {"holder": "lockedBy"},
    "locked_by": {"holder": "locked_by"},
    "holderIdentity": {"holder": "holderIdentity"},
    "ownerName": {"holder": "ownerName"},
    # tokens by their several names
    "fencing_token": {"token": "fencing_token"},
    "fence": {"token": "fence"},
    "epoch": {"token": "epoch"},
    "generation": {"token": "generation"},
    "term": {"token": "term"},
    "written_token": {"written_token": "written_token"},
    # counters that rise with renewals are versions, not tokens
    "leaseCounter": {"version": "leaseCounter"},
    "recordVersionNumber": {"version": "recordVersionNumber"},
    "version": {"version": "version"},
    # an attempt is neither
    "attempt": {},
    "retryCount": {},
}


@pytest.mark.parametrize(("name", "expected"), KNOWN.items(), ids=KNOWN)
def test_one_known_name(name, expected):
    """A known name is recognised in any spelling, and only as what it is known for."""
    assert found(name) == expected


@pytest.mark.parametrize("key", FIELDS)
def test_every_known_name_is_known_for_its_column(key):
    """Each name in the list, alone in a log, fills its column (of two columns that know it, the first)."""
    of = "line" if FIELDS[key].line else "stream"
    owners: dict[str, str] = {}
    for column, field in FIELDS.items():
        if getattr(field, of):
            for name in (name for tier in field.known for name in tier):
                owners.setdefault(mapping.plain(name), column)
    names = [name for tier in FIELDS[key].known for name in tier if owners[mapping.plain(name)] == key]

    assert names or key == "outcome"  # which means the decision, where nothing else does
    assert {name: found(name, of=of) for name in names} == {name: {key: name} for name in names}


def test_a_more_telling_name_wins():
    """A name of a later tier is used only where no earlier one is there."""
    assert found("owner", "leaseOwner")["holder"] == "leaseOwner"
    assert found("term", "epoch", "fence")["token"] == "fence"
    assert found("recordVersionNumber", "leaseCounter") == {"version": "leaseCounter"}


def test_a_field_fills_one_column_only():
    """What already fills a column is no candidate for another."""
    assert found("result", "time", of="line") == {"at": "time", "value": "result"}
    assert found("result", of="line", decision="result") == {"decision": "result"}
    assert found("outcome", of="line") == {"outcome": "outcome"}
    assert found("outcome", "decision", of="line") == {"decision": "decision", "outcome": "outcome"}


def test_two_candidates_are_refused():
    """Of two equally telling names none is guessed: the error names both and the option for each way out."""
    with pytest.raises(
        InputError,
        match=r"^two candidates for holder: `leaseOwner` and `lockedBy`; .*--map holder=leaseOwner, or --map holder=none$",
    ):
        found("lockedBy", "leaseOwner")
    with pytest.raises(InputError, match="`lease_owner` and `leaseOwner`|`leaseOwner` and `lease_owner`"):
        found("leaseOwner", "lease_owner")


# --- the user's words ---


def test_what_was_said_wins():
    """A field that the user names is taken instead of a known one, which is free for nothing else to take."""
    spec = resolve(MappingSpec(fields={"token": "myFence"}), ["myFence", "fencingToken", "leaseOwner"], "stream")

    assert spec.fields == {"token": "myFence", "holder": "leaseOwner"}
    assert spec.recognised == {"holder"}


def test_what_an_error_holds_is_about_the_error():
    """pino writes an error as `err.message` beside `msg`: it is no second event, and none where there is no first."""
    seen = ["msg", "err.message", "err.id", "error.cause.token", "ctx.token", "ctx.jobId"]

    found = resolve(MappingSpec(), seen, "line").fields
    assert found == {"resource": "ctx.jobId", "kind": "msg", "token": "ctx.token"}
    assert "kind" not in resolve(MappingSpec(), seen[1:], "line").fields


def test_saying_which_settles_two_candidates():
    """One word decides between two candidates."""
    assert found("lockedBy", "leaseOwner", holder="lockedBy") == {"holder": "lockedBy"}


def test_none_takes_a_column_away():
    """`none` leaves a column empty although a known name is there."""
    assert found("leaseOwner", "fencingToken", token="none") == {"holder": "leaseOwner"}


def test_several_fields_of_one_column():
    """`A,B` names two fields, both of which must be there."""
    assert found("a", "b", value="a,b") == {"value": "a,b"}
    with pytest.raises(InputError, match="--map value=a,c: no record has a field `c`"):
        found("a", "b", value="a,c")


def test_a_missing_field_is_named_with_the_nearest():
    """A field that no record has is refused with the nearest name and those that there are."""
    with pytest.raises(
        InputError,
        match=r"^--map token=fencingTokn: no record has a field `fencingTokn` \(nearest: `fencingToken`; it has fencingToken\)$",
    ):
        found("fencingToken", token="fencingTokn")
    with pytest.raises(InputError, match=r"no record has a field `q` \(nearest: `[ab]`; it has a, b\)$"):
        found("b", "a", token="q")


def test_rising_and_protected_fields_must_be_there():
    """The fields of --rising and --protect are checked like mapped ones."""
    for spec in (MappingSpec(rising=("atempt",)), MappingSpec(protect=("atempt",))):
        with pytest.raises(InputError, match=r"`atempt` .*\(nearest: `attempt`; it has attempt\)$"):
            resolve(spec, ["attempt"], "stream")


def test_a_column_of_the_other_kind_of_log_is_refused():
    """A stream has no column for decisions and a log line none for written tokens: both say what can be mapped."""
    with pytest.raises(UsageError, match="--map decision=x: a DynamoDB stream has no such column; it can map lease, "):
        found("x", decision="x")
    with pytest.raises(UsageError, match="--map written_token=x: a log line has no such column; it can map resource, "):
        found("x", of="line", written_token="x")


HOSTILE = (
    'a"b',
    "a'b",
    "a`b",
    "a b",
    "a.b",
    "ä",
    "\u202eb",
    "a\nb",
    "<b>",
    "=cmd()",
    "$.x",
    "a\\b",
    "S",
    "",
    "x" * 5000,
)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_names(name):
    """Whatever an attribute is called, it is no known name, and can be said to be a token."""
    assert found(name, "leaseOwner") == {"holder": "leaseOwner"}
    if name:
        assert found(name, "leaseOwner", token=name) == {"token": name, "holder": "leaseOwner"}


# --- --map COLUMN=FIELD ---


def test_fields_are_parsed():
    """Options name columns and fields; `after_` is allowed before a column; saying the same twice is no fault."""
    options = ["token=fencingToken", "after_holder=owner", "value=a,b", "token=fencingToken", "status=a=b"]

    assert mapping.parse_fields(options) == {
        "token": "fencingToken",
        "holder": "owner",
        "value": "a,b",
        "status": "a=b",
    }


WRONG = {
    "token": "--map token: write COLUMN=FIELD, for example --map token=fencingToken",
    "token=": "--map token=: write COLUMN=FIELD",
    "=x": "is not a column that can be mapped",
    "tokn=x": r"--map tokn=x: `tokn` is not a column that can be mapped \(nearest: token\); allowed: resource, lease, ",
}


@pytest.mark.parametrize(("option", "message"), WRONG.items(), ids=WRONG)
def test_a_wrong_option_is_named(option, message):
    """What cannot be understood is a UsageError with the option and what to write."""
    with pytest.raises(UsageError, match=message):
        mapping.parse_fields([option])


def test_two_fields_for_one_column_are_refused():
    """Two fields for one column, in two options, are a contradiction."""
    with pytest.raises(UsageError, match="two fields for token: `a` and `b`; keep one"):
        mapping.parse_fields(["token=a", "token=b"])


# --- durations ---

DURATIONS = {
    "500ms": 500_000, "30s": 30_000_000, "5m": 300_000_000, "12h": 43_200_000_000, "7d": 604_800_000_000,
    "1.5s": 1_500_000, "0s": 0, "250us": 250, " 2s ": 2_000_000,
}  # fmt: skip


@pytest.mark.parametrize(("text", "microseconds"), DURATIONS.items(), ids=DURATIONS)
def test_durations(text, microseconds):
    """Times are written with a unit."""
    assert mapping.parse_duration(text, "--skew") == microseconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1s", "1 s", "7days", "1e3s", "½s", "1.s"])
def test_what_is_no_duration(text):
    """Anything else is a UsageError that names the option and shows how to write it."""
    with pytest.raises(UsageError, match=re.escape(f"--skew {text}: write a time such as 500ms, 30s, 5m, 12h or 7d")):
        mapping.parse_duration(text, "--skew")


@given(st.integers(0, 10**18))
def test_durations_survive_their_text(microseconds):
    """What is written for a duration is read back exactly."""
    assert mapping.parse_duration(mapping.duration_text(microseconds), "--skew") == microseconds


def test_durations_are_written_short():
    """The largest unit that fits is taken."""
    given_ = [0, 1, 1_500, 2_000_000, 90_000_000, 3_600_000_000, 604_800_000_000]

    assert [mapping.duration_text(d) for d in given_] == ["0s", "1us", "1500us", "2s", "90s", "1h", "7d"]


# --- the TOML file ---

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
specs = st.builds(
    MappingSpec,
    fields=st.dictionaries(st.sampled_from(list(FIELDS)), names, max_size=4),
    terminal=st.none() | st.lists(names, max_size=3).map(tuple),
    rising=st.lists(names, max_size=2).map(tuple),
    protect=st.lists(names, max_size=2).map(tuple),
    order=st.none() | st.just("lines"),
    retention=st.none() | st.integers(0, 10**15),
    skew=st.integers(0, 10**12),
)


@settings(deadline=None)
@given(specs)
def test_a_mapping_survives_its_file(tmp_path_factory, spec):
    """Whatever the names are, a saved mapping is a TOML file that gives the same mapping back."""
    path = tmp_path_factory.mktemp("map") / "map.toml"
    mapping.save(spec, path)

    tomllib.loads(path.read_text(encoding="utf-8"))
    assert mapping.load(path) == spec


def test_a_saved_mapping_says_how_it_is_used(tmp_path):
    """The file begins with the command that takes it, and says nothing that was not said."""
    path = tmp_path / "jobs.toml"
    mapping.save(MappingSpec(fields={"token": "fence"}), path)

    assert path.read_text(encoding="utf-8").splitlines() == [
        "# fencinglab audit LOG --map jobs.toml", "", "[map]", 'token = "fence"',
    ]  # fmt: skip


def test_a_file_written_by_hand(tmp_path):
    """Lists may be lists, and what is left out is not declared."""
    path = tmp_path / "map.toml"
    path.write_text('terminal = ["DONE"]\nretention = "7d"\n[map]\nvalue = ["a", "b"]\n', encoding="utf-8")

    assert mapping.load(path) == MappingSpec(
        fields={"value": "a,b"}, terminal=("DONE",), retention=7 * 86_400 * mapping.SECOND
    )


UNUSABLE = {
    "no TOML": ("token = ", "map.toml: not a TOML file"),
    "an unknown key": ('tokens = "x"', "map.toml: unknown key `tokens`; allowed: map, terminal"),
    "an unknown column": ('[map]\ntokn = "x"', r"--map tokn=x: `tokn` is not a column that can be mapped \(nearest: token\)"),
    "one status without a list": ('terminal = "DONE"', "map.toml: `terminal` must be a list of texts"),
    "a list of numbers": ("rising = [1]", "map.toml: `rising` must be a list of texts"),
    "a duration without a unit": ("retention = 7", "map.toml: `retention` must be a text"),
    "a wrong duration": ('skew = "7"', "skew 7: write a time such as 500ms"),
    "a map that is none": ('map = "token"', "map.toml: `map` must be a table"),
    "another order": ('order = "time"', "map.toml: `order` must be `lines`"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_file_is_named(tmp_path, content, message):
    """A file that says what it must not is a UsageError with its name and the key."""
    path = tmp_path / "map.toml"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(UsageError, match=message):
        mapping.load(path)


def test_a_file_that_is_not_there(tmp_path):
    """A missing file, or a folder in its place, is a UsageError with its name."""
    with pytest.raises(UsageError, match="nowhere.toml: no such file"):
        mapping.load(tmp_path / "nowhere.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        mapping.load(tmp_path)


def test_a_file_that_cannot_be_written(tmp_path):
    """A place that cannot be written to is a UsageError with its name."""
    with pytest.raises(UsageError, match="nowhere.* cannot be written"):
        mapping.save(MappingSpec(), tmp_path / "nowhere" / "map.toml")
