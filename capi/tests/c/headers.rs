//! The public headers compile clean in every language and mode, in any order and alone, and bring
//! no names but theirs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::header;

/// Headers that a unit includes, one after another.
const UNITS: &[&[&str]] = &[
    &["gasnetex.h"],
    &[
        "gasnetex.h",
        "gasnet_tools.h",
        "gasnet_coll.h",
        "gasnet_mk.h",
        "gasnet_ratomic.h",
        "gasnet_vis.h",
        "gasnet_fwd.h",
        "gasnet_portable_platform.h",
        "gasnet.h",
        "pthread.h",
        // All again.
        "gasnetex.h",
        "gasnet.h",
        "gasnet_tools.h",
        "gasnet_coll.h",
        "gasnet_mk.h",
        "gasnet_ratomic.h",
        "gasnet_vis.h",
        "gasnet_fwd.h",
        "gasnet_portable_platform.h",
    ],
    &[
        "gasnet_portable_platform.h",
        "gasnet_fwd.h",
        "gasnet_ratomic.h",
        "gasnet_mk.h",
        "gasnet_vis.h",
        "gasnet_coll.h",
        "gasnetex.h",
        "gasnet_tools.h",
    ],
    &[
        "pthread.h",
        "gasnet_coll.h",
        "gasnet_tools.h",
        "gasnet_mk.h",
        "gasnet_vis.h",
    ],
    &["gasnet_mk.h"],
    &["gasnet_ratomic.h"],
    &["gasnet_vis.h"],
    &["pthread.h", "gasnet_tools.h"],
    &["gasnet.h"],
    &["gasnet_coll.h", "gasnet.h", "gasnet_tools.h"],
];

/// Modes of a client.
///
/// Debug code that is optimized is refused.
const MODES: [&[&str]; 6] = [
    &["-DGASNET_SEQ"],
    &["-DGASNET_PARSYNC=1", "-D_GNU_SOURCE", "-O2"],
    &["-DGASNET_PAR", "-O2", "-DNDEBUG"],
    &["-DGASNET_SEQ=1", "-DGASNET_DEBUG", "-D_GNU_SOURCE"],
    &["-DGASNET_PARSYNC", "-DGASNET_DEBUG=1"],
    &["-DGASNET_PAR=1", "-DGASNET_DEBUG", "-D_REENTRANT"],
];

