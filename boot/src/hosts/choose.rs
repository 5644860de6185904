//! Whether a job runs on other hosts, on which, and how they are reached: from options and
//! settings.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use argonet_settings::{
    AGENT, CSPAWN_CMD, CSPAWN_SERVERS, NODE_FILE, Reach, SPAWN_FUNCTION, SSH_CMD, SSH_NODE_FILE,
    SSH_OPTIONS, SSH_SERVERS, Settings,
};

use crate::error::BootError;
use crate::hosts::description::Way;
use crate::hosts::list::{Entry, HostListError, parse_file, parse_list};
use crate::hosts::words::split;
use crate::launch::NO_CONDUIT;

/// The longest file of hosts: some 128 bytes, a long name and a number, for each of the most hosts
/// that a job may have.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Options of the command line about the hosts of a job.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// Hosts as in `host1:2,host2:2`.
    pub hosts: Option<String>,
    /// A file with a host a line.
    pub file: Option<PathBuf>,
    /// Names of variables that ranks on other hosts get as the launcher has them, even if they are
    /// set there.
    pub propagate: Vec<String>,
    /// The command that is an agent, a call of [`agent`](crate::agent()); empty for this program
    /// with the argument `agent`.
    pub agent: Vec<OsString>,
}

/// Hosts that have been chosen.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) entries: Vec<Entry>,
    /// Source of the list, in words.
    pub(crate) source: String,
    pub(crate) way: Way,
    pub(crate) agent: Vec<OsString>,
}

/// The hosts of a job; `None` if it runs here, without agents.
pub(crate) fn choose(
    options: &HostOptions,
    conduit: &str,
    settings: &Settings,
) -> Result<Option<Hosts>, BootError> {
    let function = settings.get(&SPAWN_FUNCTION);
    let template = settings.get(&CSPAWN_CMD);
    // GASNet's letters: L this host, S a remote shell, C a command.
    let letter = function.unwrap_or(if template.is_some() { "C" } else { "S" });
    let named = options.hosts.is_some() || options.file.is_some();
    let may_spread = Reach::of(conduit, settings).hosts && conduit != NO_CONDUIT;
    if !named && (letter == "L" || (function.is_none() && !may_spread)) {
        return Ok(None);
    }
    let Some((entries, source)) = list(options, letter, settings)? else {
        return match function {
            Some(_) => Err(BootError::NoHosts { letter }),
            None => Ok(None),
        };
    };
    let way = match (letter, template) {
        ("L", _) => Way::Local,
        ("C", Some(template)) => Way::Template(template),
        ("C", None) => return Err(BootError::NoTemplate),
        _ => Way::Shell {
            command: settings.get(&SSH_CMD),
            options: shell_options(settings)?,
        },
    };
    let agent = agent(options, settings)?;
    Ok(Some(Hosts {
        entries,
        source,
        way,
        agent,
    }))
}

fn shell_options(settings: &Settings) -> Result<Vec<String>, BootError> {
    let text = settings.get(&SSH_OPTIONS).unwrap_or_default();
    split(&text).ok_or(BootError::OpenQuote { text })
}

fn agent(options: &HostOptions, settings: &Settings) -> Result<Vec<OsString>, BootError> {
    if let Some(path) = settings.get(&AGENT) {
        return Ok(vec![path.into(), "agent".into()]);
    }
    if !options.agent.is_empty() {
        return Ok(options.agent.clone());
    }
    let own = std::env::current_exe()
        .map_err(|e| BootError::system("finding the path of this program", e))?;
    Ok(vec![own.into(), "agent".into()])
}

/// The first list of hosts that there is, and its name.
fn list(
    options: &HostOptions,
    letter: &str,
    settings: &Settings,
) -> Result<Option<(Vec<Entry>, String)>, BootError> {
    let in_line = |text: &str, source: &str| {
        let entries = parse_list(text);
        let entries = entries.map_err(|error| BootError::BadHostList {
            list: source.into(),
            error,
        })?;
        Ok(Some((entries, source.to_owned())))
    };
    if let Some(hosts) = &options.hosts {
        return in_line(hosts, "-H");
    }
    if let Some(file) = &options.file {
        return read(file, "--hostfile").map(Some);
    }
    if letter == "C"
        && let Some(servers) = settings.get(&CSPAWN_SERVERS)
    {
        return in_line(&servers, CSPAWN_SERVERS.name());
    }
    if let Some(path) = settings.get(&SSH_NODE_FILE) {
        return read(&path, SSH_NODE_FILE.name()).map(Some);
    }
    if let Some(servers) = settings.get(&SSH_SERVERS) {
        return in_line(&servers, SSH_SERVERS.name());
    }
    match settings.get(&NODE_FILE) {
        Some(path) => read(&path, NODE_FILE.name()).map(Some),
        None => Ok(None),
    }
}

