//! The conduit tcp by the name under which clients of GASNet ask for the network of Ethernet: udp.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::clients::{STRIPPED, copied, make, status};
use crate::library::built_with;
use crate::place::{Place, failed, run, runs, succeeded};

pub(crate) fn trials() -> Vec<Trial> {
    let make = !runs("make");
    vec![
        Trial::test("udp has all that tcp has", || has_all("udp")),
        Trial::test("udp is a network of a build directory", built).with_ignored_flag(make),
        Trial::test("clients of udp run over tcp", over_tcp).with_ignored_flag(make),
        Trial::test("clients of different networks do not mix", apart),
        Trial::test("arguments come as they were given", as_given),
    ]
}

/// A conduit has the files that tcp has, which say the same by its name.
pub(crate) fn has_all(conduit: &str) -> Result<(), Failed> {
    let renamed = |text: &str| {
        let text = text.replace("tcp", conduit);
        text.replace("TCP", &conduit.to_uppercase())
    };
    let place = Place::installed(&format!("all of {conduit}"), false)?;
    let prefix = place.prefix();
    let own = prefix.display().to_string().replace(' ', "\\ ");
    let mut files = 0;
    for path in place.content()?.into_keys() {
        let name = path.strip_prefix(&prefix)?.to_string_lossy().into_owned();
        if !name.contains("tcp") {
            continue;
        }
        let mut other = prefix.join(renamed(&name));
        // Where build systems that would choose it do not look.
        let is_tcps = name == format!("include/tcp-conduit/{}", name_of(&path));
        if ["portals", "ofi"].contains(&conduit) && is_tcps && name.ends_with(".mak") {
            assert!(other.symlink_metadata().is_err(), "{}", other.display());
            other = prefix.join(format!(
                "include/{conduit}-conduit/static/{}",
                name_of(&other)
            ));
        }
        assert!(
            other.symlink_metadata().is_ok(),
            "{name} has no {}",
            other.display()
        );
        // Files that make and pkg-config read, to the letter.
        if name.ends_with(".mak") || name.ends_with(".pc") {
            files += 1;
            // The path may have the name in it.
            let of = |path: &Path| std::fs::read_to_string(path).map(|t| t.replace(&own, ""));
            let (ours, theirs) = (of(&path)?, of(&other)?);
            assert_eq!(renamed(&ours), theirs, "{name}");
            let chosen = format!("-DARGONET_CONDUIT_{}=1", conduit.to_uppercase());
            assert!(theirs.contains(&chosen), "{theirs}");
        }
    }
    // Three modes, static and shared: for make, for pkg-config, and the static ones for make in the
    // build directory.
    assert_eq!(files, 15);
    Ok(())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn built() -> Result<(), Failed> {
    let place = Place::installed("udp built", false)?;
    let build = place.prefix().join("lib/argonet/build");
    let pattern = place.file("networks");
    std::fs::write(&pattern, "@CONDUITS@\n")?;
    let pair = format!("-:{}", pattern.display());
    let text = succeeded(&run(status(&place).args(["--file", &pair]))?)?;
    assert_eq!(text, "smp udp\n");
    // As UPC++ has them built, and where its launcher looks.
    let before = place.content()?;
    for (directory, target) in [
        ("udp-conduit", "udp-seq.mak"),
        ("udp-conduit", "par"),
        ("other/amudp", "amudprun"),
    ] {
        succeeded(&run(make(&build.join(directory)).arg(target))?)?;
    }
    assert_eq!(before, place.content()?);
    let launcher = build.join("other/amudp/amudprun");
    assert_eq!(
        launcher.canonicalize()?,
        place.prefix().join("bin/amudprun").canonicalize()?
    );
    Ok(())
}

/// The program sees its own arguments alone from the beginning; and no option names the conduit,
/// but a directory.
fn as_given() -> Result<(), Failed> {
    let place = Place::installed("udp as given", false)?;
    let with = ("udp-par", "INCLUDES", "-DGASNET_PAR -D_REENTRANT");
    let program = built_with(&place, "given", &[], with)?;
    for launcher in [
        "amudprun",
        "gasnetrun_udp",
        "gasnetrun_tcp",
        "gasnetrun_portals",
        "gasnetrun_usnic",
        "gasnetrun_gni",
        "gasnetrun_ofi",
    ] {
        let mut command = Command::new(place.prefix().join("bin").join(launcher));
        command.args(["-n", "2"]).arg(&program).arg("given");
        let text = succeeded(&run(command.env("GASNET_SUPERNODE_MAXSIZE", "1"))?)?;
        assert_eq!(text, "given, over UDP\ngiven, over UDP\n", "{launcher}");
    }
    Ok(())
}

fn over_tcp() -> Result<(), Failed> {
    let place = Place::installed("udp over tcp", false)?;
    let launchers = [
        "bin/amudprun",
        "bin/gasnetrun_udp",
        "lib/argonet/build/other/amudp/amudprun",
    ];
    started_alike(&place, "udp", &launchers).map(|_| ())
}

/// The example of that name, linked with a conduit, says its line for each rank however it is
/// started.
///
/// Where it is.
pub(crate) fn started_alike(
    place: &Place,
    conduit: &str,
    launchers: &[&str],
) -> Result<PathBuf, Failed> {
    let hello = copied(place)?.join("hello");
    let gasnet = place.prefix().display().to_string().replace(' ', "\\ ");
    let words = [
        format!("GASNET={gasnet}"),
        format!("CONDUIT={conduit}"),
        STRIPPED.to_owned(),
    ];
    succeeded(&run(make(&hello).args(words))?)?;
    let program = hello.join("hello");
    // By this upcxx-run knows how to start it.
    let bytes = std::fs::read(&program)?;
    let ident = format!("$GASNetConduitName: {} $", conduit.to_uppercase()).into_bytes();
    assert!(bytes.windows(ident.len()).any(|part| part == ident));
    let launched = |launcher: &&str| {
        let mut command = Command::new(place.prefix().join(launcher));
        command.args(["-np", "3"]).arg(&program);
        command
    };
    // The program's own first process takes the number of ranks from its arguments.
    let mut alone = Command::new(&program);
    alone.arg("3");
    for mut command in launchers.iter().map(launched).chain([alone]) {
        let text = succeeded(&run(command.env("GASNET_SUPERNODE_MAXSIZE", "1"))?)?;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{command:?}: {text}");
        assert!(
            lines.iter().all(|line| line.contains("of 3")),
            "{command:?}: {text}"
        );
    }
    // Without a number it says what is missing, and does not run as one rank of smp.
    failed(&run(&mut Command::new(&program))?)?;
    Ok(program)
}

fn apart() -> Result<(), Failed> {
    let place = Place::installed("udp apart", false)?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/c/hello/hello.c");
    let compiled = |options: &[&str]| {
        let mut command = Command::new("cc");
        command.args(options).args(["-O1", "-DGASNET_SEQ", "-I"]);
        command
            .arg(place.prefix().join("include"))
            .arg("-c")
            .arg(&source);
        run(command.arg("-o").arg(place.file("hello.o")))
    };
    for (own, other) in [
        ("UDP", "tcp"),
        ("TCP", "udp"),
        ("UDP", "smp"),
        ("PORTALS", "tcp"),
        ("SMP", "portals"),
        ("USNIC", "tcp"),
        ("PORTALS", "usnic"),
        ("OFI", "usnic"),
        ("GNI", "smp"),
    ] {
        succeeded(&compiled(&[&format!("-DARGONET_CONDUIT_{own}=1")])?)?;
        let mut link = Command::new("cc");
        link.arg(place.file("hello.o"))
            .arg("-L")
            .arg(place.prefix().join("lib"));
        link.arg(format!("-lgasnet-{other}-seq"))
            .arg("-o")
            .arg(place.file("hello"));
        let text = failed(&run(&mut link)?)?;
        let symbol = format!("argonet_link_core_{own}");
        assert!(text.contains(&symbol), "{symbol} in {text}");
    }
    for (options, why) in [
        (
            ["-DARGONET_CONDUIT_UDP=1", "-DARGONET_CONDUIT_TCP=1"],
            "ARGONET_CONDUIT_TCP must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_UDP=1", "-DARGONET_CONDUIT_SMP=1"],
            "ARGONET_CONDUIT_UDP must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_UDP=2", "-O1"],
            "ARGONET_CONDUIT_UDP must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_PORTALS=1", "-DARGONET_CONDUIT_TCP=1"],
            "ARGONET_CONDUIT_PORTALS must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_PORTALS=1", "-DARGONET_CONDUIT_SMP=1"],
            "ARGONET_CONDUIT_PORTALS must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_PORTALS=0", "-O1"],
            "ARGONET_CONDUIT_PORTALS must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_USNIC=1", "-DARGONET_CONDUIT_PORTALS=1"],
            "ARGONET_CONDUIT_USNIC must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_USNIC=1", "-DARGONET_CONDUIT_SMP=1"],
            "ARGONET_CONDUIT_USNIC must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_USNIC=2", "-O1"],
            "ARGONET_CONDUIT_USNIC must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_OFI=1", "-DARGONET_CONDUIT_USNIC=1"],
            "ARGONET_CONDUIT_OFI must be 1",
        ),
        (
            ["-DARGONET_CONDUIT_GNI=1", "-DARGONET_CONDUIT_TCP=1"],
            "ARGONET_CONDUIT_GNI must be 1",
        ),
    ] {
        let text = failed(&compiled(&options)?)?;
        assert!(text.contains(why), "{why} in {text}");
    }
    Ok(())
}
