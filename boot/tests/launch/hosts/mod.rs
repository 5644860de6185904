//! Jobs over several hosts: agents as processes of this machine, by a command template, by a
//! stand-in for a remote shell, and in network namespaces.

mod asking;
mod ending;
mod losses;
mod programs;
mod rig;
mod starting;
mod working;

use crate::support::Test;

pub(crate) use programs::rank;

pub(crate) const TESTS: [&[Test]; 5] = [
    starting::TESTS,
    working::TESTS,
    ending::TESTS,
    asking::TESTS,
    losses::TESTS,
];
