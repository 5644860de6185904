//! A job over hosts that loses one of its processes in the middle of its work ends, says which, and
//! leaves nothing.

use rustix::process::{Pid, Signal, kill_process};

use super::over;
use super::storm::rounds;
use crate::network::Network;
use crate::support::{Outcome, Talk};

/// A storm that goes on when `victim` has found what to kill.
fn kill(network: &Network, victim: fn(&mut Talk<'_>) -> Pid) -> Outcome {
    let job = over(network, 3, "a,b,c", "storm-over-hosts").env("GASNET_SPAWN_VERBOSE", "1");
    job.run_with(|talk| {
        let victim = victim(talk);
        rounds(talk, 2);
        kill_process(victim, Signal::KILL).expect("a process that lives");
    })
}

/// The number after the last blank of a line that begins like this.
pub(super) fn named_process(talk: &mut Talk<'_>, begin: &str) -> Pid {
    let line = talk.line_with(begin);
    let number = line[begin.len()..]
        .split(',')
        .next()
        .and_then(|n| n.trim().parse().ok());
    Pid::from_raw(number.expect(&line)).expect("a process id")
}

pub(super) fn killed() {
    let network = Network::new(&["a", "b", "c"]);
    let outcome = kill(&network, |talk| {
        named_process(talk, "argonet run: host b: rank 1 is process ")
    });
    assert_eq!(outcome.code(), Some(137), "{outcome:#?}");
    outcome.says(&["rank 1 (pid ", "was killed by signal 9 (SIGKILL)"]);

    let outcome = kill(&network, |talk| {
        named_process(talk, "argonet run: host c: the agent is process ")
    });
    assert_eq!(outcome.code(), Some(1), "{outcome:#?}");
    outcome.says(&["host c (rank 2): its agent was killed by signal 9"]);

    let outcome = kill(&network, |talk| talk.pid);
    assert_eq!(outcome.code(), Some(137), "{outcome:#?}");
}
