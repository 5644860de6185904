//! An installation over another one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, failed, install, installing, installing_for, run, succeeded, uninstall};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("twice", twice),
        Trial::test("some conduits alone", some_conduits),
        Trial::test("over another version", another_version),
        Trial::test("beside files of others", beside),
        Trial::test("killed while it is made", killed),
        Trial::test("over one that was interrupted", interrupted),
    ]
}

fn names(place: &Place) -> Result<BTreeSet<PathBuf>, String> {
    Ok(place.content()?.into_keys().collect())
}

/// The tree has the same files as before.
fn same(place: &Place, before: &BTreeSet<PathBuf>) -> Result<(), String> {
    let after = names(place)?;
    let differ: Vec<&PathBuf> = after.symmetric_difference(before).collect();
    match differ.is_empty() {
        true => Ok(()),
        false => Err(format!("in one of both: {differ:?}")),
    }
}

/// Chosen conduits are whole, and nothing of the others is left.
fn some_conduits() -> Result<(), Failed> {
    let place = Place::empty("some conduits")?;
    let prefix = place.prefix();
    let of = |conduit: &str| -> Result<usize, String> {
        let within = |path: &&PathBuf| {
            let name = path.strip_prefix(&prefix).unwrap_or(path);
            name.to_string_lossy().contains(&format!("{conduit}-"))
        };
        Ok(names(&place)?.iter().filter(within).count())
    };
    succeeded(&run(&mut installing_for("smp,udp", &prefix)?)?)?;
    assert!(of("smp")? > 20 && of("smp")? == of("udp")?);
    assert_eq!((of("tcp")?, of("portals")?), (0, 0));
    let configuration = place.text("include/gasnet_config.h")?;
    assert!(
        configuration.contains(" --conduits=smp,udp\""),
        "{configuration}"
    );
    let cmake = place.text("lib/cmake/GASNet/GASNetConfig.cmake")?;
    assert!(
        cmake.contains("set(GASNet_CONDUITS \"smp;udp\")"),
        "{cmake}"
    );
    let before = of("smp")?;
    install(&prefix, &[])?;
    assert_eq!((of("smp")?, of("udp")?), (before, 0));
    let text = failed(&run(&mut installing_for("smp,udpx", &prefix)?)?)?;
    assert!(
        text.contains("'udpx'") && text.contains("portals"),
        "{text}"
    );
    assert_eq!(of("smp")?, before);
    Ok(())
}

fn twice() -> Result<(), Failed> {
    let place = Place::empty("twice")?;
    let prefix = place.prefix();
    assert!(install(&prefix, &[])?.contains("installed in "));
    let before = place.content()?;
    install(&prefix, &[])?;
    let after = place.content()?;
    same(&place, &before.keys().cloned().collect())?;
    // Libraries hold the time of their making, and the manifest their fingerprints.
    for (path, bytes) in &before {
        let name = path.strip_prefix(&prefix)?;
        let dated = name.starts_with("lib")
            && ["smp", "tcp", "udp", "portals", "usnic", "gni", "ofi"]
                .iter()
                .any(|of| name.to_string_lossy().contains(&format!("gasnet-{of}-")))
            || name == Path::new("share/argonet/manifest");
        assert!(
            dated || after.get(path) == Some(bytes),
            "{}",
            name.display()
        );
    }
    // For other clients.
    install(&prefix, &["--debug"])?;
    let mak = place.text("include/smp-conduit/smp-seq.mak")?;
    assert!(mak.contains("-DGASNET_DEBUG=1"), "{mak}");
    Ok(())
}

/// Makes a tree look as if an earlier version had left a header, in a directory of its own.
fn age(place: &Place, name: &str, changed: bool) -> Result<(), Failed> {
    let prefix = place.prefix();
    let directory = Path::new(name).parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(prefix.join(directory))?;
    std::fs::copy(prefix.join("include/gasnet_mk.h"), prefix.join(name))?;
    let manifest = place.text("share/argonet/manifest")?;
    let mut lines = manifest.lines();
    let like = lines.find(|line| line.ends_with(" include/gasnet_mk.h"));
    let own = like
        .unwrap_or_default()
        .replace("include/gasnet_mk.h", name);
    let text = format!("{manifest}{own}\ndirectory {}\n", directory.display());
    std::fs::write(prefix.join("share/argonet/manifest"), text)?;
    if changed {
        std::fs::write(prefix.join(name), "changed")?;
    }
    Ok(())
}

