//! Programs that are linked with the installed libraries, and programs that must not be.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, run, runs, said, source, stand_in};

/// The variants' modes, with the numbers by which the library knows them.
const MODES: [(&str, u32); 3] = [("seq", 0), ("parsync", 1), ("par", 2)];

pub(crate) fn trials() -> Vec<Trial> {
    let cxx = !runs("c++");
    let make = !runs("make") || cxx;
    let clang = !runs("clang");
    vec![
        Trial::test("make builds programs that run", || made(false)).with_ignored_flag(make),
        Trial::test("make builds programs with checks", || made(true)).with_ignored_flag(make),
        Trial::test("objects of different builds do not link", || misfits("c")),
        Trial::test("objects of different builds do not link in C++", || {
            misfits("c++")
        })
        .with_ignored_flag(cxx),
        Trial::test("trees do not mix", trees),
        Trial::test(
            "clients that contradict themselves do not compile",
            contradictions,
        ),
        Trial::test("headers compile in every C", || languages("cc", "c")),
        Trial::test("headers compile in every C++", || languages("cc", "c++"))
            .with_ignored_flag(cxx),
        Trial::test("headers compile in every C with clang", || {
            languages("clang", "c")
        })
        .with_ignored_flag(clang),
        Trial::test("headers compile in every C++ with clang", || {
            languages("clang", "c++")
        })
        .with_ignored_flag(clang || cxx),
        Trial::test("idents are in the program", idents),
        Trial::test("the checks are no code", no_code),
        Trial::test("the library goes into shared objects", shared),
    ]
}

/// By the variables of the installed file, in the directory of the programs.
fn made(debug: bool) -> Result<(), Failed> {
    let place = Place::installed(&format!("made {debug}"), debug)?;
    let debug = u32::from(debug);
    for (mode, number) in MODES {
        let rules = place.file("makefile");
        std::fs::write(
            &rules,
            "include file.mak\n\
             all:\n\
             \t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $(FROM)/client.c\n\
             \t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) -c $(FROM)/tools.c\n\
             \t$(GASNET_LD) $(GASNET_LDFLAGS) client.o $(STAND_IN) -o client $(filter-out -largonet,$(GASNET_LIBS))\n\
             \t$(GASNET_LD) $(GASNET_LDFLAGS) tools.o -o tools $(GASNET_LIBS)\n\
             \t$(GASNET_CXX) $(GASNET_CXXCPPFLAGS) $(GASNET_CXXFLAGS) -x c++ -c $(FROM)/tools.c -o cxx.o\n\
             \t$(GASNET_CXX) $(GASNET_LDFLAGS) cxx.o -o cxx $(GASNET_LIBS)\n",
        )?;
        let file = format!("include/smp-conduit/smp-{mode}.mak");
        std::fs::copy(place.prefix().join(file), place.file("file.mak"))?;
        let from = source("client.c").with_file_name("");
        let mut command = Command::new("make");
        command
            .current_dir(place.file(""))
            .arg(format!("FROM={}", from.display()))
            .arg(format!(
                "STAND_IN={}",
                stand_in()?.display().to_string().replace(' ', "\\ ")
            ))
            // Less to write.
            .arg("GASNET_LDFLAGS=-Wl,--strip-debug");
        // A make around this one has nothing to say.
        command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let output = run(&mut command)?;
        if !output.status.success() {
            return Err(said(&output).into());
        }
        let output = run(&mut Command::new(place.file("client")))?;
        let wanted = format!("smp {number} {debug} version 3 for client\n");
        assert_eq!((output.status.code(), said(&output)), (Some(0), wanted));
        for program in ["tools", "cxx"] {
            let output = run(&mut Command::new(place.file(program)))?;
            assert!(output.status.success(), "{program}: {}", said(&output));
        }
    }
    Ok(())
}

