"""`python -m tenuto.cli`, where the console script is not on the path."""

from tenuto.cli.main import main

main()
