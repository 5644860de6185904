//! An installed tree, used as C's build systems use it.
//!
//! The library in it is the one that was built with this test.

mod clients;
mod contrib;
mod gni;
mod library;
mod linking;
mod place;
mod portals;
mod refused;
mod replaced;
mod tree;
mod udp;
mod uninstalled;
mod usnic;

use libtest_mimic::Arguments;

// Built because of this, as a static library too.
use argonet_capi as _;

fn main() {
    let mut trials = tree::trials();
    trials.extend(linking::trials());
    trials.extend(library::trials());
    trials.extend(clients::trials());
    trials.extend(udp::trials());
    trials.extend(portals::trials());
    trials.extend(usnic::trials());
    trials.extend(gni::trials());
    trials.extend(contrib::trials());
    // Each of them installs many times.
    if std::env::var_os("ARGONET_TEST_PLACES").is_none_or(|which| which != "none") {
        trials.extend(refused::trials());
        trials.extend(replaced::trials());
        trials.extend(uninstalled::trials());
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    place::clean();
    conclusion.exit();
}
