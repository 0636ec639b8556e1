"""`python -m netem.vm`: fetch the kernel of the machine that has a real netem."""

import sys

from netem.vm.packages import NoMachineError, fetch_kernel, missing

try:
    kernel = fetch_kernel()
except NoMachineError as error:
    sys.exit(f"netem.vm: {error}")
print(f"kernel {kernel.release} in {kernel.image.parent.parent}")
if (reason := missing()) is not None:
    sys.exit(f"netem.vm: {reason}")