/// Compiles one of the programs and returns the object's path.
fn compiled(
    place: &Place,
    language: &str,
    name: &str,
    options: &[&str],
) -> Result<PathBuf, String> {
    let words = options.concat().replace('/', "_");
    let object = place.file(&format!("{name}.{language}.{words}.o"));
    let mut command = Command::new("cc");
    command
        .args(["-Wall", "-Wextra", "-Werror", "-x", language])
        .args(options)
        .arg("-I")
        .arg(place.prefix().join("include"))
        .arg("-c")
        .arg(source(&format!("{name}.c")))
        .arg("-o")
        .arg(&object);
    let output = run(&mut command)?;
    match output.status.success() {
        true => Ok(object),
        false => Err(said(&output)),
    }
}

/// Links objects with a variant and nothing else of the library.
fn linked(
    place: &Place,
    objects: &[&Path],
    mode: &str,
    options: &[&str],
) -> Result<PathBuf, String> {
    linked_from(place, "lib", objects, mode, options)
}

fn linked_from(
    place: &Place,
    directory: &str,
    objects: &[&Path],
    mode: &str,
    options: &[&str],
) -> Result<PathBuf, String> {
    let program = place.file("program");
    let mut command = Command::new("cc");
    command
        .args(options)
        .args(objects)
        .arg("-L")
        .arg(place.prefix().join(directory))
        // The libraries that a shared library needs are looked for in its run path.
        .arg(format!("-lgasnet-smp-{mode}"))
        .arg("-o")
        .arg(&program);
    let output = run(&mut command)?;
    match output.status.success() {
        true => Ok(program),
        false => Err(said(&output)),
    }
}

/// How clients are compiled and linked.
const WAYS: [(&[&str], &[&str]); 2] = [
    (&["-O0"], &[]),
    (
        &["-O2", "-ffunction-sections", "-fdata-sections"],
        &["-O2", "-Wl,--gc-sections"],
    ),
];

fn misfits(language: &str) -> Result<(), Failed> {
    let place = Place::installed(&format!("misfits {language}"), false)?;
    for (options, link) in WAYS {
        let object =
            |name, own: &[&str]| compiled(&place, language, name, &[options, own].concat());
        let stand_in = stand_in()?;
        let silent = object("silent", &["-DGASNET_SEQ"])?;
        let client = object("client", &["-DGASNET_SEQ"])?;
        linked(&place, &[&silent, &stand_in], "seq", link)?;
        let wrong = |objects: &[&Path], mode: &str, symbol: &str| match linked(
            &place,
            &[objects, &[&stand_in]].concat(),
            mode,
            link,
        ) {
            Err(error) if error.contains(symbol) => Ok(()),
            other => Err(format!("{language} {mode} {symbol}: {other:?}")),
        };
        wrong(&[&silent], "par", "argonet_link_threads_SEQ")?;
        wrong(&[&silent], "parsync", "argonet_link_threads_SEQ")?;
        wrong(
            &[&client],
            "par",
            "argonet_client_init_2025_8_0_SMP_SEQ_FAST_ndebug_layout_",
        )?;
        let second = object("second", &["-DGASNET_PAR"])?;
        wrong(&[&silent, &second], "seq", "argonet_link_threads_PAR")?;
        let checked = object(
            "second",
            &[
                "-DGASNET_SEQ",
                "-DGASNET_DEBUG",
                "-DGASNET_ALLOW_OPTIMIZED_DEBUG",
            ],
        )?;
        wrong(&[&silent, &checked], "seq", "argonet_link_debug_debug")?;
    }
    Ok(())
}

