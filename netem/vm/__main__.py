"""`python -m netem.vm`: fetch the kernel of the machine that has a real netem."""

import argparse
import sys

from netem.vm.packages import META_PACKAGE, NoMachineError, cache_directory, fetch_kernel, missing


def main() -> None:
    """Every expected failure is one line on standard error."""
    what = f"Download Debian's {META_PACKAGE} into {cache_directory()}; nothing is installed."
    argparse.ArgumentParser(prog="python -m netem.vm", description=what).parse_args()
    kernel = fetch_kernel()
    print(f"kernel {kernel.release} in {kernel.image.parent.parent}")
    if (reason := missing()) is not None:
        raise NoMachineError(reason)


try:
    main()
except NoMachineError as error:
    sys.exit(f"netem.vm: {error}")
except KeyboardInterrupt:
    print("netem.vm: interrupted", file=sys.stderr)
    sys.exit(130)
