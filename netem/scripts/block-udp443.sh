#!/bin/sh
# UDP to and from the server's port 443 does not pass, TCP does: is the fallback quick?
#
#   block-udp443.sh VARIANT [--print] TOWARD_CLIENT TOWARD_SERVER   on a router, its two devices
#   block-udp443.sh VARIANT [--print] --client DEVICE               on the client
#   block-udp443.sh VARIANT [--print] --server DEVICE               on the server
#
# VARIANT is one of
#   drop             it vanishes
#   reject           it is answered: ICMP port unreachable
#   prohibit         it is answered: ICMP administratively prohibited
#   first-packet     the first packet of a flow passes each way, and no other
#   after-handshake  the first 20 packets of a flow pass each way, and no other
#   throttle         8 kbit/s of it pass each way
#
# On an end host, what it sends itself is refused to its program instead: sendto fails with
# "Operation not permitted". Block it on the router or on the other end to have it lost.
#
# --print shows the lines and runs none. clear.sh undoes them. The lines are those of the profiles
# udp-blocked-VARIANT (udp-blocked-throttled for throttle), with --udp-port 443.

set -eu
# shellcheck source=common.sh
. "$(dirname "$(readlink -f "$0")")/common.sh"

variant=${1:-}
first=0
police=
case $variant in
    drop) verdict='counter drop' ;;
    reject) verdict='counter reject with icmpx port-unreachable' ;;
    prohibit) verdict='counter reject with icmpx admin-prohibited' ;;
    first-packet) verdict='counter drop' first=1 ;;
    after-handshake) verdict='counter drop' first=20 ;;
    # A second of the rate and 2,000 bytes on top: two full packets pass at once.
    throttle) police='limit rate over 1000 bytes/second burst 2000 bytes counter drop' ;;
    --help | -h) help ;;
    *) fail "the variant comes first: drop, reject, prohibit, first-packet, after-handshake, throttle" 2 ;;
esac
shift
# shellcheck disable=SC2034  # common.sh reads it
needs=nft
begin "$@"

# The chain and the devices of each direction.
if [ -n "$client_side" ] && [ -n "$server_side" ]; then
    chains=forward
    up="forward iifname \"$client_side\" oifname \"$server_side\""
    down="forward iifname \"$server_side\" oifname \"$client_side\""
elif [ -n "$client_side" ]; then
    chains='input output'
    up="input iifname \"$client_side\""
    down="output oifname \"$client_side\""
else
    chains='input output'
    up="output oifname \"$server_side\""
    down="input iifname \"$server_side\""
fi

# A set remembers the flows of a direction and a family: a table of counters, each with its limit.
flows() {
    run nft "add set inet $table $1 { type $2 . inet_service . $2 . inet_service ; size 65536 ; flags dynamic,timeout ; timeout 1h ; }"
}

# The rules of a direction: its name, its chain and devices, the side of the server's port.
rules() {
    if [ -n "$police" ]; then
        run nft "add rule inet $table $2 udp $3 443 $police comment \"policed $1\""
    elif [ "$first" = 0 ]; then
        run nft "add rule inet $table $2 udp $3 443 $verdict comment \"blocked $1\""
    else
        for family in ip ip6; do
            flow="$family saddr . udp sport . $family daddr . udp dport"
            over="limit rate over 1/day burst $first packets"
            run nft "add rule inet $table $2 udp $3 443 update @$1_$family { $flow $over } $verdict comment \"blocked $1\""
        done
    fi
}

run nft "create table inet $table"
for chain in $chains; do
    run nft "add chain inet $table $chain { type filter hook $chain priority 0 ; policy accept ; }"
done
if [ "$first" != 0 ]; then
    flows up_ip ipv4_addr
    flows up_ip6 ipv6_addr
    flows down_ip ipv4_addr
    flows down_ip6 ipv6_addr
fi
rules up "$up" dport
rules down "$down" sport
finish
