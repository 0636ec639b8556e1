"""`python -m quicserver` is `tenuto serve`."""

import sys

from tenuto.cli.main import main

sys.argv[1:1] = ["serve"]
main()
