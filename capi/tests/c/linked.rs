//! Programs linked in each way that there is, the idents of a linked program, and the exports of
//! the shared library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use argonet_settings::SegmentLimit;
use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace, runs};
use crate::files::{Library, diagnostics, source};
use crate::names;
use crate::running::{command, said};

const PAR: &[&str] = &["-DGASNET_PAR", "-O1", "-fPIC", "-c"];
const SEQ: &[&str] = &["-DGASNET_SEQ", "-O2", "-c"];

pub(crate) fn trials() -> Vec<Trial> {
    // They compile C++, too.
    let missing = !Compiler::OWN.exists();
    vec![
        Trial::test("C and C++ use every name, in one program", every_name)
            .with_ignored_flag(missing),
        Trial::test("a linked program has its idents", idents).with_ignored_flag(missing),
        Trial::test("segment configurations do not mix", segments).with_ignored_flag(missing),
        Trial::test("a program with the shared library runs", shared).with_ignored_flag(missing),
        Trial::test("a library that holds the static one runs", contained)
            .with_ignored_flag(missing),
        Trial::test("the shared library exports the headers' calls", exported)
            .with_ignored_flag(!runs("nm")),
    ]
}

/// One object.
pub(crate) fn object(
    place: &Workplace,
    name: &str,
    dialect: Dialect,
    options: &[&str],
    file: PathBuf,
) -> Result<String, String> {
    let to = place.file(name).display().to_string();
    Compiler::OWN.compile(dialect, options, &[file], &["-o", &to])?;
    Ok(to)
}

/// The object that makes the library that of a mode.
fn variant(place: &Workplace, mode: &[&str]) -> Result<String, String> {
    variant_named(place, "variant.o", mode)
}

/// The same as an object of this name.
pub(crate) fn variant_named(
    place: &Workplace,
    name: &str,
    mode: &[&str],
) -> Result<String, String> {
    let file = crate::compiler::root().join("capi/variant/variant.c");
    let options = [mode, &["-DARGONET_CONDUIT_WORD=\"smp\""]].concat();
    object(place, name, Dialect::C99, &options, file)
}

/// Links with the C++ compiler, which knows what both languages need.
pub(crate) fn link(place: &Workplace, name: &str, words: &[String]) -> Result<PathBuf, String> {
    let to = place.file(name);
    let path = to.display().to_string();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["-o", &path]);
    let cpp = Compiler::OWN.speaks(true);
    let dialect = if cpp { Dialect::CPP17 } else { Dialect::C11 };
    Compiler::OWN.compile(dialect, &[], &[], &words)?;
    Ok(to)
}

fn runs_well(program: &Path, libraries: &Path) -> Result<(), Failed> {
    for ranks in ["1", "2"] {
        let output = command(program)
            .env("GASNET_PSHM_NODES", ranks)
            .env("LD_LIBRARY_PATH", libraries)
            .output()?;
        let text = said(&output);
        if !output.status.success() || !text.contains(&format!("linked: {ranks} ranks\n")) {
            return Err(format!("{ranks} ranks: {}\n{text}", output.status).into());
        }
    }
    Ok(())
}

fn every_name() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let options = [PAR, &["-pedantic"]].concat();
    let mut words = vec![object(
        &place,
        "main.o",
        Dialect::C99,
        PAR,
        source("linked"),
    )?];
    let mut all = BTreeMap::new();
    for (number, list) in names::LISTS.iter().enumerate() {
        let (text, counts) = names::unit(list)?;
        for (kind, count) in counts {
            *all.entry(kind).or_insert(0) += count;
        }
        let file = place.file(&format!("names{number}.c"));
        std::fs::write(&file, text)?;
        for (name, dialect) in [("c", Dialect::C99), ("cpp", Dialect::CPP17)] {
            let to = format!("names{number}_{name}.o");
            words.push(object(&place, &to, dialect, &options, file.clone())?);
        }
    }
    // So that nothing is lost in reading.
    for (kind, least) in [
        ("function", 160),
        ("value", 180),
        ("number", 60),
        ("case", 50),
        ("type", 50),
    ] {
        if all.get(kind).copied().unwrap_or(0) < least {
            return Err(format!("of {kind} there are less than {least}: {all:?}").into());
        }
    }
    words.push(variant(&place, PAR)?);
    for (number, file) in diagnostics().into_iter().enumerate() {
        let name = format!("diagnostics{number}.o");
        words.push(object(&place, &name, Dialect::C99, PAR, file)?);
    }
    words.extend(Library::Static.words());
    let program = link(&place, "program", &words)?;
    runs_well(&program, Path::new(""))
}