fn another_version() -> Result<(), Failed> {
    let place = Place::empty("another version")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let before = names(&place)?;
    age(&place, "include/old/gasnet_old.h", false)?;
    install(&prefix, &[])?;
    same(&place, &before)?;
    // A file that has been changed in the meantime is the user's.
    age(&place, "include/old/gasnet_old.h", true)?;
    let text = install(&prefix, &[])?;
    assert!(text.contains("kept, as it has been changed: "), "{text}");
    assert_eq!(place.text("include/old/gasnet_old.h")?, "changed");
    Ok(())
}

fn beside() -> Result<(), Failed> {
    let place = Place::empty("beside")?;
    let prefix = place.prefix();
    let other = prefix.join("include/other.h");
    std::fs::create_dir_all(prefix.join("include"))?;
    std::fs::write(&other, "other")?;
    install(&prefix, &[])?;
    install(&prefix, &[])?;
    assert_eq!(std::fs::read_to_string(&other)?, "other");
    Ok(())
}

/// A compiler that kills its caller when it is to compile something.
fn deadly(place: &Place) -> Result<PathBuf, Failed> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = place.file("deadly");
    std::fs::write(
        &path,
        "#!/bin/sh\ncase \" $* \" in *\" -c \"*) kill -KILL $PPID; exit 1 ;; esac\nexec cc \"$@\"\n",
    )?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

fn killed() -> Result<(), Failed> {
    let place = Place::empty("killed")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let before = place.content()?;
    let output = run(installing(&prefix)?.env("CC", deadly(&place)?))?;
    assert_eq!(output.status.code(), None);
    let mut after = place.content()?;
    let left = |path: &Path| path.to_string_lossy().contains("/.argonet-install-");
    assert!(after.keys().any(|path| left(path)));
    after.retain(|path, _| !left(path));
    assert_eq!(after, before);
    install(&prefix, &[])?;
    same(&place, &before.keys().cloned().collect())?;
    // Files that were left aside go with an uninstallation, too.
    let _ = run(installing(&prefix)?.env("CC", deadly(&place)?))?;
    assert!(names(&place)?.iter().any(|path| left(path)));
    assert!(uninstall(&prefix)?.status.success());
    assert!(!prefix.exists());
    Ok(())
}

/// As it looks between the first renaming and the last.
fn interrupted() -> Result<(), Failed> {
    let place = Place::empty("interrupted")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let before = names(&place)?;
    let manifest = place.text("share/argonet/manifest")?;
    let unfinished = manifest.replace("\nstate complete\n", "\nstate unfinished\n");
    assert_ne!(manifest, unfinished);
    let interrupt = || {
        std::fs::write(prefix.join("share/argonet/manifest"), &unfinished)?;
        std::fs::remove_file(prefix.join("include/gasnet_config.h"))?;
        std::fs::remove_file(prefix.join("lib/libargonet.a"))
    };
    interrupt()?;
    install(&prefix, &[])?;
    same(&place, &before)?;
    assert!(
        place
            .text("share/argonet/manifest")?
            .contains("\nstate complete\n")
    );
    std::fs::remove_file(prefix.join("include/gasnet_config.h"))?;
    let manifest = place.text("share/argonet/manifest")?;
    let unfinished = manifest.replace("\nstate complete\n", "\nstate unfinished\n");
    std::fs::write(prefix.join("share/argonet/manifest"), unfinished)?;
    let output = uninstall(&prefix)?;
    let text = crate::place::succeeded(&output)?;
    assert!(text.contains("was interrupted"), "{text}");
    assert!(!prefix.exists());
    // A list that is none.
    install(&prefix, &[])?;
    std::fs::write(
        prefix.join("share/argonet/manifest"),
        "argonet installation 1\nfile 0 ../../x\n",
    )?;
    for output in [run(&mut installing(&prefix)?)?, uninstall(&prefix)?] {
        let text = failed(&output)?;
        assert!(
            text.contains("cannot be understood: file 0 ../../x"),
            "{text}"
        );
    }
    Ok(())
}
