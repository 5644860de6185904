//! Places and content of installed files, and errors where they cannot be put.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, run, runs, said, succeeded};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("the tree is complete", complete),
        Trial::test("scripts can read the configuration", configuration),
        Trial::test("the files of make and pkg-config say the same", files),
        Trial::test("pkg-config finds the variants", packages)
            .with_ignored_flag(!runs("pkg-config")),
        Trial::test("the launcher", launcher),
        Trial::test("the launcher of tcp", amudprun),
        Trial::test("manual pages", pages),
    ]
}

fn complete() -> Result<(), Failed> {
    let place = Place::installed("complete", false)?;
    let prefix = place.prefix();
    let mut wanted: Vec<String> = [
        "lib/libargonet.a",
        "lib/debug/libargonet.a",
        "lib/shared/libargonet.so",
        "lib/shared/libargonet.so.0",
        "lib/cmake/GASNet/GASNetConfig.cmake",
        "lib/cmake/argonet/argonetConfig.cmake",
        "lib/argonet/build/gasnet_config.h",
        "lib/argonet/build/config.status",
        "lib/argonet/build/other/amudp/amudprun",
        "lib/argonet/build/other/amudp/Makefile",
        "include/gasnet_tools-seq.mak",
        "include/gasnet_tools-par.mak",
        "bin/amudprun",
        "share/man/man1/amudprun.1",
        "share/man/man7/argonet-c.7",
        "share/man/man7/argonet-settings.7",
    ]
    .map(str::to_owned)
    .into();
    for conduit in ["smp", "tcp", "udp", "portals", "usnic", "gni", "ofi"] {
        for name in [
            format!("include/{conduit}-conduit/gasnet_core.h"),
            format!("include/{conduit}-conduit/argonet_conduit.h"),
            format!("lib/argonet/build/{conduit}-conduit/contrib/gasnetrun_{conduit}"),
            format!("bin/gasnetrun_{conduit}"),
            format!("share/man/man1/gasnetrun_{conduit}.1"),
        ] {
            wanted.push(name);
        }
        for mode in ["seq", "par", "parsync"] {
            let variant = format!("{conduit}-{mode}");
            for suffix in ["", "-shared"] {
                wanted.push(format!("lib/pkgconfig/gasnet-{variant}{suffix}.pc"));
            }
            let (own, build) = (
                format!("include/{conduit}-conduit"),
                format!("lib/argonet/build/{conduit}-conduit"),
            );
            wanted.push(match conduit {
                "portals" | "ofi" => format!("{own}/static/{variant}.mak"),
                _ => format!("{own}/{variant}.mak"),
            });
            wanted.push(format!("{own}/shared/{variant}-shared.mak"));
            wanted.push(format!("{build}/{variant}.mak"));
            wanted.push(format!("lib/libgasnet-{variant}.a"));
            wanted.push(format!("{build}/libgasnet-{variant}.a"));
            wanted.push(format!("lib/shared/libgasnet-{variant}.so"));
        }
    }
    // All headers of the repository.
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    for directory in ["", "argonet"] {
        for entry in include.join(directory).read_dir()? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".h") {
                wanted.push(format!("include/{directory}/{name}"));
            }
        }
    }
    assert!(wanted.len() > 50, "{wanted:?}");
    for name in wanted {
        let bytes = prefix.join(&name).metadata().map_or(0, |file| file.len());
        assert!(bytes > 0, "{name} is missing or empty");
    }
    // The linker would take shared libraries, and no program could say where they are. Nothing is
    // left of the work.
    for (directory, ending) in [
        ("lib", "a"),
        ("include/smp-conduit", "mak"),
        ("include/tcp-conduit", "mak"),
        ("include/udp-conduit", "mak"),
        ("include/portals-conduit", "mak"),
        ("include/usnic-conduit", "mak"),
        ("include/gni-conduit", "mak"),
        ("include/ofi-conduit", "mak"),
    ] {
        for entry in prefix.join(directory).read_dir()? {
            let path = entry?.path();
            let header = path.ends_with("gasnet_core.h") || path.ends_with("argonet_conduit.h");
            // Clients take the name of every such file apart: a conduit, a hyphen, a mode.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            assert!(ending != "mak" || name.matches('-').count() < 2, "{name}");
            let right = path.is_dir() || header || path.extension() == Some(ending.as_ref());
            assert!(right, "{}", path.display());
        }
    }
    let mut names = place.content()?.into_keys();
    assert!(names.all(|path| !path.to_string_lossy().contains("/.argonet-install")));
    readable(&place)
}

