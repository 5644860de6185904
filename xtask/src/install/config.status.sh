#!/bin/sh
# Fills what the installation knows of compilers and conduits into files of a client. Made by the installation.
usage='usage: config.status [--file=OUT:IN]...
Writes each file OUT with what IN says, where @PERL@, @CONDUITS@, @EXESUFFIX@, @CC_FAMILY@, @CXX_FAMILY@, @CC_SUBFAMILY@
and @CXX_SUBFAMILY@ are replaced. Without IN it is OUT.in; - is the standard output or input. Without options the files
are those of the variable CONFIG_FILES, with blanks between them.'

fail() {
    printf 'config.status: %s\n' "$1" >&2
    exit 1
}

fill() {
    sed \
        -e SUBSTITUTIONS \
        -- "$@"
}

one() {
    out=${1%%:*}
    in=${1#*:}
    [ "$1" != "$out" ] || in=$1.in
    [ -n "$out" ] && [ -n "$in" ] || fail "'$1' is not OUT:IN"
    [ "$in" = - ] || [ -r "$in" ] || fail "$in cannot be read"
    if [ "$out" = - ]; then
        fill "$in"
        return
    fi
    directory=$(dirname -- "$out")
    mkdir -p -- "$directory" || fail "$directory cannot be made"
    # A reader never sees half of it.
    fill "$in" >"$out.$$" && mv -f -- "$out.$$" "$out" || {
        rm -f -- "$out.$$"
        fail "$out cannot be written"
    }
    printf 'config.status: creating %s\n' "$out"
}

some=
while [ $# -gt 0 ]; do
    case $1 in
    --file=*)
        some=1
        one "${1#--file=}"
        shift
        ;;
    --file)
        [ $# -ge 2 ] || fail '--file needs a value'
        some=1
        one "$2"
        shift 2
        ;;
    -h | --help)
        printf '%s\n' "$usage"
        exit 0
        ;;
    *) fail "unknown option $1
$usage" ;;
    esac
done
[ -z "$some" ] || exit 0
[ -n "$CONFIG_FILES" ] || fail "CONFIG_FILES names no file
$usage"
# There are none of these to make.
for kind in HEADERS LINKS COMMANDS; do
    eval "value=\$CONFIG_$kind"
    [ -z "$value" ] || fail "CONFIG_$kind=$value: nothing of that kind is known here"
done
for pair in $CONFIG_FILES; do
    one "$pair"
done
