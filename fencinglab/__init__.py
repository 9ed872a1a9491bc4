"""Which writes had no right to be made: leases, fencing tokens and the logs that show them.

`fencinglab.history` holds the one table that everything writes or reads; the command line is
`fencinglab replay NAME` and `fencinglab audit LOG`. Importing this package loads nothing but the standard library.
"""

__version__ = "0.1.0"
