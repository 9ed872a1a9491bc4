"""SQL for what the images of an item hold, read as structs of their attributes."""

from __future__ import annotations

from collections.abc import Sequence

from fencinglab import history
from fencinglab.logs import unwrap
from fencinglab.logs.mapping import MappingSpec
from fencinglab.logs.sample import Look
from fencinglab.logs.unwrap import identifier

TOKENS = ("token", "written_token")
_MOST = 200  # attributes that make up an image
_COLLECTIONS = {"M", "L", "SS", "NS", "BS", "OBJECT", "ARRAY"}  # typed and plain
_ANY = ("value", "next_poll")  # compared only, so they may be maps and sets


class Item:
    """SQL for the attributes of an image, which is read as a struct.

    Of each mapped attribute only the types are read that the sample shows, since each costs time: a record with
    another one has no resource, and its file is read again as `of_any_type`.
    """

    def __init__(self, spec: MappingSpec, seen: Look, any_type: bool = False) -> None:
        self.spec, self.seen = spec, seen
        self.tokens = [name for key in TOKENS for name in spec.names(key)]
        mapped = [(key, name) for key in spec.fields for name in spec.names(key)]
        mapped += [("", name) for name in spec.rising]
        collections = {name for name, tags in seen.attributes.items() if tags & _COLLECTIONS}
        self.scalars = list(dict.fromkeys(n for key, n in mapped if key not in _ANY or n not in collections))
        self.nested = collections - set(self.scalars)
        # names of a struct differ by more than case; of two that do not, the mapped one stays
        every = [*(n for _, n in mapped), *spec.protect, *seen.attributes][:_MOST]
        self.names = list({n.lower(): n for n in reversed(every)}.values())
        self.tags = {}  # of what is read typed: the tags of a text, a number or nothing
        for name in self.scalars if seen.typed else ():
            wide = ("S", "N", "NULL") if name in self.tokens else ("S", "N")
            known = tuple(tag for tag in ("S", "N", "NULL") if tag in seen.attributes.get(name, ()))
            self.tags[name] = wide if any_type or not set(known) & {"S", "N"} else known
        self.closed = [] if any_type else [n for n in self.tags if seen.attributes.get(n, set()) & {"S", "N"}]

    def of_any_type(self) -> Item:
        """The same attributes, whatever type their values have."""
        return Item(self.spec, self.seen, True)

    def odd(self) -> str:
        """Whether a mapped attribute has a value of a type that is not read."""
        tests = [
            f"({image}.{identifier(name)} is not null and coalesce({', '.join(self._tagged(name, image))}) is null)"
            for image in ("now", "old")
            for name in self.closed
        ]
        return " or ".join(tests) or "false"

    def _tagged(self, name: str, image: str, tags: Sequence[str] = ("N", "S", "NULL")) -> list[str]:
        """The values of an attribute under its tags, of which one is not null."""
        return [f'{image}.{identifier(name)}."{tag}"' for tag in tags if tag in self.tags[name]]

    def record(self) -> dict[str, str]:
        """{name: type} of the members of one record, spelled as the log spells them."""
        image = "struct(" + ", ".join(f"{identifier(n)} {self._type(n)}" for n in self.names) + ")"
        inner = {
            "ApproximateCreationDateTime": "varchar", "Keys": "json", "NewImage": image, "OldImage": image,
            "SequenceNumber": "varchar",
        }  # fmt: skip
        outer = {"eventID": "varchar", "eventName": "varchar", "eventSourceARN": "varchar", "userIdentity": "varchar"}
        outer["dynamodb"] = "struct(" + ", ".join(f'"{self.seen.spelled(n)}" {of}' for n, of in inner.items()) + ")"
        return {self.seen.spelled(name): of for name, of in outer.items()}

    def _type(self, name: str) -> str:
        if not self.seen.typed:
            return "varchar"
        if name not in self.tags:
            return "json"
        return "struct(" + ", ".join(f'"{self.seen.spelled(tag)}" varchar' for tag in self.tags[name]) + ")"

    def scalar(self, name: str | None, image: str) -> str:
        """The attribute's text or number, as text; null where it is missing or something else."""
        if name is None:
            return "null::varchar"
        if name not in self.tags:
            return f"{image}.{identifier(name)}"
        first, *others = self._tagged(name, image, ("N", "S"))
        return f"coalesce({', '.join((first, *others))})" if others else first

    def comparable(self, name: str, image: str) -> str:
        """What of the attribute is equal where its value is, in whatever order the members of a map or set stand."""
        value = self.scalar(name, image)
        return f"fingerprint({value})" if name in self.nested else value

    def image(self, image: str) -> str:
        """One number for everything in the image, whatever its order; also where there is no image."""
        parts = ", ".join(self.comparable(name, image) for name in self.names)
        return f"hash({parts or '1'})"

    def hashed(self, names: Sequence[str], image: str, key: str) -> str:
        """The keyed hash of several attributes together; null where all are missing."""
        if not names:
            return "null::varchar"
        scalars = ", ".join(self.comparable(n, image) for n in names)
        joined = f"{scalars}::varchar" if len(names) == 1 else f"nullif(concat_ws(chr(31), {scalars}), '')"
        return f"keyed({unwrap.text(key)}, {joined})"

    def changed(self, names: Sequence[str]) -> str:
        """Whether any of the attributes differs between the two images."""
        sides = ((self.comparable(n, "was"), self.comparable(n, "now")) for n in dict.fromkeys(names))
        tests = (f"{was} is distinct from {now}" for was, now in sides)
        return " or ".join(tests) or "false"

    def fell(self, names: Sequence[str]) -> str:
        """The first of the attributes that fell, empty where none did, null where one is not known."""
        if not names:
            return "null::varchar"
        was, now = ([f"try_cast({self.scalar(n, i)} as decimal(38,9))" for n in names] for i in ("was", "now"))
        fallen = " ".join(f"when {b} < {a} then {unwrap.text(n)}" for n, a, b in zip(names, was, now, strict=True))
        known = " and ".join(f"({b} is not null or {a} is null)" for a, b in zip(was, now, strict=True))
        return f"case when was is null or now is null then null {fallen} when {known} then '' end"

    def width(self, name: str | None) -> str:
        """Characters of the stored token where it is text, 0 where it is a number."""
        if name is None or not self.seen.typed:
            return "null::integer"
        number, text = ((self._tagged(name, "now", (tag,)) or ["null"])[0] for tag in "NS")
        return f"case when {number} is not null then 0 else length({text}) end"

    def there(self, name: str | None) -> str:
        """Whether the attribute has a value in the new image, of whatever type."""
        if name is None:
            return "false"
        value = f"now.{identifier(name)}"
        if not self.seen.typed:
            return f"coalesce({value}, 'null') <> 'null'"
        nothing = self._tagged(name, "now", ("NULL",))
        return f"({value} is not null{''.join(f' and {tag} is null' for tag in nothing)})"

    def fault(self) -> str:
        """Why the record cannot be used, or null; never with the value, which is payload."""
        rounded = f"not regexp_full_match(sequence, '[0-9]{{1,{history.ORDER_DIGITS}}}')"
        faults = {
            rounded: f"the sequence number is not 1 to {history.ORDER_DIGITS} digits (rounded by a spreadsheet?)",
        }
        if self.seen.bare:  # a double keeps 17 digits
            faults["regexp_full_match(sequence, '[0-9]{17}0+')"] = "the sequence number was rounded (by JavaScript?)"
        of_key = next((name for name in self.seen.of_key if name in self.names and name not in self.scalars), None)
        if of_key:
            begins = ", ".join(f"{image}.{identifier(of_key)}" for image in ("now", "old"))
            odd = f"starts_with(coalesce({begins}), '{{') = {not self.seen.typed}"
            faults[odd] = "its values are not written as those of the others"
        return "case " + " ".join(f"when {test} then {unwrap.text(why)}" for test, why in faults.items()) + " end"
