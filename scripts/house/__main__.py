"""`python scripts/house COMMAND`: the scripts beside this folder end here."""

import sys
from pathlib import Path

# Python put this folder on the path; the package's name resolves from the one above.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from house.commands import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
