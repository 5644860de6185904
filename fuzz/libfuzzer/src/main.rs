//! One target under libFuzzer.
//!
//! `ARGONET_FUZZ_TARGET` names it; `cargo xtask fuzz` runs all.
#![no_main]

use argonet_fuzz_targets::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn choose() -> &'static Target {
    let wanted = std::env::var("ARGONET_FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == wanted);
    found.unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "ARGONET_FUZZ_TARGET is \"{wanted}\"; there are {}",
            names.join(", ")
        );
        std::process::exit(2)
    })
}

fuzz_target!(init: { TARGET.get_or_init(choose); }, |data: &[u8]| {
    (TARGET.get_or_init(choose).run)(data);
});
