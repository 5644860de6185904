//! The channel over rails of datagrams through the suite, in each thread mode; then over a wire
//! that loses, repeats, reorders and changes datagrams, with several seeds; and in SEQ over a
//! provider of libfabric, where the library is found.

#[path = "rigs/usnic.rs"]
mod rig;

use argonet_nic::fabric::Library;
use libtest_mimic::{Arguments, Trial};
use rig::UsnicRig;

fn main() {
    let mut trials: Vec<Trial> = UsnicRig::all()
        .into_iter()
        .flat_map(argonet_conformance::trials)
        .collect();
    match Library::open(None) {
        Ok(library) => trials.extend(argonet_conformance::trials(UsnicRig::over_fabric(library))),
        Err(error) => {
            eprintln!("{error}");
            let skipped = Trial::test("usnic fabric seq (no libfabric.so.1)", || Ok(()));
            trials.push(skipped.with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
