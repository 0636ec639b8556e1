"""`python -m tenuto.cli`, where the console script is not on the path."""

from tenuto.cli.start import main

main()
