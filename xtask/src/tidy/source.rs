//! Rules for single files.

use super::File;

/// Lines of a source file; a longer one has more than one concept.
const MAX_LINES: usize = 800;

/// Lines between an unsafe block and its argument at most.
const SAFETY_REACH: usize = 12;

/// The files that may have process-wide state, each with its reason. docs/process-wide-state.md
/// lists the same.
///
/// Binaries, tests and examples may have it anyway.
const GLOBALS: &[&str] = &[
    // The calling thread's context, and whether the process has joined a job.
    "start/src/process.rs",
    // The rank that called the remote procedure that the calling thread runs.
    "src/process.rs",
    // Instances of distributed objects of a world of one thread, which never leave that thread.
    "src/instances.rs",
    // Handlers that register themselves before main; read-only from then on.
    "src/registry.rs",
    // The number of the next negotiated payload: no two conduits share one.
    "conduit/src/prepared_buffers.rs",
    // Whether a provider of libfabric may still use memory that it was given: objects that cannot
    // be closed have no owner any more.
    "nic/src/fabric/object.rs",
    // A handler that C gives before there is a job.
    "capi/src/job/losses.rs",
    // The children of a process that forked its job, for exit and signal handlers.
    "boot/src/selfspawn.rs",
    // The rank that a process is, for exit and signal handlers.
    "boot/src/process.rs",
    "boot/src/rendezvous/watch.rs",
    // The threads of the process that are the library's.
    "base/src/threads.rs",
    // The thread that crashes, and the earlier action of its signal.
    "boot/src/crash.rs",
    // The rank of a test's job that this process is: a test is called without an object.
    "boot/src/test_job.rs",
    // The function that the C library calls at exit.
    "boot/src/sys.rs",
    // Whether output of this process has been lost, for exit and signal handlers.
    "boot/src/streams.rs",
    // The traces of the process, which one file and signal handlers make process-wide; the calling
    // thread's part of it.
    "trace/src/process.rs",
    "trace/src/source.rs",
    // The locks that the calling thread holds, in debug builds.
    "capi/src/hsl/checked.rs",
    // Checked memory: C's malloc has no object.
    "capi/src/heap/report.rs",
    "capi/src/heap/table.rs",
    // State that C programs set and ask for by plain functions, with no object of a job.
    "capi/src/tools/state.rs",
    // The job of this process, for functions without an object; whether errors are printed.
    "capi/src/job/state.rs",
    "capi/src/job/error.rs",
    "capi/src/job/linked.rs",
    // The number of the calling thread, for debug builds.
    "capi/src/job/threads.rs",
    // The negotiated payload that a thread of a C program has begun.
    "capi/src/am/source_descriptor.rs",
    // The token of the C handler that a thread runs, for debug builds.
    "capi/src/am/token.rs",
];

/// Tests wait for conditions, not for time.
///
/// These poll what nothing can wait for.
const SLEEPERS: [&str; 1] = [
    // The processes of the host, as /proc shows them.
    "boot/tests/launch/support.rs",
];

/// Crates whose protocols take times and bytes as arguments, and the names that they must not use.
const SANS_IO: [&str; 2] = ["am/src/", "event/src/"];
const IMPURE: [&str; 9] = [
    "Instant::now",
    "SystemTime",
    "std::env",
    "std::fs",
    "std::net",
    "std::thread",
    "random::",
    "getrandom",
    "fastrand",
];

/// Words for work that was not done.
const LEFT_FOR_LATER: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Files that read the environment; all others ask the table of settings.
///
/// Binaries, tests and examples may.
const READERS: [&str; 5] = [
    // The table itself.
    "settings/src/environment.rs",
    // The job's description, and variables of other launchers.
    "boot/src/attach.rs",
    "boot/src/foreign.rs",
    // The role of a program that starts its own ranks.
    "boot/src/selflaunch.rs",
    // The test whose job a process launches, or is a rank of.
    "boot/src/test_job.rs",
];

/// The file that gives the output of a test's job to the harness, which captures what is printed.
const PRINTER: &str = "boot/src/test_job.rs";

