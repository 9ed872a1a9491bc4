"""`python -m fencinglab` is the command line."""

import sys

from fencinglab.cli import main

sys.exit(main())
