//! The static library: its exported names, its size, and other libraries of a program beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, library, run, said, source, succeeded};

/// The beginnings of all exported names.
const OURS: [&str; 3] = ["argonet", "gasnet", "gex_"];

/// Limits in bytes.
///
/// The library of these tests is less optimized than that of a release, for which `cargo xtask
/// sizes` has lower ones.
const ARCHIVE: u64 = 30_000_000;
const PROGRAM: u64 = 10_020_000;
const STRIPPED: u64 = 7_890_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("archives export names of the library alone", names),
        Trial::test("programs and archives are small", sizes),
        Trial::test("clients have Rust and BLAKE3 of their own", own_rust),
        Trial::test(
            "backtraces name functions without debug information",
            backtraces,
        ),
    ]
}

/// The global names that an archive defines.
fn defined(archive: &Path) -> Result<BTreeSet<String>, String> {
    let mut nm = Command::new("nm");
    nm.args(["--extern-only", "--defined-only", "--format=posix"]);
    let output = run(nm.arg(archive).stderr(Stdio::null()))?;
    let text = succeeded(&output)?;
    // A member begins with a line of its own, whose path may have blanks.
    let lines = text.lines().filter(|line| !line.ends_with(':'));
    let names = lines.filter_map(|line| line.split_once(' '));
    Ok(names.map(|(name, _)| name.to_owned()).collect())
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|start| name.starts_with(start))
}

/// Whether an archive has groups, in place of which the linker may take those of another library.
fn has_groups(archive: &Path) -> Result<bool, String> {
    let output = run(Command::new("readelf").arg("--section-groups").arg(archive))?;
    Ok(succeeded(&output)?.contains("COMDAT group section"))
}

fn names() -> Result<(), Failed> {
    let place = Place::installed("names", false)?;
    // Cargo's library has all names that must be hidden, and they are seen.
    let built = defined(&library()?)?;
    for start in ["blake3_", "_R", "_ZN", "DW.ref."] {
        assert!(built.iter().any(|name| name.starts_with(start)), "{start}");
    }
    let ours: BTreeSet<String> = built.into_iter().filter(|name| is_ours(name)).collect();
    assert!(ours.len() > 300, "{ours:?}");
    for directory in ["lib", "lib/debug"] {
        let found = defined(&place.prefix().join(directory).join("libargonet.a"))?;
        assert_eq!(found, ours, "{directory}");
    }
    assert!(has_groups(&library()?)?);
    assert!(!has_groups(&place.prefix().join("lib/libargonet.a"))?);
    let mut variants = 0;
    for entry in place.prefix().join("lib").read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with("libgasnet-") {
            continue;
        }
        variants += 1;
        let found = defined(&path)?;
        assert!(found.contains("gasneti_mynode"), "{name}: {found:?}");
        let others: Vec<&String> = found.iter().filter(|name| !is_ours(name)).collect();
        assert!(others.is_empty(), "{name}: {others:?}");
    }
    assert_eq!(variants, 21);
    Ok(())
}

/// Builds a program by the words of pkg-config, with more before the libraries; its path.
fn built(place: &Place, name: &str, words: &[&Path]) -> Result<PathBuf, String> {
    built_with(place, name, words, ("smp-seq", "CPPFLAGS", ""))
}

/// The same for a variant, by a variable of its file for pkg-config and further options.
pub(crate) fn built_with(
    place: &Place,
    name: &str,
    words: &[&Path],
    (variant, variable, options): (&str, &str, &str),
) -> Result<PathBuf, String> {
    let text = place.text(&format!("lib/pkgconfig/gasnet-{variant}.pc"))?;
    let prefix = place.prefix().display().to_string().replace(' ', "\\ ");
    let text = text.replace("${prefix}", &prefix);
    let value = |variable: &str| {
        let start = format!("GASNET_{variable}=");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        line.map(str::to_owned)
            .ok_or(format!("no {start} in {text}"))
    };
    // The values are words of the shell.
    let flags = format!("{} {options}", value(variable)?);
    let libraries = value("LIBS")?;
    let script = format!("cc -O2 {flags} \"$@\" {libraries}");
    let program = place.file(name);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh", "-o"]).arg(&program);
    shell.arg(source(&format!("{name}.c"))).args(words);
    succeeded(&run(&mut shell)?)?;
    Ok(program)
}

/// A copy without symbols: processes of a job that has ended may still hold the program.
fn stripped(program: &Path) -> Result<PathBuf, String> {
    let copy = program.with_extension("stripped");
    let mut strip = Command::new("strip");
    succeeded(&run(strip.arg("-o").arg(&copy).arg(program))?)?;
    Ok(copy)
}

