"""`python -m netem`: put any command behind a bad network."""

from netem.cli import main

if __name__ == "__main__":
    main()
