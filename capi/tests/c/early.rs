//! `early.c` as a job, for each conduit that a program can be linked for: questions before the
//! start, codes that calls return, names of clients, indices that do not exist, waits in handlers.
//!
//! All with one library.

use std::path::PathBuf;
use std::process::Output;

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Dialect, Workplace, root};
use crate::files::{Library, source};
use crate::linked::{link, object};
use crate::running::{command, said};

/// Conduits, and their clients' values of `GASNET_ERR_BAD_ARG`.
const CONDUITS: [(&str, i32); 7] = [
    ("SMP", 10003),
    ("TCP", 10003),
    ("UDP", 2),
    ("PORTALS", 10003),
    ("USNIC", 10003),
    ("GNI", 10003),
    ("OFI", 10003),
];
const RELEASE: &[&str] = &["-DGASNET_PAR", "-D_GNU_SOURCE", "-O2", "-c"];
const DEBUG: &[&str] = &["-DGASNET_PAR", "-D_GNU_SOURCE", "-DGASNET_DEBUG", "-c"];
const SERIAL: &[&str] = &["-DGASNET_SEQ", "-D_GNU_SOURCE", "-O2", "-c"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = CONDUITS
        .into_iter()
        .map(|(conduit, code)| {
            let name = format!("calls return the codes of {conduit}, before the start too");
            Trial::test(name, move || codes(conduit, code))
        })
        .collect();
    trials.push(Trial::test(
        "a client's name that is not plain is reported",
        names,
    ));
    trials.push(Trial::test(
        "endpoint indices above 65535 are refused",
        indices,
    ));
    trials.push(Trial::test(
        "a wait for nothing in a handler returns, or is reported",
        waits,
    ));
    trials.push(Trial::test(
        "objects of headers with other numbers do not link",
        other_numbers,
    ));
    trials
}

/// The program, linked for a conduit.
///
/// Its environment says which one it runs over.
fn program(place: &Workplace, mode: &[&str], conduit: &str) -> Result<PathBuf, String> {
    let conduit = format!("-DARGONET_CONDUIT_{conduit}=1");
    let options = [mode, &[&conduit, "-DARGONET_CONDUIT_WORD=\"smp\""]].concat();
    let variant = root().join("capi/variant/variant.c");
    let mut words = vec![
        object(place, "early.o", Dialect::C11, &options, source("early"))?,
        object(place, "variant.o", Dialect::C11, &options, variant)?,
    ];
    words.extend(Library::Shared.words());
    link(place, "early", &words)
}

fn run(program: &std::path::Path, arguments: &[&str]) -> Result<Output, Failed> {
    let output = command(program)
        .args(arguments)
        .env("GASNET_PSHM_NODES", "2")
        .env("LD_LIBRARY_PATH", program.parent().unwrap_or(program))
        .output()?;
    Ok(output)
}

/// Its output, if it ends well.
fn runs(program: &std::path::Path, arguments: &[&str]) -> Result<String, Failed> {
    let output = run(program, arguments)?;
    let text = said(&output);
    if !output.status.success() || !text.contains("early: 2 ranks") {
        return Err(format!("{arguments:?}: {}\n{text}", output.status).into());
    }
    Ok(text)
}

/// Fails unless it ends because of this.
fn ends(program: &std::path::Path, arguments: &[&str], because: &str) -> Result<(), Failed> {
    let output = run(program, arguments)?;
    let text = said(&output);
    if output.status.success() || !text.contains(because) {
        return Err(format!(
            "{arguments:?}: {}, not because of {because}\n{text}",
            output.status
        )
        .into());
    }
    Ok(())
}

fn codes(conduit: &str, code: i32) -> Result<(), Failed> {
    let place = Workplace::new()?;
    for mode in [RELEASE, SERIAL] {
        let text = runs(&program(&place, mode, conduit)?, &["EARLY"])?;
        if !text.contains(&format!("BAD_ARG is {code}\n")) {
            return Err(text.into());
        }
    }
    Ok(())
}

fn names() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let program = program(&place, RELEASE, "SMP")?;
    for (name, plain) in [
        ("EARLY", true),
        ("E1_", true),
        ("early", false),
        ("my client", false),
        ("E", false),
        ("", false),
    ] {
        let text = runs(&program, &[name])?;
        let warnings = text
            .matches("warning: gex_Client_Init: the client's name is")
            .count();
        if warnings != usize::from(!plain) {
            return Err(format!("{name:?}: {warnings} warnings\n{text}").into());
        }
    }
    Ok(())
}

fn indices() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let program = program(&place, RELEASE, "SMP")?;
    ends(
        &program,
        &["EARLY", "index"],
        "gex_TM_Pair: the remote index is 65536;",
    )?;
    ends(
        &program,
        &["EARLY", "negative"],
        "gex_TM_Pair: the remote index is 18446744073709486081;",
    )
}

fn waits() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let release = program(&place, RELEASE, "SMP")?;
    runs(&release, &["EARLY", "wait"])?;
    ends(
        &release,
        &["EARLY", "region"],
        "gex_NBI_Wait: called in a handler or the function of a reduction, where it is not allowed",
    )?;
    let debug = program(&place, DEBUG, "SMP")?;
    ends(
        &debug,
        &["EARLY", "wait"],
        "called in a handler or the function of a reduction, where it is not allowed",
    )
}

/// The symbol that does not fit names what differs.
fn other_numbers() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let headers = crate::files::header("argonet/numbers.h");
    let text = std::fs::read_to_string(headers)?;
    let digest = text
        .lines()
        .find_map(|line| line.strip_prefix("#define ARGONET_NUMBERS_DIGEST "))
        .ok_or("no digest")?;
    let other = place.file("numbers.h");
    std::fs::write(&other, text.replace(digest, "0123456789abcdef"))?;
    let other = other.display().to_string();
    // Its guard keeps the other one out.
    let options = [RELEASE, &["-include", &other]].concat();
    let variant = root().join("capi/variant/variant.c");
    let options_of_variant = [RELEASE, &["-DARGONET_CONDUIT_WORD=\"smp\""]].concat();
    let mut words = vec![
        object(&place, "early.o", Dialect::C11, &options, source("early"))?,
        object(
            &place,
            "variant.o",
            Dialect::C11,
            &options_of_variant,
            variant,
        )?,
    ];
    words.extend(Library::Shared.words());
    match link(&place, "early", &words) {
        Err(said)
            if said.contains("argonet_link_layout_0123456789abcdef_")
                && said.contains(
                    "argonet_client_init_2025_8_0_SMP_PAR_FAST_ndebug_layout_0123456789abcdef_",
                ) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}").into()),
    }
}