/// Headers of one build with the library of another: release and debug, and another version.
fn trees() -> Result<(), Failed> {
    let release = Place::installed("trees", false)?;
    let debug = Place::installed("debug tree", true)?;
    let stand_in = stand_in()?;
    let headers = release.file("older");
    let copied = run(Command::new("cp")
        .arg("-R")
        .arg(release.prefix().join("include"))
        .arg(&headers))?;
    assert!(copied.status.success(), "{}", said(&copied));
    let config = headers.join("gasnet_config.h");
    let text = std::fs::read_to_string(&config)?;
    let older = text.replace("VERSION_PATCH 0\n", "VERSION_PATCH 1\n");
    assert_ne!(text, older);
    std::fs::write(&config, older)?;
    let older = format!("-I{}", headers.display());
    let for_release = ["-DGASNET_SEQ"];
    let for_debug = ["-DGASNET_SEQ", "-DGASNET_DEBUG"];
    for (library, options, symbol) in [
        (&debug, for_release.as_slice(), "argonet_link_debug_nodebug"),
        (&release, &for_debug, "argonet_link_debug_debug"),
        (&release, &[older.as_str(), "-DGASNET_SEQ"], "2025_8_1"),
        (
            &debug,
            &[older.as_str(), "-DGASNET_SEQ", "-DGASNET_DEBUG"],
            "2025_8_1",
        ),
    ] {
        let client = compiled(&release, "c", "client", options)?;
        for directory in ["lib", "lib/shared"] {
            match linked_from(library, directory, &[&client, &stand_in], "seq", &[]) {
                Err(error) if error.contains(symbol) => {}
                other => return Err(format!("{options:?} {directory}: {other:?}").into()),
            }
        }
    }
    // Each with its own.
    for (library, options) in [(&release, for_release.as_slice()), (&debug, &for_debug)] {
        let client = compiled(library, "c", "client", options)?;
        for directory in ["lib", "lib/shared"] {
            linked_from(library, directory, &[&client, &stand_in], "seq", &[])?;
        }
    }
    Ok(())
}

fn contradictions() -> Result<(), Failed> {
    let place = Place::installed("contradictions", false)?;
    for (options, why) in [
        (&[] as &[&str], "exactly one of GASNET_SEQ"),
        (
            &["-DGASNET_SEQ", "-DGASNET_PAR"],
            "exactly one of GASNET_SEQ",
        ),
        (
            &["-DGASNET_SEQ", "-DGASNET_DEBUG", "-DGASNET_NDEBUG"],
            "exclude each other",
        ),
        (&["-DGASNET_SEQ", "-DGASNET_DEBUG", "-O2"], "optimized"),
        (
            &[
                "-DGASNET_SEQ",
                "-DGASNET_SEGMENT_LARGE",
                "-DGASNET_SEGMENT_FAST",
            ],
            "define at most one of GASNET_SEGMENT_FAST",
        ),
        (
            &["-DGASNET_SEQ", "-DGASNET_DEBUGMALLOC"],
            "GASNET_DEBUGMALLOC is what GASNET_DEBUG brings",
        ),
    ] {
        match compiled(&place, "c", "second", options) {
            Err(error) if error.contains(why) => {}
            other => return Err(format!("{options:?}: {other:?}").into()),
        }
    }
    // Not said, said to be nothing, and said twice in one way.
    for options in [
        ["-DGASNET_SEQ", "-DGASNET_DEBUG=0", "-O2"],
        ["-DGASNET_PAR=", "-DGASNET_NDEBUG", "-DGASNET_DEBUG=0"],
        [
            "-DGASNET_PARSYNC",
            "-DGASNET_DEBUG=",
            "-DGASNET_SEGMENT_FAST",
        ],
        // Code under these is the client's.
        ["-DGASNET_SEQ", "-DGASNET_TRACE", "-DGASNET_STATS="],
        ["-DGASNET_SEQ", "-DGASNET_TRACE=0", "-DGASNET_SRCLINES=1"],
        // Words that clients may have as macros.
        ["-DGASNET_SEQ", "-Dnone=1", "-Ddebug=2"],
    ] {
        compiled(&place, "c", "second", &options)?;
    }
    Ok(())
}

