//! The program that measures the C API works: how fast it finds it to be is not looked at.

use libtest_mimic::{Failed, Trial};

use crate::building::{Program, Way};
use crate::network::Network;
use crate::running::Run;

const PROGRAM: &str = "../../benches/c/neighbours";

/// Rows that it prints.
const ROWS: usize = 19;

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("the measuring program", measures)]
}

fn measures() -> Result<(), Failed> {
    let program = Program::new(Way::RELEASE, PROGRAM);
    let run = Run::with(&program, 2, &["1"], 120, &[Network::NEIGHBOURS])?;
    let out = run.out();
    let rows = out.lines().filter(|line| line.ends_with(" ns")).count();
    if run.code() == 0 && rows == ROWS {
        return Ok(());
    }
    Err(run.said().into())
}