fn read(path: &PathBuf, source: &str) -> Result<(Vec<Entry>, String), BootError> {
    let list = format!("{source} {}", path.display());
    let mut text = String::new();
    // A limit, as a device may have no end.
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|e| BootError::system(format!("reading the list of hosts ({list})"), e))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let (bytes, most) = (text.len() as u64, MAX_FILE_BYTES);
        let error = HostListError::TooLong { bytes, most };
        return Err(BootError::BadHostList { list, error });
    }
    let entries = parse_file(&text).map_err(|error| BootError::BadHostList {
        list: list.clone(),
        error,
    })?;
    Ok((entries, list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        options: &HostOptions,
        conduit: &str,
        given: &[(&str, &str)],
    ) -> Result<Option<Hosts>, BootError> {
        let pairs = given.iter().map(|&(n, v)| (n.into(), v.into()));
        choose(options, conduit, &Settings::from_pairs(pairs).unwrap())
    }

    fn named(hosts: &str) -> HostOptions {
        HostOptions {
            hosts: Some(hosts.into()),
            ..HostOptions::default()
        }
    }

    #[test]
    fn a_job_is_here_unless_hosts_are_wanted() {
        let nothing = HostOptions::default();
        let servers = ("GASNET_SSH_SERVERS", "a b");
        for (conduit, given, here) in [
            ("smp", &[][..], true),
            ("tcp", &[], true),
            ("smp", &[servers], true),
            ("none", &[servers], true),
            ("tcp", &[servers], false),
            ("tcp", &[servers, ("GASNET_SPAWNFN", "L")], true),
            ("none", &[servers, ("GASNET_SPAWNFN", "S")], false),
        ] {
            let hosts = chosen(&nothing, conduit, given).unwrap();
            assert_eq!(hosts.is_none(), here, "{conduit} {given:?}");
        }
        assert!(chosen(&named("a"), "smp", &[]).unwrap().is_some());
    }

    #[test]
    fn a_long_file_is_not_read_to_its_end() {
        let path = std::env::temp_dir().join(format!("argonet-hosts-{}", std::process::id()));
        std::fs::write(&path, "#\n".repeat(MAX_FILE_BYTES as usize)).unwrap();
        let error = read(&path, "--hostfile").unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("at most 8388608 are read"), "{error}");
    }

    #[test]
    fn the_way_is_chosen_by_letter_and_template() {
        let way =
            |given: &[(&str, &str)]| chosen(&named("a,b"), "tcp", given).unwrap().unwrap().way;
        let template = ("GASNET_CSPAWN_CMD", "run %M %C");
        assert_eq!(way(&[template]), Way::Template("run %M %C".into()));
        assert_eq!(way(&[("GASNET_SPAWNFN", "L"), template]), Way::Local);
        let options = ("GASNET_SSH_OPTIONS", "-p 22 -i 'my key'");
        assert_eq!(
            way(&[options, ("GASNET_SSH_CMD", "rsh")]),
            Way::Shell {
                command: "rsh".into(),
                options: vec!["-p".into(), "22".into(), "-i".into(), "my key".into()],
            }
        );
        let error = |given: &[(&str, &str)], options: HostOptions| {
            chosen(&options, "tcp", given).unwrap_err().to_string()
        };
        let nothing = HostOptions::default;
        assert!(error(&[("GASNET_SPAWNFN", "C")], named("a")).contains("GASNET_CSPAWN_CMD"));
        assert!(error(&[("GASNET_SPAWNFN", "S")], nothing()).contains("--hostfile"));
        assert!(error(&[("GASNET_SSH_OPTIONS", "'x")], named("a")).contains("quote"));
        assert!(error(&[], named("a:x")).contains("(-H)"));
        let servers = ("GASNET_SSH_SERVERS", "a;b");
        assert!(error(&[servers], nothing()).contains("(GASNET_SSH_SERVERS)"));
        let file = ("GASNET_SSH_NODEFILE", "/nonexistent/hosts");
        assert!(
            error(&[file, servers], nothing()).contains("GASNET_SSH_NODEFILE /nonexistent/hosts")
        );
    }
}
