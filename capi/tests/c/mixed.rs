//! A client that was compiled for one thread mode, debugged or not, and the library of another one
//! do not link, and the linker names the difference.

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::source;
use crate::linked::{link, object, variant_named};

/// All thread modes, each debugged and not: as the compiler takes them, and the symbols that
/// distinguish them.
const MODES: [([&str; 4], [&str; 2]); 6] = [
    (["-DGASNET_SEQ", RELEASE, "-O1", "-c"], ["SEQ", "nodebug"]),
    (
        ["-DGASNET_PARSYNC", RELEASE, "-O1", "-c"],
        ["PARSYNC", "nodebug"],
    ),
    (["-DGASNET_PAR", RELEASE, "-O1", "-c"], ["PAR", "nodebug"]),
    (["-DGASNET_SEQ", DEBUG, "-O0", "-c"], ["SEQ", "debug"]),
    (
        ["-DGASNET_PARSYNC", DEBUG, "-O0", "-c"],
        ["PARSYNC", "debug"],
    ),
    (["-DGASNET_PAR", DEBUG, "-O0", "-c"], ["PAR", "debug"]),
];
const RELEASE: &str = "-DNDEBUG";
const DEBUG: &str = "-DGASNET_DEBUG";

pub(crate) fn trials() -> Vec<Trial> {
    let test = Trial::test("only objects that are compiled alike link", pairs);
    vec![test.with_ignored_flag(!Compiler::OWN.exists())]
}

fn pairs() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let mut clients = Vec::new();
    let mut variants = Vec::new();
    for (at, (options, _)) in MODES.into_iter().enumerate() {
        let (client, variant) = (format!("client{at}.o"), format!("variant{at}.o"));
        clients.push(object(
            &place,
            &client,
            Dialect::C99,
            &options,
            source("linked"),
        )?);
        variants.push(variant_named(&place, &variant, &options)?);
    }
    for (client, (_, [threads, debug])) in clients.iter().zip(MODES) {
        for (variant, (_, [its_threads, its_debug])) in variants.iter().zip(MODES) {
            // Without the library itself, whose names are missing in any case: only differences
            // count.
            let said = match link(&place, "program", &[client.clone(), variant.clone()]) {
                Ok(_) => return Err("a program links without the library".into()),
                Err(said) => said,
            };
            let alike = (threads, debug) == (its_threads, its_debug);
            for (symbol, same) in [
                (
                    format!("argonet_link_threads_{threads}"),
                    threads == its_threads,
                ),
                (format!("argonet_link_debug_{debug}"), debug == its_debug),
                ("argonet_client_init_*".to_owned(), alike),
            ] {
                if names(&said, &symbol) == same {
                    let pair = format!(
                        "a client for {threads}, {debug} and the library for {its_threads}, {its_debug}"
                    );
                    let found = if same { "reported" } else { "not reported" };
                    return Err(format!("{pair}: {symbol} is {found}:\n{said}").into());
                }
            }
        }
    }
    Ok(())
}

/// Whether the linker says that a symbol is undefined; `*` at the end of its name stands for
/// anything.
fn names(said: &str, symbol: &str) -> bool {
    let undefined = said.lines().filter_map(|line| line.split_once("undefined"));
    let mut words = undefined
        .flat_map(|(_, rest)| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    match symbol.strip_suffix('*') {
        Some(start) => words.any(|word| word.starts_with(start)),
        None => words.any(|word| word == symbol),
    }
}
