#!/bin/sh
# A good 4G line: 9 Mbit/s down, 1.5 up, 30 ms and some jitter each way, 0.2 % lost.
#
#   4g.sh [--print] TOWARD_CLIENT TOWARD_SERVER   on a router, its two devices
#   4g.sh [--print] --client DEVICE               on the client: what leaves it
#   4g.sh [--print] --server DEVICE               on the server: what leaves it
#
# --print shows the lines and runs none. clear.sh undoes them. The lines are those of the profile
# 4g: python -m netem show 4g

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

begin "$@"

# Delay, loss and order first; below them the rate, with a queue of 100 packets. The rate is that of
# IP packets, so the 14 bytes of Ethernet are taken off each.
to_server root handle 7e: netem limit 100000 delay 30ms 5ms distribution normal loss 0.2% rate 10gbit
to_server parent 7e:1 handle 7f: netem limit 100 rate 1.5mbit -14
to_client root handle 7e: netem limit 100000 delay 30ms 5ms distribution normal loss 0.2% rate 10gbit
to_client parent 7e:1 handle 7f: netem limit 100 rate 9mbit -14

finish
