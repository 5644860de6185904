//! Agents without ranks, which are asked about their hosts.

use super::rig::{TEMPLATE, clean};
use crate::support::{Job, Outcome, Test, this_program};

pub(super) const TESTS: &[Test] = &[
    ("hosts_are_asked_and_answer", answers),
    ("hosts_that_cannot_be_asked_hide_no_other", lost),
];

fn ask(hosts: &str, template: &str, questions: &[&str]) -> Outcome {
    let this = this_program();
    let job = Job::program(&[&[&this, "__visit", hosts], questions].concat());
    let job = clean(job).env(TEMPLATE.0, template);
    job.env("ARGONET_AGENT_TIMEOUT", "0.5").run()
}

fn answers() {
    let outcome = ask("a:2,b,c:3", TEMPLATE.1, &["how are you", "and now"]);
    let outcome = outcome.code(0).silent();
    assert_eq!(
        outcome.out.lines().collect::<Vec<_>>(),
        [
            "a 0..2 of 6: how are you",
            "b 2..3 of 6: how are you",
            "c 3..6 of 6: how are you",
            "a 0..2 of 6: and now",
            "b 2..3 of 6: and now",
            "c 3..6 of 6: and now",
        ]
    );
}

fn lost() {
    let template =
        "case %M in b) echo what is this >&2; exit 3;; c) exec sleep 100000;; *) exec %C;; esac";
    let outcome = ask("a,b,c,d", template, &["fine", "panic", "again"]).code(0);
    assert_eq!(
        outcome.out.lines().collect::<Vec<_>>(),
        [
            "lost: host b (rank 1): the command to start its agent exited with code 3 before the agent answered, [\"what is this\"]",
            "lost: host c (rank 2): its agent gave no sign of life for 0.5 s (ARGONET_AGENT_TIMEOUT); is the host, or the \
             network, down?, []",
            "a 0..1 of 4: fine",
            "d 3..4 of 4: fine",
            "lost: host a (rank 0): its agent failed while it was asked, []",
            "lost: host b (rank 1): the command to start its agent exited with code 3 before the agent answered, [\"what is this\"]",
            "lost: host c (rank 2): its agent gave no sign of life for 0.5 s (ARGONET_AGENT_TIMEOUT); is the host, or the \
             network, down?, []",
            "lost: host d (rank 3): its agent failed while it was asked, []",
        ]
    );
}