/// Idents and the beginnings of what they say.
///
/// Those of devices are there only with these.
const IDENTS: [(&str, &str); 23] = [
    ("EXAPIVersion", "0.19 $"),
    ("APIVersion", "1 $"),
    ("ThreadModel", "GASNET_SEQ $"),
    ("Segment", "GASNET_SEGMENT_FAST $"),
    ("Config", "(libgasnet.a) RELEASE="),
    ("ConduitName", "SMP $"),
    ("CoreLibraryName", "SMP $"),
    ("CoreLibraryVersion", ""),
    ("ExtendedLibraryName", ""),
    ("ExtendedLibraryVersion", ""),
    ("PSHM", "1 $"),
    ("TracingEnabled", "1 $"),
    ("StatisticsEnabled", "1 $"),
    ("DefaultMaxSegsizeStr", ""),
    ("FORKSpawner", "1 $"),
    ("ToolsThreadModel", "THREAD_SINGLE $"),
    ("ToolsConfig", "RELEASE="),
    ("BuildTimestamp", ""),
    ("BuildId", ""),
    ("ConfigureArgs", ""),
    ("SystemTuple", ""),
    ("SystemName", "of the test $"),
    ("CompilerID", "|COMPILER_FAMILY:"),
];

fn idents() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let options = [
        SEQ,
        &[
            "-DARGONET_SYSTEM_NAME=\"of the test\"",
            "-DARGONET_GIT_HASH=\"abc\"",
        ],
    ]
    .concat();
    let mut words = vec![
        object(
            &place,
            "main.o",
            Dialect::C11,
            &[SEQ, &["-DDEFINES"]].concat(),
            source("linked"),
        )?,
        variant(&place, &options)?,
    ];
    words.extend(Library::Static.words());
    let program = link(&place, "program", &words)?;
    runs_well(&program, Path::new(""))?;
    let file = std::fs::read(program)?;
    let has = |text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
    let limit = format!("$GASNetDefaultMaxSegsizeStr: {} $", SegmentLimit::default());
    let wanted = IDENTS.map(|(key, begins)| format!("$GASNet{key}: {begins}"));
    for ident in wanted
        .into_iter()
        .chain([limit, "$GASNetGitHash: abc $".into()])
    {
        if !has(&ident) {
            return Err(format!("{ident} is not in the program").into());
        }
    }
    let absent = "$GASNetMKClass";
    if has(absent) {
        return Err(format!("{absent} is in the program").into());
    }
    Ok(())
}

/// Each configuration links with its own variant alone, which says what it is.
fn segments() -> Result<(), Failed> {
    let modes = [
        ("FAST", vec![]),
        ("LARGE", vec!["-DGASNET_SEGMENT_LARGE"]),
        ("EVERYTHING", vec!["-DGASNET_SEGMENT_EVERYTHING=1"]),
    ];
    let place = Workplace::new()?;
    let build = |(name, options): &(&'static str, Vec<&str>)| {
        let options = [SEQ, options, &["-DARGONET_CONDUIT_WORD=\"smp\""]].concat();
        let of = |kind: &str, file| {
            let to = format!("{kind}-{name}.o");
            object(&place, &to, Dialect::C99, &options, file)
        };
        let library = crate::compiler::root().join("capi/variant/variant.c");
        let (main, library) = (of("main", source("linked"))?, of("library", library)?);
        Ok::<_, String>((*name, main, library))
    };
    let built = modes.iter().map(build).collect::<Result<Vec<_>, _>>()?;
    for (program, main, _) in &built {
        for (library, _, variant) in &built {
            let mut words = vec![main.clone(), variant.clone()];
            words.extend(Library::Static.words());
            let linked = link(&place, "program", &words);
            if program != library {
                let facet = format!("argonet_link_segment_{program}");
                match linked {
                    Err(said) if said.contains(&facet) && said.contains("argonet_client_init_") => {
                        continue;
                    }
                    other => {
                        return Err(format!("{program} with {library}: {other:?}").into());
                    }
                }
            }
            let linked = linked?;
            if *program != "EVERYTHING" {
                runs_well(&linked, Path::new(""))?;
            }
            let file = std::fs::read(linked)?;
            let ident = format!("$GASNetSegment: GASNET_SEGMENT_{program} $");
            let config = format!("SEGMENT={program},");
            for text in [ident, config] {
                if !file.windows(text.len()).any(|part| part == text.as_bytes()) {
                    return Err(format!("{text} is not in the program").into());
                }
            }
        }
    }
    Ok(())
}

