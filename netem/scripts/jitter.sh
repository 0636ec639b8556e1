#!/bin/sh
# Delay around 30 ms each way that varies by 10 ms, in order and without loss.
#
#   jitter.sh [--print] TOWARD_CLIENT TOWARD_SERVER   on a router, its two devices
#   jitter.sh [--print] --client DEVICE               on the client: what leaves it
#   jitter.sh [--print] --server DEVICE               on the server: what leaves it
#
# --print shows the lines and runs none. clear.sh undoes them. The lines are those of the profile
# jitter: python -m netem show jitter

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

begin "$@"

# Without a rate netem would let packets overtake each other; at 10 Gbit/s it only keeps order.
to_server root handle 7e: netem limit 100000 delay 30ms 10ms distribution normal rate 10gbit
to_client root handle 7e: netem limit 100000 delay 30ms 10ms distribution normal rate 10gbit

finish
