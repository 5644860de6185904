#!/bin/sh
# Runs a program by the conduit @CONDUIT@. The program's first process starts the ranks, on the hosts that the environment names.
own=${0##*/}
usage="usage: $own -np RANKS [-N HOSTS] [-E VARIABLE[,VARIABLE...]] [-v] PROGRAM [ARGUMENT...]
  -np, -n RANKS   number of ranks
  -N HOSTS        use so many hosts of GASNET_SSH_SERVERS (or SSH_SERVERS), the first ones
  -E VARIABLES    variables for the program; it gets all others too, but these must be set
  -v              print the command before it runs
GASNET_SPAWNFN=L starts all ranks on this host, S by ssh on the hosts of GASNET_SSH_SERVERS, C by GASNET_CSPAWN_CMD on those of
GASNET_CSPAWN_SERVERS. Without these the ranks are on this host."

fail() {
    printf '%s: %s\n%s\n' "$own" "$1" "$usage" >&2
    exit 2
}

number() {
    case $2 in
    '' | *[!0-9]* | 0*) fail "$1 needs a number above 0, not '$2'" ;;
    esac
}

ranks=
hosts=
verbose=
while [ $# -gt 0 ]; do
    case $1 in
    -n | -np | -N | -E)
        [ $# -ge 2 ] || fail "$1 needs a value"
        ;;
    esac
    case $1 in
    -n | -np)
        number "$1" "$2"
        ranks=$2
        shift 2
        ;;
    -N)
        number "$1" "$2"
        hosts=$2
        shift 2
        ;;
    -E)
        for name in $(printf '%s' "$2" | tr ',' ' '); do
            case $name in
            [0-9]* | *[!A-Za-z0-9_]*) fail "-E: '$name' is no name of a variable" ;;
            esac
            env | grep -q "^$name=" || fail "-E: $name is not set"
        done
        shift 2
        ;;
    -v)
        verbose=1
        shift
        ;;
    -h | --help)
        printf '%s\n' "$usage"
        exit 0
        ;;
    --)
        shift
        break
        ;;
    -*) fail "unknown option $1" ;;
    *) break ;;
    esac
done
[ -n "$ranks" ] || fail 'the number of ranks is missing'
[ $# -gt 0 ] || fail 'the program is missing'
program=$1
shift
# The names that GASNet's udp conduit has beside these.
[ -n "$GASNET_SSH_SERVERS" ] || [ -z "$SSH_SERVERS" ] || export GASNET_SSH_SERVERS="$SSH_SERVERS"
# One host without a name is this one.
if [ -n "$hosts" ] && { [ "$hosts" != 1 ] || [ -n "$GASNET_SSH_SERVERS" ]; }; then
    [ -n "$GASNET_SSH_SERVERS" ] || fail "-N $hosts: GASNET_SSH_SERVERS names no hosts"
    list=$(printf '%s' "$GASNET_SSH_SERVERS" | tr ',\t' '  ' | tr -s ' ' '\n' | head -n "$hosts")
    [ "$(printf '%s\n' "$list" | wc -l)" -eq "$hosts" ] ||
        fail "-N $hosts: GASNET_SSH_SERVERS names fewer hosts: $GASNET_SSH_SERVERS"
    GASNET_SSH_SERVERS=$(printf '%s' "$list" | tr '\n' ' ')
    export GASNET_SSH_SERVERS
fi
ARGONET_CONDUIT=@CONDUIT@
export ARGONET_CONDUIT
# The program would fork them itself.
unset GASNET_PSHM_NODES
case $program in
*/*) ;;
*)
    found=$(command -v "$program") || fail "the program '$program' was not found"
    program=$found
    ;;
esac
[ -x "$program" ] || fail "the program $program cannot be run: it is not there, or is no program"
# The program sees its arguments alone: some read them before they join the job.
ARGONET_LAUNCH_RANKS=$ranks
export ARGONET_LAUNCH_RANKS
[ -z "$verbose" ] ||
    printf '%s: ARGONET_CONDUIT=@CONDUIT@ ARGONET_LAUNCH_RANKS=%s %s %s\n' "$own" "$ranks" "$program" "$*" >&2
exec "$program" "$@"
