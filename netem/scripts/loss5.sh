#!/bin/sh
# 5 % of packets lost at random each way, 30 ms each way.
#
#   loss5.sh [--print] TOWARD_CLIENT TOWARD_SERVER   on a router, its two devices
#   loss5.sh [--print] --client DEVICE               on the client: what leaves it
#   loss5.sh [--print] --server DEVICE               on the server: what leaves it
#
# --print shows the lines and runs none. clear.sh undoes them. The lines are those of the profile
# loss5: python -m netem show loss5

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

begin "$@"

to_server root handle 7e: netem limit 100000 delay 30ms loss 5%
to_client root handle 7e: netem limit 100000 delay 30ms loss 5%

finish
