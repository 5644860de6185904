//! The installed static library: one object of the code that the API reaches, whose other names are
//! local.
//!
//! The archive that cargo makes has every crate as an object and every name of theirs in the open:
//! a client that links another static library of Rust, or a `blake3` of its own, would have them
//! twice. So the linker puts all into one object and leaves out code that no exported name reaches.
//! Its functions keep their sections, so that a client that links with `--gc-sections` gets only
//! the ones that it uses, and their names, which backtraces show.

use super::build::Found;
use super::tools::said;
use super::tree::Tree;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names that clients refer to.
///
/// Everything else belongs to the library alone, static or shared.
const EXPORTED: [&str; 3] = ["argonet*", "gasnet*", "gex_*"];

/// The compiler's intermediate code, for optimization across crates.
///
/// Debug information does not need it, and programs that know another version of it complain.
const INTERMEDIATE: [&str; 2] = [".llvmbc", ".llvmcmd"];

/// [`EXPORTED`] for the linker, of a shared library.
pub(super) fn version_script() -> String {
    format!("{{ global: {}; local: *; }};\n", EXPORTED.join("; "))
}

/// Puts `lib/libargonet.a` into the tree, and the same with debug information.
///
/// `from` is what cargo has built, `shared` the shared library of it, which has a list of what is
/// exported.
pub(super) fn write(
    tree: &mut Tree,
    from: &Path,
    shared: &Path,
    found: &Found,
) -> Result<(), String> {
    let whole = linked(tree, from, &exported(shared, found)?, found)?;
    let keep = EXPORTED.map(|names| format!("--keep-global-symbol={names}"));
    let without = INTERMEDIATE.map(|section| format!("--remove-section={section}"));
    for (directory, options) in [
        ("lib", &["--strip-debug", "--discard-locals"] as &[&str]),
        ("lib/debug", &[]),
    ] {
        let object = tree.path(&format!("{directory}-object/argonet.o"))?;
        let mut command = found.tools.objcopy.command();
        command.arg("--wildcard").args(&keep).args(&without);
        said(command.args(options).arg(&whole).arg(&object))?;
        let archive = format!("{directory}/libargonet.a");
        found.tools.archive(&[object], &tree.path(&archive)?)?;
        tree.add(&archive)?;
    }
    Ok(())
}

/// The names that a shared library exports.
fn exported(shared: &Path, found: &Found) -> Result<Vec<String>, String> {
    let mut command = found.tools.nm.command();
    command.args(["--dynamic", "--defined-only", "--format=posix"]);
    let (out, _) = said(command.arg(shared))?;
    let words = out
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    Ok(words.map(str::to_owned).collect())
}

/// One object of an archive: the code that the names reach.
fn linked(tree: &Tree, archive: &Path, names: &[String], found: &Found) -> Result<PathBuf, String> {
    let roots: String = names.iter().map(|name| format!("-u {name}\n")).collect();
    let file = tree.path("roots")?;
    super::at(&file, std::fs::write(&file, roots))?;
    let object = tree.path("whole.o")?;
    let mut response = OsString::from("@");
    response.push(&file);
    let mut command = found.tools.ld.command();
    // Groups are named after symbols that become local here. The linker would leave out one that
    // stayed a group where another library has one of that name, without a message, and unwinding
    // would not find its functions any more.
    command.args(["-r", "--gc-sections", "--force-group-allocation"]);
    command.arg(response).arg(archive).arg("-o").arg(&object);
    said(&mut command).map_err(|error| format!("{error}\nGNU ld 2.29 or later is needed (LD)"))?;
    Ok(object)
}