fn languages(compiler: &str, language: &str) -> Result<(), Failed> {
    let place = Place::installed(&format!("languages {compiler} {language}"), false)?;
    let standards: &[&str] = match language {
        "c" => &["c99", "c11", "c17", "c2x"],
        _ => &["c++11", "c++17", "c++20"],
    };
    for standard in standards {
        let mut command = Command::new(compiler);
        command
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"])
            .args(["-DGASNET_PAR", &format!("-std={standard}"), "-I"])
            .arg(place.prefix().join("include"))
            .args(["-x", language])
            .args(["client.c", "tools.c", "second.c"].map(source));
        let output = run(&mut command)?;
        if !output.status.success() {
            return Err(format!("{standard}: {}", said(&output)).into());
        }
    }
    Ok(())
}

fn idents() -> Result<(), Failed> {
    let place = Place::installed("idents", false)?;
    let stand_in = stand_in()?;
    for (name, mode) in [("client", "SEQ"), ("silent", "PAR")] {
        let own = format!("-DGASNET_{mode}");
        let client = compiled(&place, "c", name, &["-O2", &own])?;
        let link = ["-O2", "-Wl,--gc-sections", "-s"];
        let program = linked(&place, &[&client, &stand_in], &mode.to_lowercase(), &link)?;
        let file = std::fs::read(program)?;
        let has = |text: &str| file.windows(text.len()).any(|part| part == text.as_bytes());
        for ident in [
            "EXAPIVersion: 0.19 $",
            &format!("ThreadModel: GASNET_{mode} $"),
            "Segment: GASNET_SEGMENT_FAST $",
            "Config: (libgasnet.a) RELEASE=2025.8.0,SPEC=0.19,CONDUIT=SMP(SMP-1.0/ARGONET-1.0),THREADMODEL=",
            "ConduitName: SMP $",
            "CoreLibraryName: SMP $",
            "CoreLibraryVersion: 1.0 $",
            "ExtendedLibraryName: ARGONET $",
            "ExtendedLibraryVersion: 1.0 $",
            "PSHM: 1 $",
            "FORKSpawner: 1 $",
            "BuildTimestamp: ",
            "BuildId: argonet-",
            "ConfigureArgs: --prefix=",
            "SystemTuple: ",
            "SystemName: ",
            "CompilerID: |COMPILER_FAMILY:",
        ] {
            assert!(has(&format!("$GASNet{ident}")), "{name}: {ident}");
        }
        let words = format!(
            ",THREADMODEL={mode},SEGMENT=FAST,PTR=64bit,CACHE_LINE_BYTES=64,noalign,pshm,nodebug,notrace,nostats,\
             nodebugmalloc,nosrclines,timers_native,membars_builtin,atomics_"
        );
        assert!(cfg!(not(target_arch = "x86_64")) || has(&words), "{words}");
    }
    Ok(())
}

fn no_code() -> Result<(), Failed> {
    let place = Place::installed("no code", false)?;
    for options in [["-DGASNET_SEQ", "-O2"], ["-DGASNET_PAR", "-O0"]] {
        let object = compiled(&place, "c", "second", &options)?;
        let output = run(Command::new("size").args(["-A"]).arg(object))?;
        let text = said(&output);
        let line = text
            .lines()
            .find(|line| line.starts_with(".text "))
            .unwrap_or_default();
        let bytes = line.split_whitespace().nth(1);
        assert_eq!(bytes, Some("0"), "{text}");
    }
    Ok(())
}

fn shared() -> Result<(), Failed> {
    let place = Place::installed("shared", false)?;
    let stand_in = stand_in()?;
    let client = compiled(&place, "c", "second", &["-fPIC", "-DGASNET_PARSYNC"])?;
    linked(
        &place,
        &[&client, &stand_in],
        "parsync",
        &["-shared", "-Wl,-z,defs,-z,text"],
    )?;
    Ok(())
}