/// Code that is an error, and a word of the compiler's message.
const REFUSED: &[(&[&str], &[&str], &str)] = &[
    (&[], &["gasnetex.h"], "define exactly one of GASNET_SEQ"),
    (
        &["-DGASNET_SEQ", "-DGASNET_PAR"],
        &["gasnetex.h"],
        "define exactly one of GASNET_SEQ",
    ),
    (
        &["-DGASNET_SEQ", "-DGASNET_PARSYNC", "-DGASNET_PAR"],
        &["gasnetex.h"],
        "define exactly one of GASNET_SEQ",
    ),
    (
        &["-DGASNET_SEQ"],
        &["gasnet_tools.h", "gasnetex.h"],
        "gasnetex.h must be included before gasnet_tools.h",
    ),
    (
        &["-DGASNET_SEQ"],
        &["gasnet_tools.h", "gasnet.h"],
        "gasnetex.h must be included before gasnet_tools.h",
    ),
    (
        &["-DGASNET_PAR"],
        &["gasnet_tools.h", "gasnet_coll.h"],
        "gasnetex.h must be included before gasnet_tools.h",
    ),
    (
        &["-DGASNET_SEQ", "-DGASNETT_LITE_MODE"],
        &["gasnetex.h", "gasnet_tools.h"],
        "GASNETT_LITE_MODE cannot be used with gasnetex.h",
    ),
    (
        &["-DGASNET_PAR", "-DGASNET_DEBUG", "-O2"],
        &["gasnetex.h"],
        "optimized or NDEBUG code",
    ),
    (
        &[
            "-DGASNET_PAR",
            "-DGASNET_SEGMENT_EVERYTHING",
            "-DGASNET_SEGMENT_FAST",
        ],
        &["gasnetex.h"],
        "define at most one of GASNET_SEGMENT_FAST",
    ),
    (
        &[
            "-DGASNET_SEQ",
            "-DGASNET_SEGMENT_LARGE",
            "-DGASNET_SEGMENT_EVERYTHING",
        ],
        &["gasnetex.h"],
        "define at most one of GASNET_SEGMENT_FAST",
    ),
    (
        &["-DGASNET_PAR", "-DGASNET_DEBUGMALLOC=1"],
        &["gasnetex.h"],
        "GASNET_DEBUGMALLOC is what GASNET_DEBUG brings",
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    let own = Dialect::ALL.map(|dialect| (Compiler::OWN, dialect));
    let clang = Dialect::ALL.map(|dialect| (Compiler::CLANG, dialect));
    // The newest has standards and warnings that the others do not know.
    let newest = Dialect::NEWEST.map(|dialect| (Compiler::CLANG_19, dialect));
    let ways = [own.as_slice(), &clang, &newest].concat();
    let mut trials: Vec<Trial> = ways
        .into_iter()
        .map(|(compiler, dialect)| {
            let name = format!("headers as {} with {}", dialect.standard, compiler.c);
            let test = move || compiles(compiler, dialect);
            Trial::test(name, test).with_ignored_flag(!compiler.exists())
        })
        .collect();
    trials.push(Trial::test("headers refuse wrong modes and order", refused));
    let alone = Trial::test("parts of gasnetex.h stand alone", parts);
    trials.push(alone.with_ignored_flag(!Compiler::OWN.exists()));
    trials.push(Trial::test("gasnet_fwd.h needs and brings little", forward));
    trials.push(Trial::test("headers define no macros but theirs", macros));
    let first = "another header of the platform may come first, or last";
    let trial = Trial::test(first, other_platform);
    trials.push(trial.with_ignored_flag(!Compiler::OWN.exists()));
    let brought = "clients get the system's headers from gasnetex.h and gasnet_tools.h";
    let trial = Trial::test(brought, system_headers);
    trials.push(trial.with_ignored_flag(!Compiler::OWN.exists()));
    let taken = "clients take addresses of functions of the reference";
    let trial = Trial::test(taken, taken_addresses);
    trials.push(trial.with_ignored_flag(!Compiler::OWN.exists()));
    trials
}

/// Definitions of an older header of the same names, and of a newer one: each as one of another
/// library would.
const OLDER: &str = "\
#define _PORTABLE_PLATFORM_H PLATFORM_HEADER_VERSION
#define PLATFORM_HEADER_VERSION 5
#define PLATFORM_COMPILER_VERSION 1
#define PLATFORM_COMPILER_FAMILYNAME OTHER
#define PLATFORM_COMPILER_IDSTR \"other\"
#define PLATFORM_COMPILER_VERSION_GT(a, b, c) 0
#define PLATFORM_OS_LINUX 2
#define PLATFORM_ARCH_64 2
";
const NEWER: &str = "\
#if !defined(_PORTABLE_PLATFORM_H) || !defined(PLATFORM_HEADER_VERSION) || PLATFORM_HEADER_VERSION < 99
#undef _PORTABLE_PLATFORM_H
#undef PLATFORM_HEADER_VERSION
#define _PORTABLE_PLATFORM_H 99
#define PLATFORM_HEADER_VERSION 99
#undef PLATFORM_COMPILER_FAMILYNAME
#define PLATFORM_COMPILER_FAMILYNAME OTHER
#undef PLATFORM_OS_LINUX
#define PLATFORM_OS_LINUX 3
#undef PLATFORM_ARCH_64
#define PLATFORM_ARCH_64 3
#endif
";
const OURS: &str = "#include <gasnet_portable_platform.h>\n";

/// A header that comes second neither warns nor takes the place of a newer one.
fn other_platform() -> Result<(), Failed> {
    let place = Workplace::new()?;
    // An older one that comes second leaves all as it is.
    let guarded = format!(
        "#if !defined(PLATFORM_HEADER_VERSION) || PLATFORM_HEADER_VERSION < 5\n{OLDER}#endif\n"
    );
    let orders = [
        (OLDER.to_owned() + OURS, 1),
        (OURS.to_owned() + &guarded, 1),
        (NEWER.to_owned() + OURS, 3),
        (OURS.to_owned() + NEWER, 3),
        (OLDER.to_owned() + NEWER + OURS, 3),
        (OLDER.to_owned() + OURS + OURS + NEWER + OURS, 3),
    ];
    for (number, (text, linux)) in orders.into_iter().enumerate() {
        let check = format!(
            "#if PLATFORM_OS_LINUX != {linux} || PLATFORM_ARCH_64 != {linux}\n#error {linux}\n#endif\nextern int unit;\n"
        );
        let file = place.file(&format!("platform{number}.c"));
        std::fs::write(&file, text + &check)?;
        for dialect in [Dialect::C99, Dialect::CPP17] {
            Compiler::OWN.compile(
                dialect,
                &["-fsyntax-only"],
                std::slice::from_ref(&file),
                &[],
            )?;
        }
    }
    Ok(())
}

/// Names of the system's headers that clients use without including them.
fn system_headers() -> Result<(), Failed> {
    let both = "\
extern unsigned int (*sleeps)(unsigned int);
extern int (*digit)(int);
extern int (*raises)(int);
unsigned int (*sleeps)(unsigned int) = sleep;
int (*digit)(int) = isdigit;
int (*raises)(int) = raise;
extern int least;
int least = MIN(INT_MAX, MAX(SIGINT, 1));
";
    let more = "\
extern FILE *out;
FILE *out;
extern pthread_mutex_t mutex;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
extern time_t (*now)(time_t *);
time_t (*now)(time_t *) = time;
extern int busy;
int busy = EBUSY;
";
    let place = Workplace::new()?;
    for (header, text) in [
        ("gasnetex.h", both.to_owned() + more),
        ("gasnet.h", both.to_owned() + more),
        ("gasnet_tools.h", both.to_owned()),
    ] {
        let file = place.file(&format!("brought_{header}.c"));
        std::fs::write(&file, format!("#include <{header}>\n{text}"))?;
        for dialect in [Dialect::C11, Dialect::CPP17] {
            for mode in ["-DGASNET_SEQ", "-DGASNET_PAR"] {
                // As a file of make has it.
                let options = ["-fsyntax-only", "-D_GNU_SOURCE=1", mode];
                Compiler::OWN.compile(dialect, &options, std::slice::from_ref(&file), &[])?;
            }
        }
    }
    Ok(())
}

/// Realm and Legion keep compilers from warning of functions that they do not use by taking their
/// addresses, at file scope.
///
/// So the functions are there by the reference's names, whichever header brings them, and neither
/// is reported as unused where no code takes them.
fn taken_addresses() -> Result<(), Failed> {
    const TAKEN: &str = "\
static const void *argonet_taken1 __attribute__((unused)) = (void *)_gasneti_threadkey_init;
static const void *argonet_taken2 __attribute__((unused)) = (void *)_gasnett_trace_printf_noop;
extern void fails(int rank);
void fails(int rank) { if (rank < 0) gasneti_fatalerror(\"rank %d\", rank); }
";
    const REFUSED: &str = "\
extern void wrong(void);
void wrong(void) { _gasnett_trace_printf_noop(\"%d\", \"text\"); }
";
    let place = Workplace::new()?;
    let options = ["-c", "-Wall", "-Wextra", "-Werror", "-Wunused"];
    let headers = [
        "#include <gasnet.h>\n",
        "#include <gasnet.h>\n#include <gasnet_coll.h>\n#include <gasnet_tools.h>\n",
        "#include <gasnetex.h>\n#include <gasnet_tools.h>\n",
        "#include <gasnet_tools.h>\n",
    ];
    for (number, headers) in headers.into_iter().enumerate() {
        let file = place.file(&format!("taken{number}.c"));
        std::fs::write(&file, headers.to_owned() + TAKEN)?;
        let unused = place.file(&format!("not_taken{number}.c"));
        std::fs::write(&unused, headers.to_owned() + "extern int unit;\n")?;
        let wrong = place.file(&format!("wrong{number}.c"));
        std::fs::write(&wrong, headers.to_owned() + REFUSED)?;
        for dialect in [Dialect::C11, Dialect::CPP17] {
            for mode in MODES {
                let options = [options.as_slice(), mode].concat();
                for file in [&file, &unused] {
                    let file = std::slice::from_ref(file);
                    Compiler::OWN.compile(dialect, &options, file, &["-o", "/dev/null"])?;
                }
                let wrong = std::slice::from_ref(&wrong);
                let checked = Compiler::OWN.compile(dialect, &options, wrong, &["-o", "/dev/null"]);
                if checked.is_ok() {
                    return Err("arguments are not checked against the format".into());
                }
            }
        }
    }
    Ok(())
}

/// A file of `#include` lines, with something after them, since an empty unit is not C.
fn unit(place: &Workplace, name: &str, headers: &[&str]) -> Result<PathBuf, Failed> {
    let mut text: String = headers
        .iter()
        .map(|header| format!("#include <{header}>\n"))
        .collect();
    text += "extern int unit;\n";
    let file = place.file(name);
    std::fs::write(&file, text)?;
    Ok(file)
}

fn compiles(compiler: Compiler, dialect: Dialect) -> Result<(), Failed> {
    let place = Workplace::new()?;
    let mut files = Vec::new();
    for (number, headers) in UNITS.iter().enumerate() {
        files.push(unit(&place, &format!("unit{number}.c"), headers)?);
    }
    for (number, mode) in MODES.into_iter().enumerate() {
        let options = [["-fsyntax-only", "-pedantic"].as_slice(), mode].concat();
        // The others are the same code in every mode.
        let files = if number == 0 { &files } else { &files[1..3] };
        compiler.compile(dialect, &options, files, &[])?;
    }
    // A compiler knows unused functions only after it has checked the syntax.
    let whole = std::slice::from_ref(&files[1]);
    for mode in [MODES[0], MODES[3]] {
        let options = [["-c", "-pedantic", "-Wunused"].as_slice(), mode].concat();
        compiler.compile(dialect, &options, whole, &["-o", "/dev/null"])?;
    }
    // Of those that need no thread mode.
    let alone = [
        unit(&place, "fwd.c", &["gasnet_fwd.h"])?,
        unit(&place, "platform.c", &["gasnet_portable_platform.h"])?,
        unit(&place, "tools.c", &["gasnet_tools.h"])?,
    ];
    compiler.compile(dialect, &["-fsyntax-only", "-pedantic"], &alone, &[])?;
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let place = Workplace::new()?;
    for (mode, headers, words) in REFUSED {
        let file = unit(&place, "refused.c", headers)?;
        let options = [["-fsyntax-only"].as_slice(), mode].concat();
        match Compiler::OWN.compile(Dialect::C99, &options, &[file], &[]) {
            Err(said) if said.contains("#error") && said.contains(words) => {}
            other => return Err(format!("{mode:?} {headers:?}: {other:?}").into()),
        }
    }
    Ok(())
}

fn parts() -> Result<(), Failed> {
    // The headers that gasnet_tools.h alone includes, in its order.
    let tools = ["atomics.h", "locks.h", "tools_rest.h", "job_tools.h"];
    let place = Workplace::new()?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(header("argonet"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !tools.contains(&name.as_str()) {
            files.push(unit(
                &place,
                &format!("{name}.c"),
                &[&format!("argonet/{name}")],
            )?);
        }
    }
    if files.len() < 20 {
        return Err(format!("only {} parts were found", files.len()).into());
    }
    for dialect in [Dialect::C99, Dialect::CPP17] {
        let options = ["-fsyntax-only", "-pedantic", "-DGASNET_PAR"];
        Compiler::OWN.compile(dialect, &options, &files, &[])?;
    }
    Ok(())
}

/// The unit after the preprocessor.
fn preprocessed(options: &[&str], file: &PathBuf) -> Result<String, Failed> {
    let output = Command::new(Compiler::OWN.c)
        .args(["-std=c11", "-E"])
        .args(options)
        .arg("-I")
        .arg(header(""))
        .arg(file)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names of the macros that headers define.
fn defined(
    place: &Workplace,
    options: &[&str],
    headers: &[&str],
) -> Result<BTreeSet<String>, Failed> {
    let file = unit(place, "macros.c", headers)?;
    let text = preprocessed(&[["-dM"].as_slice(), options].concat(), &file)?;
    let names = text.lines().filter_map(|line| {
        let name = line.strip_prefix("#define ")?;
        let end = name.find(|c: char| c != '_' && !c.is_alphanumeric());
        Some(name[..end.unwrap_or(name.len())].to_owned())
    });
    Ok(names.collect())
}

fn forward() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let others = defined(&place, &[], &["stdint.h"])?;
    let all = defined(&place, &[], &["gasnet_fwd.h"])?;
    let own: Vec<&String> = all.difference(&others).collect();
    let theirs = |name: &&&String| !name.starts_with("GEX_") && !name.starts_with("_GEX_");
    let wrong: Vec<_> = own.iter().filter(theirs).collect();
    if own.len() < 80 || !wrong.is_empty() {
        return Err(format!("{} macros, not allowed: {wrong:?}", own.len()).into());
    }
    // Of the code that remains, all that is its own.
    let text = preprocessed(&["-P"], &unit(&place, "fwd.c", &["gasnet_fwd.h"])?)?;
    let system = preprocessed(&["-P"], &unit(&place, "stdint.c", &["stdint.h"])?)?;
    let known: BTreeSet<&str> = words(&system).collect();
    let mut named = 0;
    for word in words(&text).filter(|word| !known.contains(word)) {
        named += 1;
        if !["gex_", "_gex_", "GEX_"]
            .iter()
            .any(|start| word.starts_with(start))
            && word != "struct"
            && word != "void"
        {
            return Err(format!("gasnet_fwd.h has the name {word}").into());
        }
    }
    if named < 9 || text.contains('(') && !system.contains('(') {
        return Err(format!("{named} names in\n{text}").into());
    }
    Ok(())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c != '_' && !c.is_alphanumeric())
        .filter(|word| word.starts_with(|c: char| c == '_' || c.is_alphabetic()))
}

/// Beginnings of names that are ours, and the names beside them that programs expect.
const BEGINNINGS: [&str; 8] = [
    "gex_",
    "GEX_",
    "_GEX_",
    "gasnet",
    "GASNET",
    "argonet",
    "ARGONET",
    "PLATFORM_",
];
const OTHERS: &[&str] = &[
    "HAVE_MMAP",
    "HAVE_PTHREAD_H",
    "PRIuSZ",
    "SIZEOF_GASNET_REGISTER_VALUE_T",
    "SIZEOF_GEX_RMA_VALUE_T",
    "SIZEOF_INT",
    "_CONCAT",
    "_CONCAT_HELPER",
    "_GASNETEX_H",
    "_GASNET_COLL_H",
    "_GASNET_MK_H",
    "_GASNET_RATOMIC_H",
    "_GASNET_VIS_H",
    "_INCLUDED_GASNET_H",
    "_INCLUDED_GASNET_TOOLS_H",
    "_PORTABLE_PLATFORM_H",
    "_STRINGIFY",
    "_STRINGIFY_HELPER",
    "if_pf",
    "if_pt",
];

fn macros() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let system = [
        "ctype.h",
        "errno.h",
        "inttypes.h",
        "limits.h",
        "pthread.h",
        "signal.h",
        "stdarg.h",
        "stddef.h",
        "stdio.h",
        "stdlib.h",
        "string.h",
        "sys/param.h",
        "time.h",
        "unistd.h",
    ];
    let others = defined(&place, &[], &system)?;
    let all = defined(&place, &["-DGASNET_PAR"], UNITS[1])?;
    let wrong: Vec<&String> = all
        .difference(&others)
        .filter(|name| !BEGINNINGS.iter().any(|start| name.starts_with(start)))
        .filter(|name| !OTHERS.contains(&name.as_str()))
        .collect();
    if all.len() < others.len() + 300 || !wrong.is_empty() {
        return Err(format!("{} macros; not allowed: {wrong:?}", all.len()).into());
    }
    Ok(())
}
