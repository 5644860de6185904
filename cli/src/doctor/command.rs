//! The command line, and the course of an examination.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use argonet_boot::{BootError, HostOptions, VisitOptions, Visits, launcher_here, visit};
use argonet_settings::{SUPERNODE_MAXSIZE, Settings, TCP_CONNECTIONS, USNIC_ROW};
use clap::Args;

use super::connect::{Attempts, Found, Other};
use super::facts::Facts;
use super::finding::{Finding, Level, Patient, Report};
use super::judge::{self, Seen};
use super::look::Question;
use super::{network, paths};

/// The conduit that ranks on several hosts use.
const CONDUIT: &str = "tcp";

/// Time limit of a host for the report of its facts.
const FACTS_LIMIT: Duration = Duration::from_secs(20);

/// The exit code for what cannot be used: options, settings, a list of hosts.
const BAD_USE: u8 = 2;

/// Find out whether a job over these hosts would work, and what to change where it would not
#[derive(Args)]
pub(crate) struct Doctor {
    /// Hosts with the number of ranks that each takes, as `argonet run` has it
    #[arg(
        short = 'H',
        long,
        value_name = "HOST[:N],...",
        conflicts_with = "hostfile"
    )]
    hosts: Option<String>,
    /// File with a host a line
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// Number of ranks of the job that is spoken of [default: as many as the hosts take]
    #[arg(short = 'n', long, value_name = "N")]
    ranks: Option<u64>,
    /// Seconds that a connection between two hosts may take
    #[arg(long, value_name = "S", default_value = "3", value_parser = crate::run::seconds)]
    wait: Duration,
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Examines; 0 if a job would work, 1 if not.
    pub(crate) fn execute(self) -> ExitCode {
        let settings = match Settings::from_environment() {
            Ok(settings) => settings,
            Err(error) => return refuse(&error),
        };
        settings.keep_quiet();
        let options = VisitOptions {
            hosts: HostOptions {
                hosts: self.hosts,
                file: self.hostfile,
                propagate: Vec::new(),
                agent: Vec::<OsString>::new(),
            },
            ranks: self.ranks,
        };
        let neighbors = match settings.get(&SUPERNODE_MAXSIZE) {
            0 => u32::MAX,
            most => u32::try_from(most).unwrap_or(u32::MAX),
        };
        let connections = settings.get(&TCP_CONNECTIONS);
        // Others do without datagrams.
        let datagrams = match settings.get(&argonet_settings::CONDUIT) == USNIC_ROW.name {
            true => Level::Problem,
            false => Level::Warning,
        };
        let launcher = launcher_here(&settings);
        let examined = visit(&options, CONDUIT, &settings, |visits| {
            let mut report = examine(visits, self.wait, datagrams, |seen, size| {
                judge::files(seen, size, neighbors, connections)
            });
            report.findings.insert(0, judge::launcher(&launcher));
            report
        });
        let report = match examined {
            Ok(Some(report)) => report,
            Ok(None) => {
                let (found, _) = launcher;
                return refuse(&format!(
                    "no hosts are named: use -H or --hostfile, or set GASNET_SSH_NODEFILE, GASNET_SSH_SERVERS or GASNET_NODEFILE. \
                     Other launcher of this process: {found}"
                ));
            }
            Err(error @ BootError::System { .. }) => {
                complain(&error);
                return ExitCode::FAILURE;
            }
            Err(error) => return refuse(&error),
        };
        let text = match self.json {
            true => report.json(),
            false => report.text(),
        };
        let written = std::io::stdout().write_all(text.as_bytes());
        if let Err(error) = &written {
            complain(&format!("writing the report failed: {error}"));
        }
        match (written, report.is_well()) {
            (Ok(()), true) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

fn complain(what: &dyn std::fmt::Display) {
    eprintln!("argonet doctor: {what}");
}

fn refuse(what: &dyn std::fmt::Display) -> ExitCode {
    complain(what);
    BAD_USE.into()
}

/// Asks all hosts, and judges; `datagrams` is the level of a fault of these, `files` whether a job
/// of that size may open as many as it needs.
fn examine(
    visits: &mut Visits<'_>,
    wait: Duration,
    datagrams: Level,
    files: impl Fn(&[Seen], u32) -> Vec<Finding>,
) -> Report {
    let (begun, asked) = (Instant::now(), SystemTime::now());
    let answers = visits.ask(|_| Some(Question::Look.encode()), FACTS_LIMIT);
    let (took, size) = (
        begun.elapsed(),
        visits.hosts().last().map_or(0, |h| h.ranks.end),
    );
    let mut seen: Vec<Seen> = Vec::new();
    let mut findings: Vec<Finding> = Vec::new();
    for (host, answer) in visits.hosts().iter().zip(answers) {
        let facts = answer.map(|answer| serde_json::from_slice::<Facts>(&answer));
        match (&host.lost, facts) {
            (None, Some(Ok(facts))) => seen.push(Seen {
                name: host.name.clone(),
                ranks: host.ranks.clone(),
                greeted: host.greeted.unwrap_or_default(),
                facts,
            }),
            (lost, facts) => {
                let why = match (lost, facts) {
                    (Some(lost), _) => lost.clone(),
                    (None, Some(Err(error))) => format!("its agent's answer is none: {error}"),
                    (None, _) => "its agent gave no answer".into(),
                };
                findings.push(judge::lost(&host.name, &why, &host.stderr, visits.way()));
            }
        }
    }
    findings.extend(judge::reached(&seen, visits.way()));
    findings.extend(judge::versions(&seen));
    findings.extend(judge::interfaces(&seen));
    findings.extend(judge::doors(&seen));
    findings.extend(connect(visits, &seen, wait, datagrams));
    findings.extend(judge::mtu(&seen));
    findings.extend(files(&seen, size));
    findings.extend(judge::memory(&seen));
    let asked = asked.duration_since(UNIX_EPOCH).unwrap_or_default();
    findings.extend(judge::clocks(&seen, asked, took));
    // Problems come last, where they are seen; the order of the checks stays.
    findings.sort_by_key(|finding| finding.level);
    let patients = visits.hosts().iter().map(|host| Patient {
        name: host.name.clone(),
        first_rank: host.ranks.start,
        ranks: host.ranks.end - host.ranks.start,
        answered_ms: host.greeted.map(|time| time.as_secs_f64() * 1e3),
    });
    Report {
        way: visits.way().to_owned(),
        hosts: patients.collect(),
        findings,
    }
}

/// Lets every host that can be asked connect to all others, and send them datagrams.
fn connect(
    visits: &mut Visits<'_>,
    seen: &[Seen],
    wait: Duration,
    datagrams: Level,
) -> Vec<Finding> {
    if seen.len() < 2 {
        return Vec::new();
    }
    let names: Vec<String> = visits
        .hosts()
        .iter()
        .map(|host| host.name.clone())
        .collect();
    let others = |own: &str| {
        let others = seen.iter().filter(|other| other.name != own);
        let other = |other: &Seen| Other {
            host: other.name.clone(),
            doors: other.facts.doors.clone(),
        };
        others.map(other).collect::<Vec<_>>()
    };
    let with_mailboxes = paths::with_mailboxes(seen);
    let mailboxes: Vec<_> = with_mailboxes.iter().map(|(_, mailbox)| *mailbox).collect();
    let place = |own: &str| {
        let place = with_mailboxes.iter().position(|(host, _)| host.name == own);
        place.and_then(|place| u32::try_from(place).ok())
    };
    let question = |i: usize| {
        let name = names.get(i)?;
        let me = seen.iter().find(|host| host.name == *name)?;
        let others = others(&me.name);
        let attempts = Attempts {
            others,
            mailboxes: mailboxes.clone(),
            own_mailbox: place(&me.name),
            wait,
        };
        Some(Question::Connect(attempts).encode())
    };
    let most = seen.iter().map(|host| host.facts.doors.len()).max();
    let limit = super::connect::limit(seen.len(), most.unwrap_or(0), wait);
    let answers = visits.ask(question, limit);
    let mut findings = Vec::new();
    let (mut ways, mut known) = (Vec::new(), Vec::new());
    for (host, answer) in visits.hosts().iter().zip(answers) {
        let Some(answer) = answer else {
            if let Some(why) = &host.lost
                && seen.iter().any(|seen| seen.name == host.name)
            {
                findings.push(judge::lost(&host.name, why, &host.stderr, visits.way()));
            }
            continue;
        };
        match serde_json::from_slice(&answer) {
            Ok(Found { probes, paths }) => {
                ways.push((host.name.clone(), probes));
                known.extend(place(&host.name).map(|place| (place, paths)));
            }
            Err(error) => findings.push(Finding {
                level: Level::Problem,
                check: "network",
                hosts: vec![host.name.clone()],
                found: format!("{}'s agent gave an answer that is none: {error}", host.name),
                need: None,
                remedy: Some("install the same version of argonet on all hosts".into()),
            }),
        }
    }
    findings.extend(network::judge(seen, &ways, wait));
    findings.extend(paths::judge(seen, &known, wait, datagrams));
    findings
}
