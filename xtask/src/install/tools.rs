//! The programs that the installation is made with: the C compiler, which links too, and those that
//! know objects and archives.

use super::words;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program that ends soon; returns its standard output and standard error.
pub(super) fn said(command: &mut Command) -> Result<(String, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        Ok((out, err))
    } else {
        Err(format!("{name}: {}\n{err}", output.status))
    }
}

/// Runs programs that end soon, one on each processor; whether all ended well.
pub(super) fn all_said(commands: Vec<Command>) -> Result<(), String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let left = std::sync::Mutex::new(commands.into_iter());
    let take = || left.lock().ok().and_then(|mut left| left.next());
    let some = || std::iter::from_fn(take).try_for_each(|mut command| said(&mut command).map(drop));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(some)).collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

/// A program, with the options that always belong to it (`CC="gcc -m64"`).
pub(super) struct Tool {
    path: PathBuf,
    options: Vec<String>,
}

impl Tool {
    /// By a variable, or by the usual name.
    ///
    /// The whole path, so that others can compare it with theirs.
    fn find(variable: &str, name: &str) -> Result<Self, String> {
        let wanted = std::env::var_os(variable).filter(|value| !value.is_empty());
        let wanted = wanted.as_deref().unwrap_or(OsStr::new(name));
        if let Some(path) = program(wanted) {
            return Ok(Self {
                path,
                options: Vec::new(),
            });
        }
        // Not a file with blanks in its name, so a program with options.
        let text = wanted.to_string_lossy();
        let mut words = text.split_whitespace();
        let path = words.next().and_then(|first| program(OsStr::new(first)));
        let options = words.map(str::to_owned).collect();
        path.map(|path| Self { path, options })
            .ok_or_else(|| format!("{}: no such program ({variable})", wanted.display()))
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.options);
        command
    }

    /// As make and others take it.
    pub(super) fn words(&self) -> String {
        let path = self.path.display().to_string();
        let options = self.options.iter().map(String::as_str);
        words::shell_all([path.as_str()].into_iter().chain(options))
    }

    /// GASNet's name for the family of a compiler, and for the member in it.
    fn family(&self, language: &str) -> [&'static str; 2] {
        let mut command = self.command();
        command.args(["-E", "-dM", "-x", language, "/dev/null"]);
        let macros = said(&mut command).map_or(String::new(), |(out, _)| out);
        let defines = |name: &str| macros.contains(&format!("#define {name} "));
        if defines("__clang__") {
            ["Clang", "none"]
        } else if defines("__GNUC__") {
            ["GNU", "GNU"]
        } else {
            ["UNKNOWN", "none"]
        }
    }
}

/// The file of a program.
///
/// A name with a directory in it is not looked for.
pub(super) fn program(name: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| {
        use std::os::unix::fs::PermissionsExt as _;
        let data = file.metadata();
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if Path::new(name).components().count() != 1 {
        return std::path::absolute(name).ok().filter(is_program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
    files.find(is_program)
}

/// All that is needed.
pub(super) struct Tools {
    pub(super) cc: Tool,
    pub(super) cxx: Tool,
    ar: Tool,
    /// Puts objects together; the compiler may use another linker for programs.
    pub(super) ld: Tool,
    pub(super) nm: Tool,
    pub(super) objcopy: Tool,
}

impl Tools {
    /// By `CC`, `CXX`, `AR` and the like, or by their usual names.
    pub(super) fn find() -> Result<Self, String> {
        // Nothing here needs a compiler for C++: where there is none, the name must do.
        let cxx = Tool::find("CXX", "c++").unwrap_or_else(|_| Tool {
            path: "c++".into(),
            options: Vec::new(),
        });
        // GNU's also where `ld` is another.
        let bfd = program("ld.bfd".as_ref()).map_or("ld", |_| "ld.bfd");
        Ok(Self {
            cc: Tool::find("CC", "cc")?,
            cxx,
            ar: Tool::find("AR", "ar")?,
            ld: Tool::find("LD", bfd)?,
            nm: Tool::find("NM", "nm")?,
            objcopy: Tool::find("OBJCOPY", "objcopy")?,
        })
    }

    /// Families and their members, of the compilers for C and for C++.
    pub(super) fn families(&self) -> [[&'static str; 2]; 2] {
        [self.cc.family("c"), self.cxx.family("c++")]
    }

    /// Linker options for the system libraries that Rust's standard library needs.
    ///
    /// Libraries that every compiler adds by itself are left out: other tools look for a file for
    /// each. For a moment there is an empty library at `empty`.
    pub(super) fn system_libraries(empty: &Path) -> Result<Vec<String>, String> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let (_, notes) = said(
            Command::new(rustc)
                .args(["--crate-type", "staticlib", "--crate-name", "empty"])
                .args(["--print", "native-static-libs", "-o"])
                .arg(empty)
                .arg("/dev/null"),
        )?;
        let list = notes
            .lines()
            .find_map(|line| line.split_once("native-static-libs:"));
        let Some((_, list)) = list else {
            return Err(format!(
                "rustc does not list the libraries that its own needs:\n{notes}"
            ));
        };
        let mut words: Vec<String> = Vec::new();
        for word in list.split_whitespace() {
            if !["-lgcc_s", "-lc"].contains(&word) && words.iter().all(|other| other != word) {
                words.push(word.to_owned());
            }
        }
        Ok(words)
    }

    /// An archive of one object.
    pub(super) fn archive(&self, objects: &[PathBuf], to: &Path) -> Result<(), String> {
        said(self.ar.command().arg("rcs").arg(to).args(objects)).map(drop)
    }

    /// A shared library that programs know by `name`, of what the words say.
    pub(super) fn shared<I>(&self, name: &str, words: I, to: &Path) -> Result<(), String>
    where
        I: IntoIterator<Item: AsRef<OsStr>>,
    {
        let mut command = self.cc.command();
        command
            .args(["-shared", &format!("-Wl,-soname,{name}"), "-o"])
            .arg(to);
        // A name without a definition is an error here, not when a program starts. Its lines are
        // long and of no use.
        command.args(["-Wl,-z,defs", "-Wl,--strip-debug"]);
        said(command.args(words)).map(drop)
    }
}
