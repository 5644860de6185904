//! Jobs over hosts that go on without ranks, and without whole hosts.

use rustix::process::{Signal, kill_process};

use super::ending::named_process;
use crate::losses::{CALL, CALLS, POLICY, SEED, survived};
use crate::network::Network;
use crate::support::Job;

fn over(network: &Network, conduit: &str, ranks: u32, hosts: &str, program: &str) -> Job {
    let job = Job::over_conduit(conduit, ranks, hosts, program);
    let job = job.env("GASNET_CSPAWN_CMD", &network.template());
    job.env(POLICY, "continue")
}

/// Ranks die, in any place and at any time.
pub(in crate::hosts) fn of_ranks() {
    let network = Network::new(&["a", "b", "c"]);
    for conduit in ["tcp", "usnic"] {
        let over = |ranks, hosts, program| over(&network, conduit, ranks, hosts, program);
        survived(8, &over(8, "a:3,b:2,c:3", "lost-again").run());
        survived(4, &over(4, "a:1,b:2,c:1", "lost-leaving").run());
        for seed in 0..3 {
            let job = over(6, "a:2,b:2,c:2", "lost-traffic");
            survived(6, &job.env(SEED, &seed.to_string()).run());
        }
        for call in 0..CALLS.len() {
            let job = over(4, "a:2,b:1,c:1", "lost-calls");
            survived(4, &job.env(CALL, &call.to_string()).run());
        }
    }
}

/// The agent of a host dies, and the ranks there with it.
pub(in crate::hosts) fn of_a_host() {
    let network = Network::new(&["a", "b", "c"]);
    for conduit in ["tcp", "usnic"] {
        for host in ["a", "b", "c"] {
            let job = over(&network, conduit, 6, "a:2,b:2,c:2", "lost-host");
            let job = job.env("GASNET_SPAWN_VERBOSE", "1");
            let outcome = job.run_with(|talk| {
                let begin = format!("argonet run: host {host}: the agent is process ");
                let agent = named_process(talk, &begin);
                talk.line_with("all are ready");
                kill_process(agent, Signal::KILL).expect("a process that lives");
            });
            assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
            let outcome = outcome.says(&[
                "its agent was killed by signal 9",
                "; the job goes on without ranks ",
            ]);
            assert_eq!(outcome.out.lines().count(), 4, "{outcome:#?}");
        }
    }
}

/// The network between one host and the others fails; the launcher reaches all of them.
pub(in crate::hosts) fn of_a_host_without_network() {
    for call in ["barriers", "puts", "calls"] {
        let network = Network::new(&["a", "b", "c"]);
        let job = over(&network, "tcp", 3, "a,b,c", "lost-network").env(CALL, call);
        let job = job.env("ARGONET_TCP_UNREACHABLE_TIMEOUT", "1");
        let outcome = job.run_with(|talk| {
            talk.line_with("all are ready");
            network.filter(
                "b",
                "iifname \"eth*\" meta l4proto tcp counter reject with tcp reset",
            );
        });
        assert_eq!(outcome.code(), Some(0), "{outcome:#?}");
        outcome.says(&["cannot reach each other over any network; rank 1 is killed"]);
    }
}
