//! Start on other hosts.

use super::{NO_SSH, NO_UDP};
use crate::kind::{Kind, count};
use crate::row::{Row, Scope};

const BATCH: &str = "argonet does not start ranks on the hosts of a batch job in this version";

const fn ssh(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_SSH)
}

const fn batch(name: &'static str, kind: Kind, about: &'static str) -> Row {
    Row::idle(
        name,
        kind,
        "set by the batch system",
        Scope::Job,
        about,
        BATCH,
    )
}

const fn udp(name: &'static str, kind: Kind, preset: &'static str, about: &'static str) -> Row {
    Row::idle(name, kind, preset, Scope::Job, about, NO_UDP)
}

pub(crate) const IDLE: &[Row] = &[
    ssh(
        "GASNET_SSH_NODEFILE",
        Kind::Path,
        "",
        "The file with the hosts; before GASNET_SSH_SERVERS.",
    ),
    ssh(
        "GASNET_SSH_SERVERS",
        Kind::Text,
        "",
        "The hosts; before GASNET_NODEFILE.",
    ),
    ssh(
        "GASNET_NODEFILE",
        Kind::Path,
        "",
        "The file with the hosts.",
    ),
    batch("PBS_NODEFILE", Kind::Path, "The hosts of a PBS job."),
    batch("PE_HOSTFILE", Kind::Path, "The hosts of a Grid Engine job."),
    batch("SSS_HOSTLIST", Kind::Text, "The hosts of an SSS job."),
    batch("LSB_HOSTS", Kind::Text, "The hosts of an LSF job."),
    batch("OAR_NODEFILE", Kind::Path, "The hosts of an OAR job."),
    batch(
        "SLURM_JOB_ID",
        Kind::Text,
        "The Slurm job whose hosts are asked for.",
    ),
    ssh("GASNET_SSH_CMD", Kind::Path, "ssh", "The remote shell."),
    ssh(
        "GASNET_SSH_OPTIONS",
        Kind::Text,
        "none",
        "Options of the remote shell.",
    ),
    ssh(
        "GASNET_SSH_OUT_DEGREE",
        count("hosts"),
        "32",
        "How many hosts a host starts; 0 for all.",
    ),
    ssh(
        "GASNET_SSH_REMOTE_PATH",
        Kind::Path,
        "the working directory",
        "The directory on other hosts.",
    ),
    ssh(
        "GASNET_SSH_KEEPDUP",
        Kind::Boolean,
        "0",
        "Keeps hosts that are listed twice.",
    ),
    ssh(
        "GASNET_MASTERIP",
        Kind::Text,
        "the address of this host's name",
        "The address that other hosts connect to.",
    ),
    udp("SSH_CMD", Kind::Path, "ssh", "The remote shell (udp)."),
    udp("SSH_SERVERS", Kind::Text, "", "The hosts (udp)."),
    udp(
        "SSH_OPTIONS",
        Kind::Text,
        "none",
        "Options of the remote shell (udp).",
    ),
    udp(
        "SSH_REMOTE_PATH",
        Kind::Path,
        "the working directory",
        "The directory on other hosts (udp).",
    ),
    udp(
        "AMUDP_SSH_CMD",
        Kind::Path,
        "ssh",
        "The remote shell (udp).",
    ),
    udp("AMUDP_SSH_SERVERS", Kind::Text, "", "The hosts (udp)."),
    udp(
        "AMUDP_SSH_OPTIONS",
        Kind::Text,
        "none",
        "Options of the remote shell (udp).",
    ),
    udp(
        "AMUDP_SSH_REMOTE_PATH",
        Kind::Path,
        "the working directory",
        "The directory on other hosts (udp).",
    ),
    udp(
        "CSPAWN_CMD",
        Kind::Text,
        "",
        "The command that starts the ranks (udp).",
    ),
    udp(
        "CSPAWN_SERVERS",
        Kind::Text,
        "",
        "The hosts for that command (udp).",
    ),
    udp(
        "CSPAWN_ROUTE_OUTPUT",
        Kind::Boolean,
        "0",
        "Routes the output of ranks started by that command (udp).",
    ),
    udp(
        "CSPAWN_USE_CREATE_PROCESS",
        Kind::Boolean,
        "0",
        "Of old Windows systems (udp).",
    ),
    udp(
        "GASNET_CSPAWN_CMD",
        Kind::Text,
        "",
        "The command that starts the ranks (udp).",
    ),
    udp(
        "GASNET_CSPAWN_SERVERS",
        Kind::Text,
        "",
        "The hosts for that command (udp).",
    ),
    udp(
        "GASNET_CSPAWN_ROUTE_OUTPUT",
        Kind::Boolean,
        "0",
        "Routes the output of ranks started by that command (udp).",
    ),
    udp(
        "GASNET_CSPAWN_USE_CREATE_PROCESS",
        Kind::Boolean,
        "0",
        "Of old Windows systems (udp).",
    ),
    udp(
        "AMUDP_CSPAWN_CMD",
        Kind::Text,
        "",
        "The command that starts the ranks (udp).",
    ),
    udp(
        "AMUDP_CSPAWN_SERVERS",
        Kind::Text,
        "",
        "The hosts for that command (udp).",
    ),
    udp(
        "AMUDP_CSPAWN_ROUTE_OUTPUT",
        Kind::Boolean,
        "0",
        "Routes the output of ranks started by that command (udp).",
    ),
    udp(
        "AMUDP_CSPAWN_USE_CREATE_PROCESS",
        Kind::Boolean,
        "0",
        "Of old Windows systems (udp).",
    ),
    udp(
        "GASNET_WORKER_RANK",
        Kind::Text,
        "none",
        "This process's rank, or the variable that holds it (udp).",
    ),
    udp(
        "GASNET_ROUTE_OUTPUT",
        Kind::Boolean,
        "1",
        "Sends the ranks' output to the master (udp).",
    ),
    udp(
        "GASNET_LINEBUFFERSZ",
        count("bytes"),
        "1024",
        "The line buffer of routed output; 0 for none (udp).",
    ),
    udp(
        "AMUDP_MASTERIP",
        Kind::Text,
        "",
        "As GASNET_MASTERIP (udp).",
    ),
    udp(
        "AMUDP_WORKERIP",
        Kind::Text,
        "",
        "As GASNET_WORKERIP (udp).",
    ),
    udp(
        "AMUDP_WORKER_RANK",
        Kind::Text,
        "",
        "As GASNET_WORKER_RANK (udp).",
    ),
    udp(
        "AMUDP_ROUTE_OUTPUT",
        Kind::Boolean,
        "",
        "As GASNET_ROUTE_OUTPUT (udp).",
    ),
    udp(
        "AMUDP_LINEBUFFERSZ",
        count("bytes"),
        "",
        "As GASNET_LINEBUFFERSZ (udp).",
    ),
];
