//! Files that `uninstall` takes away, and those that it leaves.

use libtest_mimic::{Failed, Trial};

use std::path::Path;

use crate::place::{Place, failed, install, installing, run, succeeded, uninstall, uninstall_with};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("all of it", all),
        Trial::test("all but the files of others", of_others),
        Trial::test("nothing where nothing is", nothing),
        Trial::test("a staged tree, and none at its prefix", staged),
    ]
}

fn all() -> Result<(), Failed> {
    let place = Place::empty("all")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let text = succeeded(&uninstall(&prefix)?)?;
    assert_eq!(text, format!("uninstalled from {}\n", prefix.display()));
    assert!(!prefix.exists());
    assert!(place.file("").exists());
    // A directory that was there before stays.
    std::fs::create_dir(&prefix)?;
    install(&prefix, &[])?;
    succeeded(&uninstall(&prefix)?)?;
    assert_eq!(place.content()?.len(), 1);
    // Also where files have been removed by hand.
    install(&prefix, &[])?;
    std::fs::remove_dir_all(prefix.join("lib"))?;
    succeeded(&uninstall(&prefix)?)?;
    assert_eq!(place.content()?.len(), 1);
    Ok(())
}

fn staged() -> Result<(), Failed> {
    let place = Place::empty("staged")?;
    // Nothing is there on any machine.
    let prefix = Path::new("/no such directory/argonet");
    let stage = place.file("stage");
    let tree = stage.join("no such directory/argonet");
    let destdir = ["--destdir".as_ref(), stage.as_os_str()];
    let text = succeeded(&run(installing(prefix)?.args(destdir))?)?;
    let says = format!("installed in {}\n", tree.display());
    assert!(text.ends_with(&says), "{text}");
    let config = std::fs::read_to_string(tree.join("include/gasnet_config.h"))?;
    assert!(
        config.contains("--prefix=/no such directory/argonet"),
        "{config}"
    );
    failed(&uninstall(prefix)?)?;
    assert!(tree.exists());
    succeeded(&uninstall_with(prefix, &destdir)?)?;
    assert!(!tree.exists());
    Ok(())
}

fn of_others() -> Result<(), Failed> {
    let place = Place::empty("of others")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    std::fs::write(prefix.join("include/other.h"), "other")?;
    std::fs::write(prefix.join("bin/gasnetrun_smp"), "changed")?;
    // A link in the place of a file, and a file in the place of a link.
    std::fs::remove_file(prefix.join("lib/libargonet.a"))?;
    std::os::unix::fs::symlink("shared/libargonet.so", prefix.join("lib/libargonet.a"))?;
    let text = succeeded(&uninstall(&prefix)?)?;
    for line in [
        format!(
            "left, as it has been changed: {}/bin/gasnetrun_smp",
            prefix.display()
        ),
        format!(
            "left, as it has been changed: {}/lib/libargonet.a",
            prefix.display()
        ),
        format!("left: {}/include holds other.h", prefix.display()),
        format!("left: {} holds bin, include, lib", prefix.display()),
    ] {
        assert!(
            text.lines().any(|other| other == line),
            "{line}\nin\n{text}"
        );
    }
    let left: Vec<String> = place
        .content()?
        .into_keys()
        .filter_map(|path| Some(path.strip_prefix(&prefix).ok()?.display().to_string()))
        .collect();
    let wanted = [
        "",
        "bin",
        "bin/gasnetrun_smp",
        "include",
        "include/other.h",
        "lib",
        "lib/libargonet.a",
    ];
    assert_eq!(left, wanted);
    Ok(())
}

fn nothing() -> Result<(), Failed> {
    let place = Place::empty("nothing")?;
    let prefix = place.prefix();
    let refused = || -> Result<(), Failed> {
        let text = failed(&uninstall(&prefix)?)?;
        assert!(
            text.starts_with("cargo xtask uninstall: --prefix: ")
                && text.contains("holds no installation: share/argonet/manifest is missing"),
            "{text}"
        );
        Ok(())
    };
    refused()?;
    std::fs::create_dir(&prefix)?;
    std::fs::write(prefix.join("file"), "")?;
    refused()?;
    assert_eq!(place.content()?.len(), 2);
    Ok(())
}
