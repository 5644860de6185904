//! `./prog N args...`: a program whose ranks may be on several hosts and that is its own launcher,
//! and its own agent on each host, as programs of GASNet's udp conduit are.

use std::ffi::{OsStr, OsString};

use argonet_settings::{CONDUIT, ConduitRow, PSHM_NODES, Reach, SPAWN_FUNCTION, Settings};

use crate::attach::BOOT_VARIABLE;
use crate::error::BootError;
use crate::foreign::is_one_of_several;
use crate::hosts::{Answers, HostOptions, Post, agent};
use crate::launch::{LaunchOptions, NO_CONDUIT, launch};
use crate::sigact::Action;
use crate::sys;

/// The variable that gives a program a role other than rank.
const ROLE_VARIABLE: &str = "ARGONET_ROLE";
const AGENT: &str = "agent";

/// Number of ranks of a launcher script, which leaves the program's arguments alone.
const LAUNCH_RANKS_VARIABLE: &str = "ARGONET_LAUNCH_RANKS";

/// The conduit of GASNet whose jobs spread over hosts by `GASNET_SPAWNFN`.
const SPREADING: &str = "udp";

/// If this process is not a rank but has to start some, or to be the agent of a host, does so until
/// the job has ended: the code to exit with.
///
/// A program is to call this before it attaches, with its arguments, its name first, and the
/// conduit that it was linked with.
///
/// It starts ranks of itself. Their number is the first argument, which they do not get, or that of
/// `ARGONET_LAUNCH_RANKS`, so that programs see the arguments that users gave from the beginning.
/// It does so if `ARGONET_CONDUIT` names a conduit for ranks that share no memory, or is not given
/// and the program was linked with such a conduit, or neither is so and `GASNET_SPAWNFN` is given;
/// and not if `GASNET_PSHM_NODES` says that it forks ranks, or if another launcher has started
/// several processes.
///
/// `ARGONET_LAUNCH_RANKS` is gone afterwards, so that children of a program that starts no ranks do
/// not start some; it stays where the process has several threads, which may read the environment.
///
/// # Errors
/// A number of ranks that is missing or none, and all that [`launch`](crate::launch()) refuses.
pub fn launch_self(
    linked: &str,
    args: impl IntoIterator<Item = OsString>,
    settings: &Settings,
) -> Result<Option<u8>, BootError> {
    let by_script = take_launch_ranks();
    if std::env::var_os(BOOT_VARIABLE).is_some() {
        return Ok(None);
    }
    if std::env::var_os(ROLE_VARIABLE).is_some_and(|role| role == AGENT) {
        sys::remove_variable(ROLE_VARIABLE);
        bear_closed_pipes();
        return agent(answers_nothing).map(Some);
    }
    let conduit = conduit(linked, settings);
    let forks = settings.get(&PSHM_NODES) > 0;
    if !is_network(conduit, settings) || forks || is_one_of_several() {
        return Ok(None);
    }
    let mut args = args.into_iter();
    let name = args.next().unwrap_or_default();
    let ranks = match by_script {
        Some(given) => number_by_script(&name, &given)?,
        None => number(&name, args.next(), conduit)?,
    };
    let threads = sys::thread_count().map_err(|e| BootError::system("counting threads", e))?;
    if threads != 1 {
        let what = "the guardian of the ranks";
        return Err(BootError::SecondThread { threads, what });
    }
    let own = std::env::current_exe()
        .map_err(|e| BootError::system("finding the path of this program", e))?;
    let options = LaunchOptions {
        ranks,
        program: own.clone().into(),
        args: args.collect(),
        conduit: Some(conduit.into()),
        bind: false,
        tag_output: false,
        timeout: None,
        on_rank_lost: None,
        hosts: HostOptions {
            agent: vec![
                "env".into(),
                format!("{ROLE_VARIABLE}={AGENT}").into(),
                own.into(),
            ],
            ..HostOptions::default()
        },
    };
    bear_closed_pipes();
    launch(&options, settings).map(Some)
}

/// Launchers and agents write to pipes whose other ends may have gone, and find that out by the
/// error: a program in C would be killed for it, unlike one of Rust's.
///
/// Ranks are started with the default again.
pub(crate) fn bear_closed_pipes() {
    Action::ignoring().install(libc::SIGPIPE);
}

