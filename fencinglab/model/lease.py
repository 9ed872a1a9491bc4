"""The authority: it grants, renews and ends leases, and issues a fencing token with every grant.

Pure functions over one frozen value. Times are whole seconds; a lease runs out by itself, when its time has come.
"""

from __future__ import annotations

from typing import NamedTuple

NOBODY = ""


class Lease(NamedTuple):
    """What the authority keeps of one lease; as in a table, a holder whose time ran out stays written down."""

    token: int  # the newest token issued
    holder: str = NOBODY  # to whom it was granted; nobody before the first grant and after a release
    expires_at: int = 0  # from this second on it has run out


def fresh(first_token: int) -> Lease:
    """A lease that nobody ever held; the first grant will issue `first_token`."""
    return Lease(token=first_token - 1)


def held_by(lease: Lease, now: int) -> str:
    """Whose unexpired lease it is; empty when it is nobody's."""
    return lease.holder if now < lease.expires_at else NOBODY


def grant(lease: Lease, worker: str, now: int, length: int, delay: int = 0) -> Lease | None:
    """The lease in the worker's hands under a higher token, or None while it runs and for `delay` seconds after.

    The token rises with every grant, also to the same holder. A released lease is free at once.
    """
    if lease.holder and now < lease.expires_at + delay:
        return None
    return Lease(lease.token + 1, worker, now + length)


def renew(lease: Lease, worker: str, token: int, now: int, length: int) -> Lease | None:
    """The lease with new time and the same token, or None unless it is this worker's, under this token, and running."""
    if (held_by(lease, now), lease.token) != (worker, token):
        return None
    return lease._replace(expires_at=now + length)


def release(lease: Lease, worker: str, token: int) -> Lease | None:
    """The lease free for the next grant, its token kept; None unless the worker is its holder under this token."""
    if (lease.holder, lease.token) != (worker, token):
        return None
    return Lease(lease.token)


def why_not(lease: Lease, worker: str, token: int) -> str:
    """Why a renewal or a release was refused, in one word: newer_token, not_held or expired."""
    if token < lease.token:
        return "newer_token"
    return "expired" if (lease.holder, lease.token) == (worker, token) else "not_held"


def restore(lease: Lease, token: int, floor: bool = False) -> Lease:
    """The lease after the authority came back from a backup: nobody holds it and its last token is an older one.

    With a `floor`, a counter kept where backups and deletions do not reach it, the token never falls.
    """
    return Lease(max(token, lease.token) if floor else token)
