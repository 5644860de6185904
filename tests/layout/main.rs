//! What C sees of argonet: `include/argonet_near.h` compiles as C and C++, says the same as the Rust
//! struct, reaches a neighbour's memory, and costs few instructions.
//!
//! The test program is also the program of the ranks (`__ranks`), which call the header's functions
//! in a shared library that the C compiler has made of `near.c`.

#[path = "../../capi/tests/c/compiler.rs"]
mod compiler;
mod ranks;

use argonet::raw::{NEAR_MAGIC, NEAR_VERSION, NearPrefix};
use compiler::{Compiler, Dialect, Workplace};
use libtest_mimic::{Arguments, Failed, Trial};
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, word, library] = args.as_slice()
        && word == "__ranks"
    {
        return ranks::run(library);
    }
    let mut trials = Vec::new();
    for dialect in Dialect::ALL {
        for compiler in [Compiler::OWN, Compiler::CLANG] {
            let name = format!("layout as {} with {}", dialect.standard, compiler.c);
            let missing = !compiler.exists();
            let test = move || layout(compiler, dialect);
            trials.push(Trial::test(name, test).with_ignored_flag(missing));
        }
    }
    trials.push(Trial::test(
        "a neighbour's memory through the header",
        neighbours,
    ));
    let objdump = cfg!(target_arch = "x86_64") && compiler::runs("objdump");
    trials.push(
        Trial::test("few instructions up to the store", instructions).with_ignored_flag(!objdump),
    );
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// The layout that Rust has, in the words of `near.c`.
fn expected() -> String {
    let mut text = format!("struct 0 {}\n", size_of::<NearPrefix>());
    for (name, offset, size) in [
        ("magic", offset_of!(NearPrefix, magic), 4),
        ("version", offset_of!(NearPrefix, version), 4),
        ("near_lo", offset_of!(NearPrefix, near_lo), 4),
        ("near_len", offset_of!(NearPrefix, near_len), 4),
        ("rank", offset_of!(NearPrefix, rank), 4),
        ("size", offset_of!(NearPrefix, size), 4),
        (
            "delta",
            offset_of!(NearPrefix, delta),
            size_of::<*const isize>(),
        ),
    ] {
        text += &format!("{name} {offset} {size}\n");
    }
    text + &format!("constants {NEAR_MAGIC} {NEAR_VERSION}\n")
}

/// Compiles `near.c` into `to`.
fn compile(compiler: Compiler, dialect: Dialect, how: &[&str], to: &Path) -> Result<(), String> {
    let file = compiler::root().join("tests/layout/near.c");
    let to = to.display().to_string();
    let how = [&["-pedantic"], how].concat();
    compiler.compile(dialect, &how, &[file], &["-o", &to])
}

fn layout(compiler: Compiler, dialect: Dialect) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let program = place.file("layout");
    compile(compiler, dialect, &["-O1"], &program)?;
    let output = Command::new(&program).output()?;
    let said = String::from_utf8(output.stdout)?;
    if said != expected() {
        return Err(format!("C sees\n{said}and Rust\n{}", expected()).into());
    }
    Ok(())
}

fn neighbours() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let library = place.file("libnear.so");
    compile(
        Compiler::OWN,
        Dialect::C99,
        &["-O2", "-shared", "-fPIC"],
        &library,
    )?;
    for ranks in ["1", "2", "3"] {
        let output = Command::new(std::env::current_exe()?)
            .arg("__ranks")
            .arg(&library)
            .env("GASNET_PSHM_NODES", ranks)
            .env("ARGONET_SEGMENT", "64KB")
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{ranks} ranks: {}\n{said}", output.status).into());
        }
    }
    Ok(())
}

/// From the first instruction of a put of 8 bytes up to its store to the neighbour.
const MOST_INSTRUCTIONS: usize = 10;

fn instructions() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let object = place.file("near.o");
    compile(Compiler::OWN, Dialect::C99, &["-O2", "-c"], &object)?;
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "--disassemble=near_put8"])
        .arg(&object)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    // Lines of code are "address:<tab>instruction operands"; in AT&T syntax the target stands last.
    let code: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(":\t"))
        .map(|(_, code)| code.trim())
        .collect();
    let stores = |code: &&str| {
        let mut words = code.split_whitespace();
        let moves = words.next().is_some_and(|op| op.starts_with("mov"));
        moves
            && words
                .next_back()
                .is_some_and(|w| w.starts_with('%') && w.ends_with(')'))
    };
    match code.iter().position(stores) {
        Some(at) if at < MOST_INSTRUCTIONS => Ok(()),
        Some(at) => Err(format!("{} instructions:\n{text}", at + 1).into()),
        None => Err(format!("no store was found:\n{text}").into()),
    }
}