/// Every user may read files, and run programs, even where the repository's own files do not allow
/// it.
fn readable(place: &Place) -> Result<(), Failed> {
    for path in place.content()?.into_keys() {
        let data = path.symlink_metadata()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let launcher = name.starts_with("gasnetrun_") && !name.ends_with(".1");
        let program = launcher || name == "config.status" || name == "amudprun";
        if data.is_file() {
            let wanted = if program { 0o755 } else { 0o644 };
            assert_eq!(
                data.permissions().mode() & 0o777,
                wanted,
                "{}",
                path.display()
            );
        } else if data.is_symlink() {
            assert!(path.read_link()?.is_relative(), "{}", path.display());
        }
    }
    Ok(())
}

fn configuration() -> Result<(), Failed> {
    let place = Place::installed("configuration", true)?;
    let text = place.text("include/gasnet_config.h")?;
    for (name, value) in [
        ("GASNET_RELEASE_VERSION_MAJOR", "2025"),
        ("GASNET_RELEASE_VERSION_MINOR", "8"),
        ("GASNET_RELEASE_VERSION_PATCH", "0"),
        ("GASNETI_EX_SPEC_VERSION_MAJOR", "0"),
        ("GASNETI_EX_SPEC_VERSION_MINOR", "19"),
    ] {
        assert_eq!(text.matches(name).count(), 1, "{name}");
        let line = format!("\n#define {name} {value}\n");
        assert!(text.contains(&line), "{name} in\n{text}");
    }
    let own = format!("\"--prefix={} --debug\"", place.prefix().display());
    for value in [own.as_str(), "GASNETI_BUILD_ID \"argonet-"] {
        assert!(text.contains(value), "{value} in\n{text}");
    }
    Ok(())
}

/// The variables of a file, without what only its reader needs.
fn variables(text: &str, equals: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.split_once(equals));
    let of_gasnet = lines.filter(|(name, _)| name.starts_with("GASNET_"));
    of_gasnet
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

