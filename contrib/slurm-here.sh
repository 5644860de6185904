#!/bin/sh
# Runs a command with a Slurm cluster of this machine alone, and takes the cluster down afterwards:
#
#     contrib/slurm-here.sh srun -n 4 ./program
#
# Needs root, and the Debian packages munge, slurmctld, slurmd and slurm-client. Nothing outside of a temporary directory is
# changed; the daemons listen on loopback, at ports that were free, and end with this script, or when it is killed. SLOTS is
# the number of tasks that may run at a time (64).
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
# Debian's plugin for `srun --mpi=pmix` wants a link that only the package libpmix-dev has. It gets one in a mount namespace.
pmix=$(find /usr/lib -path '*/pmix2/lib/libpmix.so.2' 2>/dev/null | head -n 1)
pmix=${pmix%/*}
if [ -n "$pmix" ] && [ ! -e "$pmix/libpmix.so" ] && [ -z "${SLURM_HERE-}" ]; then
    SLURM_HERE=1 exec unshare --mount "$0" "$@"
fi
slots=${SLOTS:-64}
host=$(hostname)
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
mkdir -p "$dir/munge" "$dir/state" "$dir/spool"
head -c 1024 /dev/urandom >"$dir/munge/key"
chmod 700 "$dir/munge"
chmod 400 "$dir/munge/key"
cat >"$dir/slurm.conf" <<CONF
ClusterName=here$$
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
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
NodeName=$host NodeAddr=127.0.0.1 CPUs=$slots State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF

daemon munged munged --foreground --force --socket "$dir/munge/socket" --key-file "$dir/munge/key" \
    --pid-file "$dir/munge/pid" --log-file "$dir/munge/log" --seed-file "$dir/munge/seed" --num-threads 2
until_ready munge --no-input --socket "$dir/munge/socket"
export SLURM_CONF="$dir/slurm.conf"
daemon slurmctld slurmctld -D -i -f "$SLURM_CONF"
daemon slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
is_idle() { [ "$(sinfo --noheader --format=%t)" = idle ]; }
until_ready is_idle

set +e
"$@"