/// Runs a program as a job of two ranks.
fn job(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "120"]).arg(program);
    command.env("GASNET_PSHM_NODES", "2");
    command
}

/// The lines of a job of two ranks that print one each.
fn lines(program: &Path) -> Result<Vec<String>, String> {
    let output = run(&mut job(program))?;
    let text = succeeded(&output)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

fn size(path: &Path) -> Result<u64, String> {
    let data = path.metadata();
    data.map(|data| data.len())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether an archive or a program has debug information.
fn has_lines(file: &Path) -> Result<bool, String> {
    let output = run(Command::new("objdump").arg("-h").arg(file))?;
    Ok(succeeded(&output)?.contains(".debug_line"))
}

fn sizes() -> Result<(), Failed> {
    let place = Place::installed("sizes", false)?;
    let archive = place.prefix().join("lib/libargonet.a");
    let whole = place.prefix().join("lib/debug/libargonet.a");
    assert!(size(&archive)? < ARCHIVE, "{} bytes", size(&archive)?);
    assert!(!has_lines(&archive)?);
    assert!(has_lines(&whole)?);
    let program = built(&place, "hello", &[])?;
    let hello = ["hello 0 of 2", "hello 1 of 2"];
    assert_eq!(lines(&program)?, hello);
    let linked = size(&program)?;
    let program = stripped(&program)?;
    let small = size(&program)?;
    assert!(linked < PROGRAM, "{linked} bytes as linked");
    assert!(small < STRIPPED, "{small} bytes stripped");
    assert_eq!(lines(&program)?, hello);
    // Unused code goes, and the program is still whole.
    let program = built(&place, "hello", &[Path::new("-Wl,--gc-sections")])?;
    assert_eq!(lines(&program)?, hello);
    let collected = size(&stripped(&program)?)?;
    assert!(collected < small * 9 / 10, "{collected}, {small}");
    // A program has lines for a debugger only if it is linked with `lib/debug`.
    let mut directory = std::ffi::OsString::from("-L");
    directory.push(place.prefix().join("lib/debug"));
    let program = built(&place, "hello", &[Path::new(&directory)])?;
    assert!(has_lines(&program)?);
    assert_eq!(lines(&program)?, hello);
    Ok(())
}

fn own_rust() -> Result<(), Failed> {
    let place = Place::installed("own rust", false)?;
    let rust = place.file("libown_rust.a");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "staticlib", "-O", "-o"]);
    succeeded(&run(command.arg(&rust).arg(source("own_rust.rs")))?)?;
    // Every name that BLAKE3 has in the library, and one that its interface for C has.
    let mut text = String::from("int blake3_hasher_init(void) { return 43; }\n");
    let built_names = defined(&library()?)?;
    let theirs: Vec<&String> = built_names
        .iter()
        .filter(|name| name.starts_with("blake3_") && *name != "blake3_hasher_init")
        .collect();
    assert!(!theirs.is_empty());
    for name in &theirs {
        text += &format!("int {name}(void) {{ return 1; }}\n");
    }
    let calls: Vec<String> = theirs.iter().map(|name| format!("{name}()")).collect();
    text += &format!("int own_blake3(void) {{ return {}; }}\n", calls.join(" + "));
    let own = place.file("own_blake3.c");
    std::fs::write(&own, text)?;
    // The threads add 0, 2 and 4 to 20 and to 22.
    let wanted = format!("26 28 43 {}", theirs.len());
    for words in [
        &[own.as_path(), &rust] as &[&Path],
        &[own.as_path(), &rust, Path::new("-Wl,--gc-sections")],
    ] {
        let program = built(&place, "own_rust", words)?;
        assert_eq!(lines(&program)?, [wanted.as_str(), &wanted]);
    }
    Ok(())
}

fn backtraces() -> Result<(), Failed> {
    let place = Place::installed("backtraces", false)?;
    for words in [&[] as &[&Path], &[Path::new("-Wl,--gc-sections")]] {
        let program = built(&place, "hello", words)?;
        assert!(!has_lines(&program)?);
        let mut command = job(&program);
        let output = run(command
            .arg("crash")
            .env("GASNET_BACKTRACE", "1")
            .env("GASNET_BACKTRACE_TYPE", "EXECINFO"))?;
        let text = said(&output);
        assert!(!output.status.success(), "{text}");
        // A function of the client's, one that is local to the library, and one that it exports.
        for name in [
            "crash_of_client",
            "argonet_conduit::smp",
            "argonet_request_short",
        ] {
            assert!(text.contains(name), "{name} in\n{text}");
        }
    }
    Ok(())
}
