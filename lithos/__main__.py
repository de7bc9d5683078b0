"""`python -m lithos`."""

import sys

from lithos.app.main import main

sys.exit(main())
