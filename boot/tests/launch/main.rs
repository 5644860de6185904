//! Whole jobs, started by a launcher and by themselves, ended in every way that we could think of.
//!
//! The test binary is also the launcher (`__launch`, the same function as `argonet run`) and the
//! program of the ranks (`__rank`). Each test marks its processes by an environment variable and
//! checks at its end that none is left. The harness is a child subreaper, so that what outlives its
//! parent is still seen; a zombie counts as ended.
#![deny(unsafe_code)]

mod bad_input;
mod endings;
mod foreign;
mod hosts;
mod launched;
mod launchers;
mod leaving;
mod left_behind;
mod limits;
mod losses;
mod pmix;
mod programs;
mod self_started;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("__launch") => std::process::exit(programs::launcher(args.collect())),
        Some("__visit") => std::process::exit(programs::visitor(args.collect())),
        Some("__agent") => std::process::exit(programs::agent()),
        Some("__rank") => std::process::exit(programs::rank(args.collect())),
        _ => {}
    }
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // A harness started in the background or by nohup ignores some of these, and processes
        // inherit that; the tests are about jobs that do not.
        #[allow(unsafe_code)]
        // SAFETY: no other thread runs yet, and the default disposition runs no code of ours.
        unsafe {
            libc::signal(signal, libc::SIG_DFL)
        };
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("child subreaper");
    let mut trials: Vec<Trial> = Vec::new();
    let parts = [
        launched::TESTS,
        self_started::TESTS,
        left_behind::TESTS,
        bad_input::TESTS,
        endings::TESTS,
        leaving::TESTS,
        limits::TESTS,
        losses::TESTS,
        foreign::TESTS,
        pmix::TESTS,
    ];
    let limited = |(name, test): support::Test, limit| {
        Trial::test(name, move || {
            let _watchdog = support::Watchdog::start(name, limit);
            test();
            Ok(())
        })
    };
    let trial = |&test: &support::Test| limited(test, support::TEST_LIMIT);
    trials.extend(parts.concat().iter().map(trial));
    trials.extend(hosts::TESTS.concat().iter().map(trial));
    let may_become_users = limits::may_become_users();
    let of_users = [limits::TESTS_OF_USERS, foreign::TESTS_OF_USERS].concat();
    let of_users = of_users.iter().map(trial);
    // A test that cannot run has not passed.
    trials.extend(of_users.map(|trial| trial.with_ignored_flag(!may_become_users)));
    let of_launchers = launchers::TESTS.iter();
    trials.extend(of_launchers.map(|(test, program)| {
        limited(*test, launchers::TEST_LIMIT).with_ignored_flag(!launchers::may_start(program))
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
