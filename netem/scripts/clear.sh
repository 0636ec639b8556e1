#!/bin/sh
# Takes away what the scripts here have put there, and nothing else: root qdiscs with our handle,
# 7e:, and the nft table inet tenuto_netem. Run it as often as you like.
#
#   clear.sh [--print] [DEVICE...]
#
# Without a device it looks on all of them. --print shows the lines and runs none.

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

devices=
for word in "$@"; do
    case $word in
        --help | -h) help ;;
        --print) print=yes ;;
        -*) fail "there is no option $word, see --help" 2 ;;
        *) devices="$devices $word" ;;
    esac
done
[ "$(id -u)" = 0 ] || fail 'needs root, also to look'
# What cannot be looked at is said at the end: the rest is taken away first.
trouble=
if command -v tc > /dev/null; then
    all=$(tc qdisc show | sed -n "s/^qdisc \(netem\|tbf\) $ours dev \([^ ]*\) root .*/\2/p")
    for device in ${devices:-$all}; do
        if ! has_device "$device"; then
            trouble="there is no device $device here; ip link lists them"
        elif is_ours "$device"; then
            run tc qdisc del dev "$device" root handle "$ours"
        fi
    done
else
    trouble='there is no tc here to look for qdiscs with; install iproute2'
fi
if has_table; then run nft "delete table inet $table"; fi
[ -z "$trouble" ] || fail "$trouble"
if [ "$print" = yes ]; then
    [ -n "$shown" ] || echo '# nothing of ours is there'
    exit 0
fi
echo "$script: nothing of ours is left${devices:+ on$devices}"
