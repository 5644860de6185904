//! The channel over rails of messages through the suite, in PAR over a provider of libfabric that
//! needs no hardware, where the library is found.
//!
//! `CONFORMANCE_OFI_PROVIDER` names another provider.

#[path = "rigs/ofi.rs"]
mod rig;

use argonet_nic::fabric::Library;
use libtest_mimic::{Arguments, Trial};
use rig::OfiRig;

fn main() {
    let trials: Vec<Trial> = match Library::open(None) {
        Ok(library) => argonet_conformance::trials(OfiRig::new(library)),
        Err(error) => {
            eprintln!("{error}");
            let skipped = Trial::test("ofi par (no libfabric.so.1)", || Ok(()));
            vec![skipped.with_ignored_flag(true)]
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
