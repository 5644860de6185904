//! A fatal error of the tools in a rank: the job ends as it does when a rank crashes, and the error
//! is reported once.

use std::ffi::{c_char, c_int};
use std::process::Command;

use argonet_boot::{AttachOptions, Bootstrap as _, attach};
use argonet_settings::Settings;
use libtest_mimic::{Failed, Trial};

use crate::running::said;

// Defined in the library that this program is linked with.
use argonet_capi as _;

unsafe extern "C" {
    fn argonett_fatal(
        function: *const c_char,
        file: *const c_char,
        line: c_int,
        text: *const c_char,
    );
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("a fatal error in a job is reported once", once)]
}

/// This program as a job of two ranks that starts itself.
fn job(nodes: &str) -> Result<std::process::Output, Failed> {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", "120"])
        .arg(std::env::current_exe()?)
        .arg("__rank")
        .env("GASNET_PSHM_NODES", "2")
        .env("GASNET_BACKTRACE", "1")
        .env("GASNET_BACKTRACE_NODES", nodes)
        .env("GASNET_BACKTRACE_TYPE", "EXECINFO");
    Ok(command.output()?)
}

fn once() -> Result<(), Failed> {
    for (nodes, backtraces) in [("1", 1), ("0", 0)] {
        let output = job(nodes)?;
        let text = said(&output);
        // A function of this file, once in each backtrace.
        let shown = text.matches("fatal_of_a_rank").count();
        let errors = text.matches("*** FATAL ERROR (pid ").count();
        let ended = text.contains("was killed by signal 6 (SIGABRT); the other ranks were ended");
        if output.status.code() != Some(134) || shown != backtraces || errors != 1 || !ended {
            return Err(format!("{nodes}: {}, {shown} backtraces\n{text}", output.status).into());
        }
    }
    Ok(())
}

/// The program of each rank; the other rank adds no message to the end.
pub(crate) fn rank() -> Result<(), String> {
    let settings = Settings::from_environment().map_err(|error| error.to_string())?;
    let job = attach(AttachOptions::new(), &settings).map_err(|error| error.to_string())?;
    job.fence().map_err(|error| error.to_string())?;
    job.started();
    if job.rank().0 == 1 {
        fatal_of_a_rank();
    }
    let _ = job.fence();
    Ok(())
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn fatal_of_a_rank() {
    // SAFETY: strings that end with 0, as the header asks for.
    unsafe {
        argonett_fatal(
            c"f".as_ptr(),
            c"f.c".as_ptr(),
            1,
            c"made for a test".as_ptr(),
        );
    }
    // Not the last call, so that this function is on the stack.
    std::hint::black_box(0);
}