/// Whether ranks that share no memory reach each other through a conduit.
fn is_network(conduit: &str, settings: &Settings) -> bool {
    Reach::of(conduit, settings).neighborhoods && conduit != NO_CONDUIT
}

/// The conduit that the ranks would use.
fn conduit<'a>(linked: &'a str, settings: &Settings) -> &'a str {
    let chosen = settings.get(&CONDUIT);
    match (settings.given(&CONDUIT), settings.get(&SPAWN_FUNCTION)) {
        (Some(_), _) => chosen,
        (None, Some(_)) if !is_network(linked, settings) => {
            ConduitRow::linked_as(SPREADING).map_or(linked, |row| row.name)
        }
        (None, _) => linked,
    }
}

/// Takes the number that a launcher script has left for this process alone.
fn take_launch_ranks() -> Option<OsString> {
    let given = std::env::var_os(LAUNCH_RANKS_VARIABLE)?;
    sys::remove_variable(LAUNCH_RANKS_VARIABLE);
    Some(given)
}

/// The number of ranks, which is the first argument.
fn number(name: &OsStr, first: Option<OsString>, conduit: &str) -> Result<u64, BootError> {
    let number = first.as_deref().and_then(parsed);
    number.ok_or_else(|| BootError::NoRankCount {
        program: name.to_string_lossy().into_owned(),
        given: match &first {
            Some(first) => format!("\"{}\"", first.to_string_lossy()),
            None => "missing".into(),
        },
        conduit: conduit.into(),
    })
}

/// The number of ranks, which a launcher script has given.
fn number_by_script(name: &OsStr, given: &OsStr) -> Result<u64, BootError> {
    parsed(given).ok_or_else(|| BootError::BadLaunchRanks {
        program: name.to_string_lossy().into_owned(),
        given: given.to_string_lossy().into_owned(),
    })
}

/// A number of ranks, in decimal digits alone.
fn parsed(text: &OsStr) -> Option<u64> {
    let text = text.to_str()?;
    let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits?.parse().ok().filter(|number| *number > 0)
}

/// An agent within a program answers no questions; `argonet` starts its own agent to ask a host.
fn answers_nothing(_: Post) -> Answers {
    Box::new(|_| Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter().map(|&(n, v)| (n.into(), v.into()));
        Settings::from_pairs(pairs).unwrap()
    }

    #[test]
    fn the_setting_chooses_the_conduit_then_the_spawner_then_the_program() {
        let spawner = ("GASNET_SPAWNFN", "L");
        let smp = ("ARGONET_CONDUIT", "smp");
        assert_eq!(conduit("smp", &given(&[])), "smp");
        assert_eq!(conduit("tcp", &given(&[])), "tcp");
        assert_eq!(conduit("smp", &given(&[spawner])), "tcp");
        assert_eq!(conduit("portals", &given(&[])), "portals");
        assert_eq!(conduit("portals", &given(&[spawner])), "portals");
        assert_eq!(conduit("tcp", &given(&[spawner, smp])), "smp");
        assert_eq!(conduit("smp", &given(&[("ARGONET_CONDUIT", "tcp")])), "tcp");
    }

    #[test]
    fn a_number_of_ranks_is_a_number() {
        let read = |text: &str| number("./prog".as_ref(), Some(text.into()), "tcp");
        assert_eq!(read("7").unwrap(), 7);
        for bad in ["", "0", "-1", "+1", "2x", "1e3", "99999999999999999999"] {
            let text = read(bad).unwrap_err().to_string();
            assert!(text.contains(&format!("\"{bad}\"")), "{text}");
            assert!(text.contains("./prog 4 ARGUMENTS"), "{text}");
        }
        let missing = number("./prog".as_ref(), None, "tcp").unwrap_err();
        assert!(missing.to_string().contains("is missing"));
        assert_eq!(missing.exit_code(), 2);
    }

    #[test]
    fn a_bad_number_of_a_script_is_blamed_on_its_variable() {
        let read = |text: &str| number_by_script("./prog".as_ref(), text.as_ref());
        assert_eq!(read("7").unwrap(), 7);
        for bad in ["", "0", "-1", "2x", "99999999999999999999"] {
            let error = read(bad).unwrap_err();
            let text = error.to_string();
            let begin = format!("ARGONET_LAUNCH_RANKS is \"{bad}\", which is no number of ranks");
            assert!(text.starts_with(&begin), "{text}");
            assert!(text.contains("./prog 4 ARGUMENTS"), "{text}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
