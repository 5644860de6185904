//! The cases, and which of them a conduit gets.

mod broken;
mod delivery;
mod exit;
mod limits;
mod lost;
mod many;
mod negotiated;
mod operations;
mod pressure;
mod remote;
mod replies;
mod stranded;
mod threads;
mod waiting;

use crate::rig::{Promises, Rig};
use argonet_conduit::ThreadMode;
use libtest_mimic::Trial;
use std::sync::Arc;

/// A case: its name, whether it applies, and its function, which panics to fail.
struct Case<R> {
    name: &'static str,
    applies: fn(&Promises) -> bool,
    run: fn(&R),
}

/// A case for every conduit.
fn always<R>(name: &'static str, run: fn(&R)) -> Case<R> {
    Case {
        name,
        applies: |_| true,
        run,
    }
}

fn cases<R: Rig>() -> Vec<Case<R>> {
    let mut all = limits::cases();
    all.extend(delivery::cases());
    all.extend(remote::cases());
    all.extend(negotiated::cases());
    all.extend(pressure::cases());
    all.extend(stranded::cases());
    all.extend(replies::cases());
    all.extend(waiting::cases());
    all.extend(threads::cases());
    all.extend(many::cases());
    all.extend(broken::cases());
    all.extend(exit::cases());
    all.extend(lost::cases());
    all
}

/// All cases that apply to the rig's promises, as tests named `rig::case`.
pub fn trials<R: Rig>(rig: R) -> Vec<Trial> {
    let rig = Arc::new(rig);
    let promises = rig.promises();
    let applying = cases::<R>()
        .into_iter()
        .filter(|case| (case.applies)(&promises));
    applying
        .map(|case| {
            let rig = Arc::clone(&rig);
            let name = format!("{}::{}", rig.name(), case.name);
            Trial::test(name, move || {
                (case.run)(&rig);
                Ok(())
            })
        })
        .collect()
}

/// Whether several threads may call at once.
fn par(promises: &Promises) -> bool {
    promises.threads == ThreadMode::Par
}

/// Lengths at which something may change, up to `max`.
fn lengths(promises: &Promises, max: usize) -> Vec<usize> {
    let mut all = vec![0, 3, max.saturating_sub(1), max];
    let powers = (0..usize::BITS - 1).map(|bit| 1 << bit);
    for near in powers.chain(promises.thresholds.iter().copied()) {
        all.extend([near - 1, near, near + 1]);
    }
    all.retain(|&len| len <= max);
    all.sort_unstable();
    all.dedup();
    all
}
