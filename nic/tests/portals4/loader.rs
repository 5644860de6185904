//! Errors of libraries that cannot be used.

use argonet_nic::portals::portals4::Library;
use libtest_mimic::{Failed, Trial};
use std::path::Path;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("loader::a_library_that_is_not_there_is_named", not_there),
        Trial::test("loader::a_library_of_something_else_is_refused", other),
    ]
}

fn not_there() -> Result<(), Failed> {
    let error = Library::open(Some(Path::new("/nowhere/libportals.so")))
        .expect_err("there is no such file")
        .to_string();
    for wanted in ["/nowhere/libportals.so", "ARGONET_PORTALS_LIBRARY"] {
        if !error.contains(wanted) {
            return Err(format!("no {wanted} in: {error}").into());
        }
    }
    Ok(())
}

fn other() -> Result<(), Failed> {
    let error = Library::open(Some(Path::new("libc.so.6")))
        .expect_err("the C library has no Portals")
        .to_string();
    for wanted in ["libc.so.6", "PtlInit"] {
        if !error.contains(wanted) {
            return Err(format!("no {wanted} in: {error}").into());
        }
    }
    Ok(())
}