fn files() -> Result<(), Failed> {
    let place = Place::installed("files", false)?;
    // One word for the shell, also when it reads the value a second time.
    let prefix = place.prefix().display().to_string().replace(' ', "\\ ");
    for (mode, linking) in [
        ("seq", ""),
        ("par", ""),
        ("parsync", ""),
        ("seq", "-shared"),
        ("par", "-shared"),
        ("parsync", "-shared"),
    ] {
        let place_of = if linking.is_empty() { "" } else { "shared/" };
        let make = variables(
            &place.text(&format!(
                "include/smp-conduit/{place_of}smp-{mode}{linking}.mak"
            ))?,
            "=",
        );
        let text = place.text(&format!("lib/pkgconfig/gasnet-smp-{mode}{linking}.pc"))?;
        // This file says where it lies, that of make where the tree was installed.
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n"), "{text}");
        let package = variables(&text.replace("${prefix}", &prefix), "=");
        assert_eq!(make, package);
        let value = |name: &str| {
            let found = make
                .iter()
                .find(|(own, _)| own == &format!("GASNET_{name}"));
            found
                .unwrap_or_else(|| panic!("no GASNET_{name}"))
                .1
                .as_str()
        };
        for name in [
            "CFLAGS",
            "OPT_CFLAGS",
            "MISC_CFLAGS",
            "CXXFLAGS",
            "OPT_CXXFLAGS",
            "MISC_CXXFLAGS",
            "MISC_CPPFLAGS",
            "CXXCPPFLAGS",
            "MISC_CXXCPPFLAGS",
            "CXX",
            "LD",
            "PREFIX",
        ] {
            value(name);
        }
        assert_eq!(value("LDFLAGS"), "");
        let libraries = value("LIBS");
        let rest = if linking.is_empty() {
            let start = format!("-L{prefix}/lib -lgasnet-smp-{mode} -largonet ");
            assert!(libraries.starts_with(&start), "{libraries}");
            &libraries[start.len()..]
        } else {
            let place = format!("{prefix}/lib/shared");
            let start = format!("-L{place} -Wl,-rpath,{place} ");
            assert!(libraries.starts_with(&start), "{libraries}");
            let rest = &libraries[start.len()..];
            assert_eq!(rest, format!("-lgasnet-smp-{mode} -largonet"));
            rest
        };
        let mut words = rest.split(' ');
        assert!(words.all(|word| word.starts_with("-l")), "{libraries}");
        let includes = format!("-I{prefix}/include -I{prefix}/include/smp-conduit");
        assert_eq!(value("INCLUDES"), includes);
        assert!(
            make.iter()
                .all(|(name, _)| name != "GASNET_LD_REQUIRES_MPI")
        );
        let upper = mode.to_uppercase();
        let defines = value("DEFINES");
        assert!(defines.contains(&format!("-DGASNET_{upper} ")), "{defines}");
        assert_eq!(value("CPPFLAGS"), format!("{defines} {includes}"));
        // Clients compare it with the one that they would take.
        let compiler = Path::new(value("CC"));
        assert!(compiler.is_absolute(), "{}", compiler.display());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|place| place.join("cc"));
        let theirs = places.find(|file| file.is_file()).unwrap_or_default();
        assert_eq!(compiler.canonicalize()?, theirs.canonicalize()?);
    }
    Ok(())
}

fn packages() -> Result<(), Failed> {
    let place = Place::installed("packages", false)?;
    let asked = |options: &[&str]| {
        let mut command = Command::new("pkg-config");
        command
            .env("PKG_CONFIG_PATH", place.prefix().join("lib/pkgconfig"))
            .args(options)
            .arg("gasnet-smp-par");
        let output = run(&mut command)?;
        match output.status.success() {
            true => Ok(said(&output).trim().to_owned()),
            false => Err(said(&output)),
        }
    };
    assert_eq!(asked(&["--modversion"])?, "2025.8.0");
    let flags = asked(&["--cflags"])?;
    assert!(flags.contains("-DGASNET_PAR"), "{flags}");
    let place = place.prefix().display().to_string().replace(' ', "\\ ");
    for options in [["--libs"], ["--variable=GASNET_LIBS"]] {
        let words = asked(&options)?;
        let start = format!("-L{place}/lib/pkgconfig/../../lib -lgasnet-smp-par -largonet");
        assert!(words.starts_with(&start), "{words}");
    }
    Ok(())
}

fn launcher() -> Result<(), Failed> {
    let place = Place::installed("launcher", false)?;
    let launch = |words: &[&str]| {
        let mut command = Command::new(place.prefix().join("bin/gasnetrun_smp"));
        command
            .args(words)
            .env("ARGONET_T", "x")
            .env_remove("ARGONET_U");
        run(&mut command).map(|output| (output.status.code(), said(&output)))
    };
    let script = "echo \"$GASNET_PSHM_NODES ranks of $0 $1\"; exit 3";
    let program = ["sh", "-c", script, "a b", "-n"];
    for options in [
        &["-n", "3"] as &[&str],
        &["-np", "3", "-N", "1"],
        &["-E", "ARGONET_T,PATH", "-n", "3", "--"],
    ] {
        let ended = launch(&[options, &program].concat())?;
        assert_eq!(ended, (Some(3), "3 ranks of a b -n\n".to_owned()));
    }
    let (_, text) = launch(&[&["-v", "-n", "2"] as &[&str], &program].concat())?;
    assert!(text.contains("GASNET_PSHM_NODES=2 sh -c"), "{text}");
    for (words, why) in [
        (&["-n", "x", "true"] as &[&str], "not 'x'"),
        (&["-n", "0", "true"], "not '0'"),
        (&["-n"], "needs a value"),
        (&["true"], "number of ranks is missing"),
        (&["-n", "2"], "program is missing"),
        (&["-n", "2", "-N", "2", "true"], "share one host"),
        (
            &["-n", "2", "-E", "ARGONET_U", "true"],
            "ARGONET_U is not set",
        ),
        (&["-n", "2", "-E", "A=B", "true"], "no name"),
        (&["-n", "2", "-x", "true"], "unknown option -x"),
    ] {
        let (code, text) = launch(words)?;
        assert!(
            code == Some(2) && text.contains(why),
            "{words:?}: {code:?} {text}"
        );
    }
    Ok(())
}

