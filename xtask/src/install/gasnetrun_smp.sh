#!/bin/sh
# Runs a program of the smp conduit, whose first process starts the other ranks.
usage='usage: gasnetrun_smp -n RANKS [-N NODES] [-E VARIABLE[,VARIABLE...]] [-v] PROGRAM [ARGUMENT...]
  -n, -np RANKS   number of ranks
  -N NODES        number of hosts: 1, as smp has no other
  -E VARIABLES    variables for the program; it gets all others too, but these must be set
  -v              print the command before it runs'

fail() {
    printf 'gasnetrun_smp: %s\n%s\n' "$1" "$usage" >&2
    exit 2
}

number() {
    case $2 in
    '' | *[!0-9]* | 0*) fail "$1 needs a number above 0, not '$2'" ;;
    esac
}

ranks=
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
        [ "$2" = 1 ] || fail "-N $2: the ranks of smp share one host"
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
[ -z "$verbose" ] || printf 'gasnetrun_smp: GASNET_PSHM_NODES=%s %s\n' "$ranks" "$*" >&2
GASNET_PSHM_NODES=$ranks
export GASNET_PSHM_NODES
exec "$@"
