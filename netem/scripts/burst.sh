#!/bin/sh
# 5 % of packets lost each way in bursts of three on average, 30 ms each way.
#
#   burst.sh [--print] TOWARD_CLIENT TOWARD_SERVER   on a router, its two devices
#   burst.sh [--print] --client DEVICE               on the client: what leaves it
#   burst.sh [--print] --server DEVICE               on the server: what leaves it
#
# --print shows the lines and runs none. clear.sh undoes them. The lines are those of the profile
# loss5-burst: python -m netem show loss5-burst

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

begin "$@"

# gemodel P R: the chances to begin a burst and to end it. 1/R is the mean burst, P/(P+R) the loss.
to_server root handle 7e: netem limit 100000 delay 30ms loss gemodel 1.7544% 33.333%
to_client root handle 7e: netem limit 100000 delay 30ms loss gemodel 1.7544% 33.333%

finish