/// Where the libraries lie that are built with this program.
fn libraries() -> Result<PathBuf, Failed> {
    let program = std::env::current_exe()?;
    Ok(program.parent().ok_or("no directory")?.to_owned())
}

fn shared() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let directory = libraries()?;
    for defines in [["-DDEFINES"].as_slice(), &[]] {
        let words = [
            object(
                &place,
                "main.o",
                Dialect::C99,
                &[SEQ, defines].concat(),
                source("linked"),
            )?,
            variant(&place, SEQ)?,
            format!("-L{}", directory.display()),
            "-l:libargonet_capi.so".to_owned(),
        ];
        let program = link(&place, "program", &words)?;
        runs_well(&program, &directory)?;
    }
    Ok(())
}

/// The static library is position independent.
fn contained() -> Result<(), Failed> {
    let place = Workplace::new()?;
    let options = [PAR, &["-Dmain=client"]].concat();
    let mut words = vec![
        "-shared".to_owned(),
        "-Wl,-z,defs,-z,text".to_owned(),
        object(&place, "client.o", Dialect::C99, &options, source("linked"))?,
        variant(&place, PAR)?,
    ];
    words.extend(Library::Static.words());
    link(&place, "libclient.so", &words)?;
    let main = place.file("main.c");
    std::fs::write(
        &main,
        "int client(int, char **);\nint main(int count, char **words) { return client(count, words); }\n",
    )?;
    let words = [
        object(&place, "main.o", Dialect::C99, PAR, main)?,
        place.file("libclient.so").display().to_string(),
    ];
    let program = link(&place, "program", &words)?;
    runs_well(&program, Path::new(""))
}

/// Variables of the library, and the one that debuggers set to let a frozen program go on.
const VARIABLES: [&str; 3] = [
    "argonet_frozen",
    "argonett_version_1",
    "gasnett_print_backtrace_ifenabled",
];
/// Names that the library takes from the program.
const TAKEN: [&str; 4] = [
    "gasnet_client_attach_hook",
    "gasnet_max_segsize",
    "gasnet_max_segsize_str",
    "gasnett_backtrace_user",
];

/// The dynamic symbols of the library that are of one of these kinds, and ours by their names.
fn symbols(kinds: &[&str]) -> Result<BTreeSet<String>, Failed> {
    let output = Command::new("nm")
        .args(["-D", "--format=posix"])
        .arg(libraries()?.join("libargonet_capi.so"))
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let names = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, kind) = (words.next()?, words.next()?);
        let ours = ["gex_", "gasnet", "argonet"]
            .iter()
            .any(|start| name.starts_with(start));
        (ours && kinds.contains(&kind)).then(|| name.to_owned())
    });
    Ok(names.collect())
}

fn exported() -> Result<(), Failed> {
    let functions = [
        argonet_capi::prototypes(),
        argonet_capi::tools::prototypes(),
    ]
    .concat();
    let mut wanted: BTreeSet<String> = functions
        .iter()
        .map(|function| function.name.to_owned())
        .collect();
    wanted.extend(VARIABLES.map(str::to_owned));
    let found = symbols(&["T", "D", "B", "R", "V", "W"])?;
    if found != wanted {
        let apart: Vec<_> = found.symmetric_difference(&wanted).collect();
        return Err(format!("in the library or in the headers only: {apart:?}").into());
    }
    let found = symbols(&["w", "v", "U"])?;
    if found != TAKEN.map(str::to_owned).into() {
        return Err(format!("the library takes from the program: {found:?}").into());
    }
    Ok(())
}
