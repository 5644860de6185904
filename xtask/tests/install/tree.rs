//! What lies where, what it says, and what happens when it cannot be put there.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, install, run, runs, said};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("the tree is complete", complete),
        Trial::test("scripts can read the configuration", configuration),
        Trial::test("the files of make and pkg-config say the same", files),
        Trial::test("pkg-config finds the variants", packages)
            .with_ignored_flag(!runs("pkg-config")),
        Trial::test("the launcher", launcher),
        Trial::test("places that cannot be written", refused),
    ]
}

fn complete() -> Result<(), Failed> {
    let place = Place::empty("complete")?;
    let prefix = place.prefix();
    let output = install(&prefix, &[])?;
    assert!(output.status.success(), "{}", said(&output));
    let mut wanted: Vec<String> = [
        "include/gasnet_config.h",
        "include/gasnet_tools.h",
        "include/gasnet_portable_platform.h",
        "include/argonet/config.h",
        "include/argonet/link.h",
        "include/smp-conduit/gasnet_core.h",
        "lib/libargonet.a",
        "bin/gasnetrun_smp",
    ]
    .map(str::to_owned)
    .into();
    for mode in ["seq", "par", "parsync"] {
        wanted.push(format!("include/smp-conduit/smp-{mode}.mak"));
        wanted.push(format!("lib/libgasnet-smp-{mode}.a"));
        wanted.push(format!("lib/pkgconfig/gasnet-smp-{mode}.pc"));
    }
    for name in wanted {
        let bytes = prefix.join(&name).metadata().map_or(0, |file| file.len());
        assert!(bytes > 0, "{name} is missing or empty");
    }
    // The linker would take shared libraries, and no program could say where they are. Nothing is left of the work.
    for entry in std::fs::read_dir(prefix.join("lib"))? {
        let path = entry?.path();
        assert!(
            path.is_dir() || path.extension() == Some("a".as_ref()),
            "{}",
            path.display()
        );
    }
    // Again into the same place, for other clients.
    let output = install(&prefix, &["--debug"])?;
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        place
            .text("include/smp-conduit/smp-seq.mak")?
            .contains("-DGASNET_DEBUG=1")
    );
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
    let prefix = place.prefix().display().to_string();
    for mode in ["seq", "par", "parsync"] {
        let make = variables(
            &place.text(&format!("include/smp-conduit/smp-{mode}.mak"))?,
            "=",
        );
        let package = variables(
            &place.text(&format!("lib/pkgconfig/gasnet-smp-{mode}.pc"))?,
            "=",
        );
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
        let start = format!("'-L{prefix}/lib' -lgasnet-smp-{mode} -largonet ");
        assert!(libraries.starts_with(&start), "{libraries}");
        let rest = libraries[start.len()..].split(' ');
        rest.for_each(|word| assert!(word.starts_with("-l"), "{word}"));
        let includes = format!("'-I{prefix}/include' '-I{prefix}/include/smp-conduit'");
        assert_eq!(value("INCLUDES"), includes);
        let upper = mode.to_uppercase();
        let defines = value("DEFINES");
        assert!(defines.contains(&format!("-DGASNET_{upper} ")), "{defines}");
        assert_eq!(value("CPPFLAGS"), format!("{defines} {includes}"));
        let compiler = Path::new(value("CC"));
        assert!(
            compiler.is_absolute() && compiler.is_file(),
            "{}",
            compiler.display()
        );
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
    for options in [["--libs"], ["--variable=GASNET_LIBS"]] {
        let words = asked(&options)?;
        assert!(words.contains("-lgasnet-smp-par -largonet"), "{words}");
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
        let told = launch(&[options, &program].concat())?;
        assert_eq!(told, (Some(3), "3 ranks of a b -n\n".to_owned()));
    }
    let (_, told) = launch(&[&["-v", "-n", "2"] as &[&str], &program].concat())?;
    assert!(told.contains("GASNET_PSHM_NODES=2 sh -c"), "{told}");
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
        let (code, told) = launch(words)?;
        assert!(
            code == Some(2) && told.contains(why),
            "{words:?}: {code:?} {told}"
        );
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let place = Place::empty("refused")?;
    let file = place.file("a file");
    std::fs::write(&file, "")?;
    for prefix in [file.clone(), file.join("below"), place.file("two\nlines")] {
        let output = install(&prefix, &[])?;
        let told = said(&output);
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains("cargo xtask install: --prefix") && told.lines().count() == 1,
            "{told}"
        );
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["install", "--library", "/nonexistent/x.a", "--prefix"]);
    let output = run(command.arg(place.prefix()))?;
    let told = said(&output);
    assert!(
        !output.status.success() && told.contains("/nonexistent/x.a: No such file"),
        "{told}"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command
        .args(["install", "--library", "/dev/null", "--prefix"])
        .arg(place.prefix());
    let output = run(command.env("CC", "no-such-compiler"))?;
    let told = said(&output);
    assert!(
        !output.status.success() && told.contains("no-such-compiler: no such program (CC)"),
        "{told}"
    );
    Ok(())
}
