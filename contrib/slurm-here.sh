#!/bin/sh
# Runs a command with a Slurm cluster of this machine alone, and takes the cluster down afterwards:
#
#     contrib/slurm-here.sh srun -n 4 ./program
#
# Needs root, and the Debian packages munge, slurmctld, slurmd and slurm-client. Nothing outside of a temporary directory is
# changed; the daemons listen on loopback, at ports that were free, and end with this script, or when it is killed. SLOTS is
# the number of tasks that may run at a time on a node (64).
#
#     NODES=2 contrib/slurm-here.sh srun --mpi=pmi2 -N 2 -n 4 ./program
#
# has two nodes, node1 and node2, which are network namespaces (package iproute2). The command runs in that of node1.
set -eu

fail() {
    echo "slurm-here: $1" >&2
    exit 125
}

[ $# -gt 0 ] || fail 'give the command to run'
[ "$(id -u)" = 0 ] || fail 'only root can run the daemons'
for program in munged slurmctld slurmd srun; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || fail "$program is not installed"
done
PATH=$PATH:/usr/sbin
if [ "${NODES:-1}" = 2 ] && [ -z "${SLURM_HERE_SPACE-}" ]; then
    command -v ip >/dev/null || fail 'ip is not installed'
    export SLURM_HERE_SPACE=slurm-here-$$
    remove() {
        code=$?
        trap - EXIT HUP INT TERM
        for node in node1 node2; do
            ip netns pids "$SLURM_HERE_SPACE-$node" | xargs -r kill -9 2>/dev/null || :
            ip netns del "$SLURM_HERE_SPACE-$node" || :
        done
        exit $code
    }
    trap remove EXIT
    trap 'exit 129' HUP INT TERM
    for node in node1 node2; do ip netns add "$SLURM_HERE_SPACE-$node"; done
    ip link add eth0 netns "$SLURM_HERE_SPACE-node1" type veth peer name eth0 netns "$SLURM_HERE_SPACE-node2"
    for node in node1 node2; do
        ip -n "$SLURM_HERE_SPACE-$node" addr add "10.76.0.${node#node}/24" dev eth0
        ip -n "$SLURM_HERE_SPACE-$node" link set lo up
        ip -n "$SLURM_HERE_SPACE-$node" link set eth0 up
    done
    code=0
    setpriv --pdeathsig TERM -- nsenter "--net=/run/netns/$SLURM_HERE_SPACE-node1" "$0" "$@" || code=$?
    exit $code
fi
# Debian's plugin for `srun --mpi=pmix` wants a link that only the package libpmix-dev has. It gets one in a mount namespace.
pmix=$(find /usr/lib -path '*/pmix2/lib/libpmix.so.2' 2>/dev/null | head -n 1)
pmix=${pmix%/*}
if [ -n "$pmix" ] && [ ! -e "$pmix/libpmix.so" ] && [ -z "${SLURM_HERE-}" ]; then
    SLURM_HERE=1 exec unshare --mount "$0" "$@"
fi
slots=${SLOTS:-64}
host=$(hostname)
nodes=$host
[ -z "${SLURM_HERE_SPACE-}" ] || nodes='node1 node2'
dir=$(mktemp -d /tmp/slurm-here.XXXXXX)
daemons=

finish() {
    code=$?
    trap - EXIT HUP INT TERM
    # Steps outlive slurmd.
    if [ -n "$daemons" ] && squeue --noheader 2>/dev/null | grep -q .; then
        timeout 5 scancel --quiet --user root || :
        tries=0
        while squeue --noheader 2>/dev/null | grep -q . && [ $tries -lt 100 ]; do
            tries=$((tries + 1))
            sleep 0.05
        done
    fi
    for pid in $daemons; do kill -9 "$pid" 2>/dev/null || :; done
    for pid in $daemons; do wait "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
    exit $code
}
trap finish EXIT
trap 'exit 129' HUP INT TERM

# A daemon ends with this script, even if that is killed.
daemon() {
    name=$1
    shift
    setpriv --pdeathsig TERM -- "$@" >"$dir/$name.out" 2>&1 </dev/null &
    daemons="$! $daemons"
}

# What a node's address is.
address() {
    case $nodes in
    "$host") echo 127.0.0.1 ;;
    *) echo "10.76.0.${1#node}" ;;
    esac
}

# A daemon of a node.
daemon_of() {
    node=$1
    name=$2-$node
    shift
    case $nodes in
    "$host") daemon "$name" "$@" ;;
    *)
        # shellcheck disable=SC2016
        daemon "$name" nsenter "--net=/run/netns/$SLURM_HERE_SPACE-$node" \
            unshare --uts sh -c 'hostname "$0"; exec "$@"' "$node" "$@"
        ;;
    esac
}

until_ready() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 400 ] || { tail -n 5 "$dir"/*.out "$dir"/*.log >&2; fail "no answer: $*"; }
        sleep 0.05
    done
}

# Ports that nobody listens at, above those that systems give away by themselves.
port=$((61000 + $$ % 2000 * 2))

chmod 755 "$dir"
if [ -n "${SLURM_HERE-}" ]; then
    mkdir "$dir/pmix"
    cp -a "$pmix/." "$dir/pmix"
    ln -s libpmix.so.2 "$dir/pmix/libpmix.so"
    mount --bind "$dir/pmix" "$pmix"
fi
mkdir -p "$dir/munge" "$dir/state"
for node in $nodes; do mkdir "$dir/spool-$node" "$dir/tmp-$node"; done
head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 700 "$dir/munge"
chmod 400 "$dir/munge/key"
cat >"$dir/slurm.conf" <<CONF
ClusterName=here$$
SlurmctldHost=${nodes%% *}($(address "${nodes%% *}"))
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
InactiveLimit=0
KillWait=1
$(for node in $nodes; do echo "NodeName=$node NodeAddr=$(address "$node") CPUs=$slots State=UNKNOWN"; done)
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF

daemon munged munged --foreground --force --socket "$dir/munge/socket" --key-file "$dir/munge/key" \
    --pid-file "$dir/munge/pid" --log-file "$dir/munge/log" --seed-file "$dir/munge/seed" --num-threads 2
until_ready munge --no-input --socket "$dir/munge/socket"
export SLURM_CONF="$dir/slurm.conf"
daemon_of "${nodes%% *}" slurmctld -D -i -f "$SLURM_CONF"
for node in $nodes; do daemon_of "$node" slurmd -D -f "$SLURM_CONF" -N "$node"; done
is_idle() { [ "$(sinfo --noheader --format=%t)" = idle ]; }
until_ready is_idle

set +e
"$@"
