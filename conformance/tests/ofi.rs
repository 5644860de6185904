//! The channel over rails of messages through the suite, in PAR over providers of libfabric that
//! need no hardware, where the library is found.
//!
//! `CONFORMANCE_OFI_PROVIDER` names another provider; `all` are those that are slow, too.

#[path = "rigs/ofi.rs"]
mod rig;

use argonet_nic::fabric::Library;
use libtest_mimic::{Arguments, Trial};
use rig::OfiRig;

/// A provider, and the cases that it fails by its own fault.
type Provider<'a> = (&'a str, &'static [&'static str]);

/// A rank that ended, and of which nothing had come.
const ENDED: &str = "sends_to_an_ended_rank_fail";

/// The same, and it is given up.
const LOST: &str = "lost_peer";

/// Ranks end, and others still complete what they have sent to them.
const ENDS: &str = "ranks_end_in_any_order";

/// "shm" uses memory of an endpoint that is closed, if both are of one process:
/// `contrib/libfabric/ended_peer.c` shows it.
const PROVIDERS: [Provider<'static>; 3] = [
    ("tcp;ofi_rxm", &[]),
    ("udp;ofi_rxd", &[]),
    ("shm", &[ENDED, LOST, ENDS]),
];

/// "sockets" says at once that such a rank is not there, which is no fault, but not what the suite
/// allows.
const SLOW: [Provider<'static>; 1] = [("sockets", &[ENDED])];

fn trials(library: &Library, (provider, faults): Provider<'_>) -> Vec<Trial> {
    let mut trials = argonet_conformance::trials(OfiRig::new(library.clone(), provider));
    trials.retain(|trial| !faults.iter().any(|fault| trial.name().contains(fault)));
    trials
}

fn main() {
    let named = std::env::var("CONFORMANCE_OFI_PROVIDER").ok();
    let fast = PROVIDERS.as_slice();
    let providers = match named.as_deref() {
        None | Some("") => fast.to_vec(),
        Some("all") => [fast, &SLOW].concat(),
        Some(name) => {
            let known = PROVIDERS.into_iter().chain(SLOW).find(|one| one.0 == name);
            vec![known.unwrap_or((name, &[]))]
        }
    };
    let trials: Vec<Trial> = match Library::open(None) {
        Ok(library) => {
            let of = |provider| trials(&library, provider);
            providers.into_iter().flat_map(of).collect()
        }
        Err(error) => {
            eprintln!("{error}");
            let skipped = Trial::test("ofi par (no libfabric.so.1)", || Ok(()));
            vec![skipped.with_ignored_flag(true)]
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
