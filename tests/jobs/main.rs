//! Whole jobs: the promises of each part of the API, checked by ranks that are processes.
//!
//! The test binary is also the program of the ranks: an environment variable says which. Each job
//! is started by the `argonet` command or by itself, its processes are marked, and a test ends only
//! when none of them is left.
#![deny(unsafe_code)]

mod aggregation;
mod atomics;
#[path = "../built/mod.rs"]
mod built;
mod client;
mod collectives;
mod connections;
mod credits;
mod crowd;
mod deferred;
mod doctor;
mod elsewhere;
mod exit;
mod exit_reported;
mod fabric;
mod garbled;
mod heap;
mod hosts;
mod interfaces;
mod leaving;
mod lifecycle;
mod losses;
mod messages;
mod mismatch;
mod negotiated;
#[path = "../network/mod.rs"]
mod network;
mod objects;
mod ordering;
mod put_get;
mod quiet;
mod raw_handlers;
mod refused;
mod rpc;
mod settings;
mod signals;
mod spread;
mod stopped;
mod support;
mod team_collectives;
mod teams;
mod threads;
mod tracing;
mod vis;
mod waiting;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if let Ok(name) = std::env::var(support::PROGRAM) {
        let programs = [
            messages::PROGRAMS,
            ordering::PROGRAMS,
            negotiated::PROGRAMS,
            refused::PROGRAMS,
            put_get::PROGRAMS,
            aggregation::PROGRAMS,
            atomics::PROGRAMS,
            signals::PROGRAMS,
            heap::PROGRAMS,
            team_collectives::PROGRAMS,
            collectives::PROGRAMS,
            mismatch::PROGRAMS,
            connections::PROGRAMS,
            credits::PROGRAMS,
            quiet::PROGRAMS,
            raw_handlers::PROGRAMS,
            rpc::PROGRAMS,
            objects::PROGRAMS,
            deferred::PROGRAMS,
            settings::PROGRAMS,
            teams::PROGRAMS,
            threads::PROGRAMS,
            tracing::PROGRAMS,
            vis::PROGRAMS,
            waiting::PROGRAMS,
            leaving::PROGRAMS,
            lifecycle::PROGRAMS,
            losses::PROGRAMS,
            exit::PROGRAMS,
            exit_reported::PROGRAMS,
            crowd::PROGRAMS,
            garbled::PROGRAMS,
            spread::PROGRAMS,
            stopped::PROGRAMS,
            hosts::PROGRAMS,
            elsewhere::PROGRAMS,
            &client::PROGRAMS.concat(),
        ]
        .concat();
        let program = programs.iter().find(|(held, _)| *held == name);
        let (_, program) = program.expect("a program of that name");
        std::process::exit(support::run_rank(*program));
    }
    let arguments = Arguments::from_args();
    if !arguments.list {
        // Not while a test runs, whose time is limited.
        built::command();
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).expect("child subreaper");
    let tests = [
        messages::TESTS,
        ordering::TESTS,
        negotiated::TESTS,
        refused::TESTS,
        put_get::TESTS,
        aggregation::TESTS,
        atomics::TESTS,
        signals::TESTS,
        heap::TESTS,
        team_collectives::TESTS,
        collectives::TESTS,
        mismatch::TESTS,
        connections::TESTS,
        credits::TESTS,
        quiet::TESTS,
        raw_handlers::TESTS,
        rpc::TESTS,
        objects::TESTS,
        deferred::TESTS,
        settings::TESTS,
        teams::TESTS,
        threads::TESTS,
        tracing::TESTS,
        vis::TESTS,
        waiting::TESTS,
        leaving::TESTS,
        lifecycle::TESTS,
        losses::TESTS,
        exit::TESTS,
        interfaces::TESTS,
        fabric::TESTS,
        exit_reported::TESTS,
        crowd::TESTS,
        garbled::TESTS,
        spread::TESTS,
        stopped::TESTS,
        &client::TESTS.concat(),
    ]
    .concat();
    let trial = |&(name, test): &support::Test| {
        Trial::test(name, move || {
            let _watchdog = support::Watchdog::start(name);
            test();
            Ok(())
        })
    };
    let path = support::Path::of_this_run();
    let part = support::Part::of_this_run();
    let tests = tests.iter().enumerate();
    let tests = tests.filter(|(i, (name, _))| path.has(name) && part.has(*i));
    let tests = tests.map(|(_, test)| test);
    let missing = fabric::missing();
    let without = path.needs_libfabric() && missing.is_some();
    let mut trials: Vec<Trial> = tests
        .map(|test| trial(test).with_ignored_flag(without))
        .collect();
    // They need hosts, which are network namespaces, and choose how ranks reach each other
    // themselves.
    let over_hosts = match path {
        support::Path::Memory => [
            doctor::TESTS,
            hosts::TESTS,
            exit_reported::OVER_HOSTS,
            spread::OVER_HOSTS,
        ]
        .concat(),
        support::Path::Network(..) => Vec::new(),
    };
    let (of_hydra, of_open_mpi) = match path {
        support::Path::Memory => (elsewhere::BY_HYDRA, elsewhere::BY_OPEN_MPI),
        support::Path::Network(..) => (&[][..], &[][..]),
    };
    let of_library = match path {
        support::Path::Memory => fabric::OVER_FABRIC,
        support::Path::Network(..) => &[],
    };
    let of_hosts = network::missing();
    let wanted = |test: &support::Test, missing: Option<&str>| match missing {
        None => trial(test),
        Some(what) => {
            eprintln!("{} is left out: {what}", test.0);
            trial(test).with_ignored_flag(true)
        }
    };
    trials.extend(over_hosts.iter().map(|test| wanted(test, of_hosts)));
    let without_hydra = of_hosts.or_else(elsewhere::no_hydra);
    trials.extend(of_hydra.iter().map(|test| wanted(test, without_hydra)));
    let without_open_mpi = of_hosts.or_else(elsewhere::no_open_mpi);
    let of_open_mpi = of_open_mpi.iter();
    trials.extend(of_open_mpi.map(|test| wanted(test, without_open_mpi)));
    trials.extend(
        of_library
            .iter()
            .map(|test| wanted(test, missing.as_deref())),
    );
    libtest_mimic::run(&arguments, trials).exit();
}