fn amudprun() -> Result<(), Failed> {
    let place = Place::installed("amudprun", false)?;
    let launch = |words: &[&str], servers: &str| {
        let mut command = Command::new(place.prefix().join("bin/amudprun"));
        command.args(words).env("GASNET_PSHM_NODES", "9");
        command
            .env("GASNET_SSH_SERVERS", "")
            .env("SSH_SERVERS", servers);
        run(&mut command).map(|output| (output.status.code(), said(&output)))
    };
    let program = place.file("program");
    let script = "#!/bin/sh\necho \"$ARGONET_LAUNCH_RANKS $1 $ARGONET_CONDUIT [$GASNET_PSHM_NODES] $GASNET_SSH_SERVERS\"; exit 3\n";
    std::fs::write(&program, script)?;
    succeeded(&run(Command::new("chmod").arg("+x").arg(&program))?)?;
    let program = program.to_string_lossy().into_owned();
    let ended = launch(&["-np", "3", &program, "-n"], "a b,c")?;
    assert_eq!(ended, (Some(3), "3 -n tcp [] a b,c\n".to_owned()));
    let ended = launch(&["-n", "3", "-N", "2", "--", &program, "x"], "a b,c")?;
    assert_eq!(ended, (Some(3), "3 x tcp [] a b\n".to_owned()));
    for (words, why) in [
        (&["-np", "x", "true"] as &[&str], "not 'x'"),
        (&["-np"], "needs a value"),
        (&["true"], "number of ranks is missing"),
        (&["-np", "2"], "program is missing"),
        (
            &["-np", "2", "no-such-program"],
            "'no-such-program' was not found",
        ),
        (&["-np", "2", "/no/such"], "/no/such cannot be run"),
        (&["-np", "2", "-N", "3", "true"], "names fewer hosts: a b"),
        (&["-np", "2", "-E", "A=B", "true"], "no name"),
        (&["-np", "2", "-x", "true"], "unknown option -x"),
    ] {
        let (code, text) = launch(words, "a b")?;
        assert!(
            code == Some(2) && text.contains(why),
            "{words:?}: {code:?} {text}"
        );
    }
    Ok(())
}

fn pages() -> Result<(), Failed> {
    let place = Place::installed("pages", false)?;
    for (name, has) in [
        ("man1/amudprun.1", "GASNET_SPAWNFN=L"),
        ("man1/gasnetrun_smp.1", "Number of ranks, 1 or more."),
        ("man7/argonet-c.7", "GASNET_PSHM_NODES"),
        ("man7/argonet-settings.7", "GASNET_MAX_SEGSIZE"),
    ] {
        let path = place.prefix().join("share/man").join(name);
        let source = std::fs::read_to_string(&path)?;
        assert!(
            source.starts_with(".TH ") || source.starts_with(".\\\""),
            "{name}"
        );
        // The only check where no program can show a page.
        if !runs("man") {
            assert!(source.contains(has), "{name}");
            continue;
        }
        let mut man = Command::new("man");
        man.args(["--warnings", "-P", "cat", "-l"]).arg(path);
        let output = run(man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8"))?;
        assert!(output.stderr.is_empty(), "{name}: {}", said(&output));
        let text = succeeded(&output)?;
        assert!(text.contains(has), "{name}: {text}");
    }
    Ok(())
}
