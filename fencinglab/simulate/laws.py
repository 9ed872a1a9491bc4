"""Laws of chance for times: constant, exponential, lognormal, Pareto, or what a log shows; all in whole microseconds.

Every law is asked from its upper end: `beyond(law, v)` is the time that is exceeded with probability v. So one uniform
number makes one time, a rare long one can be drawn on purpose, and its weight is known whatever the law.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencinglab.errors import UsageError
from fencinglab.logs.mapping import duration_text, parse_duration

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 1 << 50  # microseconds, 35 years: what is longer is cut, so that no sum overflows
FORMS = {
    "constant": "constant:TIME",
    "exponential": "exponential:MEAN",
    "lognormal": "lognormal:MEDIAN,SIGMA",
    "pareto": "pareto:LEAST,SHAPE",
}
_SHAPED = ("lognormal", "pareto")


class Law(NamedTuple):
    """How long something takes: `scale` in microseconds (mean, median or least time), `shape` without a unit."""

    name: str
    scale: float = 0.0
    shape: float = 0.0
    seen: tuple[int, ...] = ()  # observed: the times in ascending order

    def survival(self, time: float) -> float:
        """The probability that it takes longer than `time` microseconds."""
        if self.name == "observed":
            return sum(value > time for value in self.seen) / len(self.seen)
        if self.name == "constant" or self.scale == 0:
            return float(self.scale > time)
        if self.name == "exponential":
            return math.exp(-max(time, 0.0) / self.scale)
        if self.name == "pareto":
            return float((self.scale / max(time, self.scale)) ** self.shape)
        return math.erfc(math.log(time / self.scale) / self.shape / math.sqrt(2)) / 2 if time > 0 else 1.0

    def __str__(self) -> str:
        """The law as the command line reads it; of an observed one its middle."""
        if self.name == "observed":
            return f"observed, median {duration_text(self.seen[len(self.seen) // 2])}"
        if self.name == "constant":
            return duration_text(round(self.scale))
        shape = f",{self.shape:g}" if self.name in _SHAPED else ""
        return f"{self.name}:{duration_text(round(self.scale))}{shape}"


def observed(microseconds: Sequence[int]) -> Law:
    """The times that were seen, each as likely as it was frequent."""
    return Law("observed", seen=tuple(sorted(microseconds)))


def parse(text: str, option: str) -> Law:
    """The law that the text names; `30s` alone is constant. Anything else is a UsageError that names the option."""
    name, colon, rest = text.strip().partition(":")
    if not colon:
        name, rest = "constant", name
    if name not in FORMS:
        raise UsageError(f"{option} {text}: `{name}` is no law of chance (there are {', '.join(FORMS.values())})")
    numbers = [part.strip() for part in rest.split(",")]
    if len(numbers) != 1 + (name in _SHAPED):
        raise UsageError(f"{option} {text}: write {FORMS[name]}, such as {_example(name)}")
    if numbers[0].startswith("-"):
        raise UsageError(f"{option} {text}: {numbers[0]} is below zero, and a time is not")
    scale = float(parse_duration(numbers[0], f"{option} {name}:"))
    if scale == 0 and name != "constant":
        raise UsageError(f"{option} {text}: {numbers[0]} must be above zero; for no time at all write constant:0s")
    shape = _shape(numbers[1], text, option) if name in _SHAPED else 0.0
    if name == "pareto" and shape <= 1:
        raise UsageError(
            f"{option} {text}: a Pareto law of shape {shape:g} has no mean, so no average of it says anything; "
            "take a shape above 1"
        )
    return Law(name, scale, shape)


def _shape(number: str, text: str, option: str) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", number) or not 0 < float(number) <= 20:
        raise UsageError(f"{option} {text}: `{number}` is no number above 0 and up to 20")
    return float(number)


def _example(name: str) -> str:
    return {"lognormal": "lognormal:200ms,1.5", "pareto": "pareto:1s,1.5"}.get(name, f"{name}:5s")


def beyond(law: Law, v: Floats) -> Ints:
    """The times that are exceeded with these probabilities (above 0, up to 1), in microseconds."""
    times: Any
    if law.name == "observed":
        seen = np.asarray(law.seen, dtype=np.int64)
        place = np.minimum((1.0 - v) * len(seen), len(seen) - 1)  # of the least v, 1 - v is 1
        return np.minimum(seen[place.astype(np.int64)], LONGEST)
    if law.name == "constant" or law.scale == 0:
        return np.full(v.shape, round(law.scale), dtype=np.int64)
    if law.name == "exponential":
        times = np.log(v) * -law.scale
    elif law.name == "pareto":
        times = law.scale * v ** (-1.0 / law.shape)
    else:
        times = law.scale * np.exp(law.shape * upper_normal(v))
    whole: Ints = np.minimum(times, float(LONGEST)).astype(np.int64)
    return whole


def upper_normal(v: Floats) -> Floats:
    """The standard normal value that is exceeded with probability v (Wichura's AS 241, to 16 digits)."""
    q = 0.5 - v
    r = 0.180625 - q * q
    z: Floats = q * _ratio(r, _CENTRE)
    tail = np.flatnonzero(r < 0)
    if tail.size:
        far = np.sqrt(-np.log(np.minimum(v[tail], 1.0 - v[tail] + (v[tail] == 1.0) * 2.0**-53)))
        found = np.where(far <= 5.0, _ratio(far - 1.6, _TAIL), _ratio(far - 5.0, _FAR))
        z[tail] = np.copysign(found, q[tail])
    return z


def _ratio(x: Floats, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    above, below = (np.full(x.shape, c[0]) for c in coefficients)
    for a, b in zip(coefficients[0][1:], coefficients[1][1:], strict=True):
        above *= x
        above += a
        below *= x
        below += b
    ratio: Floats = above / below
    return ratio


# Numerator and denominator, the highest power first.
_CENTRE = (
    (
        2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
        1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0,
    ),
    (
        5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
        5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0,
    ),
)  # fmt: skip
_TAIL = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
        3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
        6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580e+0, 5.46378491116411436990e+0, 6.65790464350110377720e+0,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip
