//! Start on other hosts.

use super::{NO_SSH, NO_UDP};
use crate::kind::{DAY, Kind, TimeUnit, count};
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use std::path::PathBuf;
use std::time::Duration;

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

settings! {
    SSH_NODE_FILE: Option<PathBuf> = "GASNET_SSH_NODEFILE", Kind::Path, Preset::Unset, Scope::Rank,
        "The file with the hosts, a host a line, where `argonet run` is not given them; before GASNET_SSH_SERVERS.";
    SSH_SERVERS: Option<String> = "GASNET_SSH_SERVERS", Kind::Text, Preset::Unset, Scope::Rank,
        "The hosts, as in `a b` or `a:2,b:2`; before GASNET_NODEFILE.";
    NODE_FILE: Option<PathBuf> = "GASNET_NODEFILE", Kind::Path, Preset::Unset, Scope::Rank,
        "The file with the hosts.";
    SSH_CMD: String = "GASNET_SSH_CMD", Kind::Text, Preset::Is("ssh"), Scope::Rank,
        "The remote shell: a program that takes options, a host and one command.";
    SSH_OPTIONS: Option<String> = "GASNET_SSH_OPTIONS", Kind::Text, Preset::Unset, Scope::Rank,
        "Options of the remote shell, quoted as for a shell. Not -f: the remote shell carries the agent's messages.";
    SSH_OUT_DEGREE: u64 = "GASNET_SSH_OUT_DEGREE",
        Kind::Count { min: 0, max: u32::MAX as u64, unit: "hosts" }, Preset::Is("32"), Scope::Rank,
        "How many agents the launcher or an agent starts; 0 for all by the launcher.";
    SSH_REMOTE_PATH: Option<PathBuf> = "GASNET_SSH_REMOTE_PATH", Kind::Path, Preset::Unset, Scope::Rank,
        "The directory of ranks on the hosts of a job with agents; else that of the launcher.";
    CSPAWN_CMD: Option<String> = "GASNET_CSPAWN_CMD", Kind::Text, Preset::Unset, Scope::Rank,
        "The command that starts the agent %C on host %M, run once for each host; also %H (the host), %N (1), %D (the \
         directory), %P (the program), %%.";
    CSPAWN_SERVERS: Option<String> = "GASNET_CSPAWN_SERVERS", Kind::Text, Preset::Unset, Scope::Rank,
        "The hosts for GASNET_CSPAWN_CMD; before those for ssh.";
    AGENT: Option<PathBuf> = "ARGONET_AGENT", Kind::Path, Preset::Unset, Scope::Rank,
        "The `argonet` command on the hosts of a job, where it is not at the launcher's own path.";
    AGENT_TIMEOUT: Duration = "ARGONET_AGENT_TIMEOUT",
        Kind::Duration { unit: TimeUnit::Seconds, min: Duration::from_millis(100), max: DAY }, Preset::Is("30"), Scope::Rank,
        "After how long without a sign of life the launcher gives up a host, and the agent there ends its ranks.";
}

pub(crate) const IDLE: &[Row] = &[
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
