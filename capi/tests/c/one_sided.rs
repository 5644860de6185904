//! Put and get, remote atomics, events, locks and waits: they compile in every language and mode,
//! and those to neighbors take few instructions.

use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace, runs};
use crate::files::source;

/// Thread modes, with and without debugging, and how they are compiled so that all warnings come.
const MODES: [&[&str]; 5] = [
    &["-DGASNET_SEQ", "-O2"],
    &["-DGASNET_PARSYNC", "-O1"],
    &["-DGASNET_PAR", "-O2"],
    &["-DGASNET_PAR", "-O0"],
    &["-DGASNET_PAR", "-DGASNET_DEBUG", "-O0"],
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for compiler in [Compiler::OWN, Compiler::CLANG] {
        let missing = !compiler.exists();
        for dialect in Dialect::ALL {
            let name = format!("put and get as {} with {}", dialect.standard, compiler.c);
            let test = move || compiles(compiler, dialect);
            trials.push(Trial::test(name, test).with_ignored_flag(missing));
        }
        let countable = cfg!(target_arch = "x86_64") && runs("objdump") && !missing;
        for (file, function) in FUNCTIONS {
            let name = format!("few instructions in {function} with {}", compiler.c);
            let test = move || few_instructions(compiler, file, function);
            trials.push(Trial::test(name, test).with_ignored_flag(!countable));
        }
    }
    trials
}

fn compiles(compiler: Compiler, dialect: Dialect) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let to = place.file("forms.o").display().to_string();
    for file in [
        "one_sided_forms",
        "mapped_path",
        "mapped_path_legacy",
        "mapped_path_ratomic",
    ] {
        for mode in MODES {
            let options = [["-pedantic", "-c"].as_slice(), mode].concat();
            compiler.compile(dialect, &options, &[source(file)], &["-o", &to])?;
        }
    }
    Ok(())
}

/// Programs, and functions of theirs.
const FUNCTIONS: [(&str, &str); 18] = [
    ("mapped_path", "put_blocking"),
    ("mapped_path", "put_nbi"),
    ("mapped_path", "put_nb"),
    ("mapped_path", "put_value"),
    ("mapped_path", "get_blocking"),
    ("mapped_path", "get_value"),
    ("mapped_path_legacy", "legacy_put"),
    ("mapped_path_legacy", "legacy_put_nb"),
    ("mapped_path_legacy", "legacy_put_value"),
    ("mapped_path_legacy", "legacy_get"),
    ("mapped_path_legacy", "legacy_get_value"),
    ("mapped_path_ratomic", "fetch_add"),
    ("mapped_path_ratomic", "add"),
    ("mapped_path_ratomic", "take"),
    ("mapped_path_ratomic", "swap"),
    ("mapped_path_ratomic", "compare_and_swap"),
    ("mapped_path_ratomic", "set"),
    ("mapped_path_ratomic", "get"),
];

/// From the first instruction up to the access: today's number and one more, for compilers that
/// come.
///
/// Those of GASNet-1 find the team by themselves: that is one load, and one more with compilers
/// that look the variable's address up in a table. Domains lead to the team by one load, and some
/// compilers prepare the call, of eight arguments, before they look.
fn most_instructions(file: &str) -> usize {
    match file {
        "mapped_path_legacy" => 10,
        "mapped_path_ratomic" => 13,
        _ => 8,
    }
}

fn few_instructions(compiler: Compiler, file: &str, function: &str) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let object = place.file("near.o");
    let to = object.display().to_string();
    let options = ["-DGASNET_SEQ", "-O2", "-c"];
    compiler.compile(Dialect::C99, &options, &[source(file)], &["-o", &to])?;
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(format!("--disassemble={function}"))
        .arg(&object)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    // Lines of code are "address:<tab>instruction operands", in AT&T syntax.
    let code: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(":\t"))
        .map(|(_, code)| code.trim())
        .collect();
    let end = code.iter().position(|code| code.starts_with("ret"));
    let near = &code[..end.unwrap_or(0)];
    if near.iter().any(|code| code.starts_with("call")) {
        return Err(format!("the near path calls:\n{text}").into());
    }
    // The address in the neighbor's memory is the sum of the given one and the delta.
    let kinds = ["mov", "lock", "xchg"];
    let access =
        |code: &&str| kinds.iter().any(|kind| code.starts_with(kind)) && code.contains(",1)");
    let found = near.iter().position(access);
    match found {
        Some(at) if at < most_instructions(file) => Ok(()),
        Some(at) => Err(format!("{} instructions:\n{text}", at + 1).into()),
        None => Err(format!("no access was found:\n{text}").into()),
    }
}
