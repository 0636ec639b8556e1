# shellcheck shell=sh
# What the scripts here share; each of them sources it. It reads the arguments, refuses to touch
# a qdisc that is not ours, runs or prints each line, undoes all of them when one fails, and looks
# afterwards whether they are there.

ours=7e:             # the handle of our root qdisc
table=tenuto_netem   # our nft table, family inet
print=no             # --print: show the lines, run none
client_side=         # the device toward the client
server_side=         # the device toward the server
needs=tc             # what a script runs: tc or nft
shown=               # whether --print has shown a line
script=${0##*/}
set -f               # a device may be called *

fail() {
    printf '%s: %s\n' "$script" "$1" >&2
    exit "${2:-1}"
}

# The comment at the top of a script is its help.
help() {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
}

read_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
            --help | -h) help ;;
            --print) print=yes ;;
            --client | --server)
                [ $# -gt 1 ] || fail "$1 needs the name of a device" 2
                [ -z "$client_side$server_side" ] || fail "$1 stands alone, with one device" 2
                if [ "$1" = --client ]; then server_side=$2; else client_side=$2; fi
                shift
                [ $# -eq 1 ] || [ "$2" = --print ] || fail "one device is enough here, see --help" 2
                ;;
            -*) fail "there is no option $1, see --help" 2 ;;
            *)
                if [ -z "$client_side" ]; then
                    client_side=$1
                elif [ -z "$server_side" ]; then
                    server_side=$1
                else
                    fail "one device too many: $1" 2
                fi
                positional=$((${positional:-0} + 1))
                ;;
        esac
        shift
    done
    [ -n "$client_side$server_side" ] || fail 'name two devices, or one with --client or --server, see --help' 2
    [ "${positional:-2}" -eq 2 ] ||
        fail 'a router needs both devices: toward the client, toward the server; on an end host give --client or --server' 2
    [ "$client_side" != "$server_side" ] || fail 'the two devices must differ' 2
}

# Reads the arguments, then makes room: takes away what an earlier run left, refuses all else.
begin() {
    read_arguments "$@"
    for device in $client_side $server_side; do
        case $device in
            *[!A-Za-z0-9_.@-]*) fail "not the name of a device: $device" 2 ;;
        esac
    done
    [ "$print" = no ] || return 0
    [ "$(id -u)" = 0 ] || fail 'needs root; --print shows the lines without running them'
    command -v "$needs" > /dev/null ||
        fail "there is no $needs here; install iproute2 for tc, nftables for nft"
    for device in $client_side $server_side; do
        has_device "$device" || fail "there is no device $device here; ip link lists them"
        [ "$needs" = nft ] || check_root "$device"
    done
    undo
    # Half of the lines would be another network than the one that was asked for.
    trap 'stopped 129' HUP
    trap 'stopped 130' INT
    trap 'stopped 143' TERM
}

stopped() {
    trap '' HUP INT TERM
    undo
    fail 'stopped, and nothing is left of it' "$1"
}

# Not /sys/class/net, which may show another namespace's devices.
has_device() { cut -d : -f 1 /proc/self/net/dev | tr -d ' ' | grep -qxF -e "$1"; }

# Whoever put a root qdisc there wants it: handle 0: is the kernel's own, 7e: is ours.
check_root() {
    root=$(tc qdisc show dev "$1" | grep ' root ' | head -n 1)
    case $root in
        '' | 'qdisc '*' 0: root '* | "qdisc netem $ours root "* | "qdisc tbf $ours root "*) ;;
        *) fail "$1 has a root qdisc that is not ours, and stays as it is: $root" ;;
    esac
}

is_ours() {
    command -v tc > /dev/null &&
        tc qdisc show dev "$1" 2> /dev/null | grep -q "^qdisc \(netem\|tbf\) $ours root "
}

has_table() {
    command -v nft > /dev/null && nft list table inet "$table" > /dev/null 2>&1
}

# Takes away what an earlier run or this one has put there, and nothing else: qdiscs for a script
# of tc, the table for one of nft, so that loss5.sh and block-udp443.sh can be had together.
undo() {
    if [ "$needs" = nft ]; then
        if has_table; then nft "delete table inet $table"; fi
        return 0
    fi
    for device in $client_side $server_side; do
        if is_ours "$device"; then tc qdisc del dev "$device" root handle "$ours"; fi
    done
}

# The line as one would type it.
show() {
    if [ "$1" = nft ]; then printf "nft '%s'\n" "$2"; else printf '%s\n' "$*"; fi
}

run() {
    if [ "$print" = yes ]; then
        # shellcheck disable=SC2034 # clear.sh looks at it
        shown=yes
        show "$@"
    elif ! said=$("$@" 2>&1); then
        undo
        case $said in
            *'qdisc kind is unknown'*)
                fail "this kernel lacks what $script needs, and nothing is left of it. It says: $said
Load it with modprobe sch_netem sch_tbf, or do without it: python -m netem run PROFILE -- COMMAND"
                ;;
            *) fail "nothing is left of it, for this line failed: $(show "$@")
It says: $said" ;;
        esac
    fi
}

# What leaves toward the server, and what leaves toward the client; nothing on the side of a host
# that is an end itself.
to_server() { [ -z "$server_side" ] || run tc qdisc add dev "$server_side" "$@"; }
to_client() { [ -z "$client_side" ] || run tc qdisc add dev "$client_side" "$@"; }

finish() {
    [ "$print" = no ] || return 0
    if [ "$needs" = nft ]; then
        has_table || fail "nft took the lines, but there is no table inet $table"
    else
        for device in $client_side $server_side; do
            is_ours "$device" || fail "tc took the lines, but $device has no qdisc $ours"
        done
    fi
    echo "$script: done on $client_side${client_side:+${server_side:+ and }}$server_side; undo with clear.sh"
}