/// The page that lists the globals for readers.
const GLOBALS_PAGE: &str = "docs/process-wide-state.md";

pub(crate) fn check(file: &File, complaints: &mut Vec<String>) {
    let path = file.path.as_str();
    for (number, line) in numbered(&file.text) {
        // Written apart, so that this file does not breach its own rule.
        for place in [
            concat!("/wo", "rk/"),
            concat!("/ro", "ot/"),
            concat!("/ho", "me/"),
        ] {
            if line.contains(place) {
                complaints.push(format!("{path}:{number}: a path of one machine ({place})"));
            }
        }
    }
    if !file.is_source() {
        return;
    }
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        complaints.push(format!("{path}: {lines} lines, at most {MAX_LINES}"));
    }
    for (number, line) in numbered(&file.text) {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric());
        for word in words.filter(|word| LEFT_FOR_LATER.contains(word)) {
            complaints.push(format!(
                "{path}:{number}: {word} is no plan; do it or record it"
            ));
        }
    }
    if path.ends_with(".rs") && !path.starts_with("xtask/") {
        rust(file, complaints);
    }
}

/// The exceptions are all needed, and the page of globals names them.
pub(crate) fn check_exceptions(files: &[File], complaints: &mut Vec<String>) {
    let text_of = |path: &str| {
        files
            .iter()
            .find(|f| f.path == path)
            .map(|f| f.text.as_str())
    };
    for path in GLOBALS.iter().chain(&SLEEPERS).chain(&READERS) {
        if text_of(path).is_none() {
            complaints.push(format!("{path}: is an exception and does not exist"));
        }
    }
    let page = text_of(GLOBALS_PAGE).unwrap_or_default();
    for path in GLOBALS {
        if !page.contains(path) {
            complaints.push(format!(
                "{GLOBALS_PAGE}: does not list {path} among the globals"
            ));
        }
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines())
}

/// The part of a line that is code: a comment ends it.
///
/// Text that looks like code inside a string is taken for code.
fn code(line: &str) -> &str {
    let line = line.trim();
    line.split_once("//")
        .map_or(line, |(code, _)| code.trim_end())
}

fn rust(file: &File, complaints: &mut Vec<String>) {
    let path = file.path.as_str();
    let lines: Vec<&str> = file.text.lines().collect();
    let tests_from = file.tests_from();
    let is_program = |path: &str| {
        path.starts_with("cli/") || path.contains("src/bin/") || path.ends_with("src/main.rs")
    };
    let is_library = !is_program(path);
    for (number, line) in numbered(&file.text) {
        let code = code(line);
        let in_test = tests_from.is_some_and(|from| number > from);
        let mut complain = |what: &str| complaints.push(format!("{path}:{number}: {what}"));
        if knows_of_simulator(code) {
            complain("code for the simulator alone; it must run the code that jobs run");
        }
        if code.contains("todo!(") || code.contains("unimplemented!(") {
            complain("code that is not written");
        }
        if is_unsafe(code) && !has_argument(&lines, number - 1) {
            complain("unsafe code without a SAFETY comment");
        }
        let may = in_test || !is_library || GLOBALS.contains(&path);
        if is_global(code) && !may {
            complain("process-wide state outside the exceptions (xtask/src/tidy/source.rs)");
        }
        let reader = in_test || !is_library || READERS.contains(&path);
        if code.contains("env::var") && !reader {
            complain("the environment is read past the table of settings (settings/src/table)");
        }
        let sleeps = code.contains("thread::sleep(") || code.starts_with("sleep(");
        if in_test && sleeps && !SLEEPERS.contains(&path) && !path.starts_with("examples/") {
            complain("a test that sleeps depends on the machine's load");
        }
        if code.contains("#[ignore]") {
            complain("a test is left out without a reason: #[ignore = \"...\"]");
        }
        if is_library && !in_test && path != PRINTER && prints(code) {
            complain("a library does not write to standard output");
        }
        let pure = SANS_IO.iter().any(|directory| path.starts_with(directory));
        if pure
            && !in_test
            && let Some(name) = IMPURE.iter().find(|name| code.contains(**name))
        {
            complain(&format!(
                "{name} in a crate without input, output and clock"
            ));
        }
    }
}

