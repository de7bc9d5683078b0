"""`python -m lithos`."""

import sys

from lithos.cli import main

sys.exit(main())
