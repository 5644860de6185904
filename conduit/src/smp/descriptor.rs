//! The descriptor of shared memory.

use super::{Barrier, Smp};
use crate::descriptor::{Descriptor, Facts};
use argonet_settings::{SMP_ROW, Settings};

/// The conduit smp.
pub const DESCRIPTOR: Descriptor = Descriptor {
    row: &SMP_ROW,
    limits: || Smp::LIMITS,
    capabilities: Smp::CAPABILITIES,
    facts,
};

fn facts(_: &Settings, _: u32) -> Facts {
    let wake = match Smp::register_barrier() {
        Barrier::Sleeper => "sleepers execute the barrier: the system has expedited membarriers",
        Barrier::Sender => {
            "each sender executes a fence: the system refuses expedited membarriers (a kernel before 4.16, or a \
             filter of system calls)"
        }
    };
    vec![("wake-ups", wake.into())]
}