fn prints(code: &str) -> bool {
    ["println!", "print!", "dbg!"].iter().any(|name| {
        code.match_indices(name)
            .any(|(at, _)| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// Whether code is compiled for the simulator only, or left out there.
fn knows_of_simulator(code: &str) -> bool {
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "cfg" || word == "cfg_attr") && words.any(|word| word == "sim")
}

fn is_unsafe(code: &str) -> bool {
    let opens = code.contains("unsafe {") || code.ends_with("unsafe");
    opens || code.starts_with("unsafe impl")
}

/// Whether the lines up to this one, not far away, argue.
fn has_argument(lines: &[&str], at: usize) -> bool {
    let from = at.saturating_sub(SAFETY_REACH);
    lines
        .get(from..=at)
        .is_some_and(|near| near.iter().any(|line| line.contains("SAFETY:")))
}

fn is_global(code: &str) -> bool {
    let rest = code
        .strip_prefix("pub(crate) ")
        .or_else(|| code.strip_prefix("pub(super) "))
        .or_else(|| code.strip_prefix("pub "))
        .unwrap_or(code);
    // A macro's `static $name` is its user's.
    (rest.starts_with("static ") && !rest.starts_with("static $"))
        || rest.contains("thread_local!")
        || rest.contains("lazy_static!")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let (path, text) = (path.to_owned(), text.to_owned());
        let mut complaints = Vec::new();
        check(&File { path, text }, &mut complaints);
        complaints
    }

    #[test]
    fn long_files_and_machine_paths_are_found() {
        assert_eq!(complaints("src/a.rs", &"\n".repeat(801)).len(), 1);
        assert_eq!(complaints("src/a.rs", &"\n".repeat(800)).len(), 0);
        assert_eq!(
            complaints("docs/a.md", &format!("see {}x", concat!("/wo", "rk/"))).len(),
            1
        );
    }

    #[test]
    fn unsafe_code_without_an_argument_is_found() {
        let bare = "fn f() {\n    unsafe { g() }\n}\n";
        let argued = "fn f() {\n    // SAFETY: g may be called.\n    unsafe { g() }\n}\n";
        assert_eq!(complaints("src/a.rs", bare).len(), 1);
        assert_eq!(complaints("src/a.rs", argued).len(), 0);
        assert_eq!(
            complaints("src/a.rs", "// unsafe { in a comment }\n").len(),
            0
        );
    }

    #[test]
    fn globals_are_found_outside_tests_and_exceptions() {
        let text = "pub static N: AtomicU32 = AtomicU32::new(0);\n";
        assert_eq!(complaints("src/a.rs", text).len(), 1);
        assert_eq!(complaints("src/process.rs", text).len(), 0);
        assert_eq!(complaints("tests/jobs/a.rs", text).len(), 0);
        assert_eq!(complaints("src/a.rs", "thread_local! {\n}\n").len(), 1);
        let in_test = format!("#[cfg(test)]\nmod tests {{\n    {text}}}\n");
        assert_eq!(complaints("src/a.rs", &in_test).len(), 0);
        assert_eq!(
            complaints("src/a.rs", "    static $name: u8 = 0;\n").len(),
            0
        );
    }

    #[test]
    fn every_way_to_a_global_is_found() {
        for text in [
            "static mut N: u32 = 0;",
            "    static CELL: OnceLock<u32> = OnceLock::new();",
            "pub(super) static ALL: LazyLock<Vec<u8>> = LazyLock::new(Vec::new);",
            "std::thread_local! {",
            "lazy_static! {",
        ] {
            assert_eq!(complaints("boot/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(complaints("cli/src/a.rs", text).len(), 0, "{text}");
        }
        assert_eq!(
            complaints("boot/src/a.rs", "fn f(x: &'static str) {}").len(),
            0
        );
    }

    #[test]
    fn exceptions_that_are_gone_or_not_on_the_page_are_found() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut files: Vec<File> = GLOBALS
            .iter()
            .chain(&SLEEPERS)
            .chain(&READERS)
            .map(|path| file(path, ""))
            .collect();
        let mut complaints = Vec::new();
        check_exceptions(&files, &mut complaints);
        assert_eq!(complaints.len(), GLOBALS.len());
        files.push(file(GLOBALS_PAGE, &GLOBALS.join("\n")));
        complaints.clear();
        check_exceptions(&files, &mut complaints);
        assert_eq!(complaints.len(), 0);
        files.remove(0);
        check_exceptions(&files, &mut complaints);
        assert_eq!(complaints.len(), 1);
    }

    #[test]
    fn tests_left_out_without_a_reason_are_found() {
        assert_eq!(complaints("am/tests/a.rs", "    #[ignore]\n").len(), 1);
        let argued = "    #[ignore = \"takes an hour\"]\n";
        assert_eq!(complaints("am/tests/a.rs", argued).len(), 0);
    }

    #[test]
    fn words_for_later_are_found() {
        for word in LEFT_FOR_LATER {
            assert_eq!(complaints("src/a.rs", &format!("// {word}: x\n")).len(), 1);
            assert_eq!(
                complaints("include/a.h", &format!("/* {word} */\n")).len(),
                1
            );
            assert_eq!(
                complaints("src/a.rs", &format!("let a{word}a = 0;\n")).len(),
                0
            );
        }
    }

    #[test]
    fn libraries_that_print_are_found() {
        for text in ["    println!(\"x\");", "f(); print!(\"x\")", "dbg!(x);"] {
            assert_eq!(complaints("am/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(complaints("cli/src/a.rs", text).len(), 0, "{text}");
            assert_eq!(complaints("tests/jobs/a.rs", text).len(), 0, "{text}");
        }
        assert_eq!(complaints("am/src/a.rs", "    eprintln!(\"x\");").len(), 0);
        assert_eq!(complaints("am/src/a.rs", "/// println!(\"x\");").len(), 0);
    }

    #[test]
    fn clocks_and_files_are_found_where_there_are_none() {
        for name in IMPURE {
            let text = format!("    let x = {name}();\n");
            assert_eq!(complaints("event/src/a.rs", &text).len(), 1, "{name}");
            assert_eq!(complaints("boot/src/a.rs", &text).len(), 0, "{name}");
            assert_eq!(complaints("event/tests/a.rs", &text).len(), 0, "{name}");
        }
    }

    #[test]
    fn reading_the_environment_is_found() {
        for read in ["std::env::var(NAME)", "env::var_os(NAME)", "env::vars_os()"] {
            let text = format!("    let value = {read};\n");
            assert_eq!(complaints("src/a.rs", &text).len(), 1, "{read}");
            assert_eq!(complaints("boot/src/attach.rs", &text).len(), 0);
            assert_eq!(complaints("cli/src/a.rs", &text).len(), 0);
            assert_eq!(complaints("tests/jobs/a.rs", &text).len(), 0);
        }
    }

    #[test]
    fn code_for_the_simulator_alone_is_found() {
        for text in [
            "#[cfg(sim)]\nfn f() {}\n",
            "#[cfg(all(not(sim), test))]\nfn f() {}\n",
            "if cfg!(sim) {\n",
            "#[cfg(feature = \"sim\")]\n",
        ] {
            assert_eq!(complaints("am/src/a.rs", text).len(), 1, "{text}");
            assert_eq!(complaints("sim/src/a.rs", text).len(), 1, "{text}");
        }
        assert_eq!(
            complaints("am/src/a.rs", "#[cfg(test)]\nuse sim::f;\n").len(),
            0
        );
    }

    #[test]
    fn sleeping_tests_and_unwritten_code_are_found() {
        let sleepy = "    std::thread::sleep(LONG);\n";
        assert_eq!(complaints("am/tests/a.rs", sleepy).len(), 1);
        assert_eq!(complaints("src/a.rs", sleepy).len(), 0);
        assert_eq!(complaints("src/a.rs", "    todo!()\n").len(), 1);
    }
}
