//! Places and tools that do not serve for an installation: an error that says why, and nothing
//! changed.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, failed, install, installing, run, said, succeeded};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("places that cannot be written", places),
        Trial::test("paths that make cannot name", paths),
        Trial::test("trees of others", others),
        Trial::test("a tree that another process is changing", locked),
        Trial::test("trees that are read-only, or busy half-way", mounted)
            .with_ignored_flag(!may_mount()),
        Trial::test("tools that are missing or fail", tools),
        Trial::test("a C compiler and an archiver are enough", few_tools),
    ]
}

/// Fails with one line that says this, and leaves no directory.
fn refused(prefix: &Path, why: &str) -> Result<(), Failed> {
    let there = prefix.exists();
    let text = failed(&run(&mut installing(prefix)?)?)?;
    assert!(
        text.starts_with("cargo xtask install: --prefix")
            && text.contains(why)
            && text.lines().count() == 1,
        "{text}"
    );
    assert_eq!(prefix.exists(), there, "{}", prefix.display());
    Ok(())
}

fn places() -> Result<(), Failed> {
    let place = Place::empty("places")?;
    let file = place.file("a file");
    std::fs::write(&file, "")?;
    refused(&file, "cannot be made: File exists")?;
    refused(&file.join("below"), "a file cannot be made: File exists")?;
    refused(
        Path::new("/proc/argonet/below"),
        "/proc/argonet cannot be made",
    )?;
    // A directory that cannot be made within the prefix, found before anything is put.
    let prefix = place.prefix();
    std::fs::create_dir(&prefix)?;
    std::fs::write(prefix.join("lib"), "")?;
    let before = place.content()?;
    refused(&prefix, "lib")?;
    assert_eq!(place.content()?, before);
    std::fs::remove_file(prefix.join("lib"))?;
    // One that leads where nothing can be written.
    std::os::unix::fs::symlink("/proc", prefix.join("lib"))?;
    let before = place.content()?;
    refused(&prefix, "the tree/lib cannot be written")?;
    assert_eq!(place.content()?, before);
    Ok(())
}

fn paths() -> Result<(), Failed> {
    let place = Place::empty("paths")?;
    for bad in [
        "two\nlines",
        "a$b",
        "a'b",
        "a\"b",
        "a#b",
        "a\\b",
        "a:b",
        "a,b",
        "a;b",
        "a*b",
    ] {
        let prefix = place.file(bad);
        refused(&prefix, "do not all take")?;
    }
    for good in ["a b", "é", "a+b@c%d=e~f.g-h_i"] {
        let prefix = place.file(good);
        install(&prefix, &[])?;
        let mak = std::fs::read_to_string(prefix.join("include/smp-conduit/smp-seq.mak"))?;
        // As a shell reads it.
        let line = mak
            .lines()
            .find_map(|line| line.strip_prefix("GASNET_PREFIX = "));
        let echo = format!("printf %s {}", line.unwrap_or_default());
        let read = succeeded(&run(Command::new("sh").args(["-c", &echo]))?)?;
        assert_eq!(read, prefix.display().to_string());
    }
    Ok(())
}

fn others() -> Result<(), Failed> {
    let place = Place::empty("others")?;
    let prefix = place.prefix();
    std::fs::create_dir_all(prefix.join("include"))?;
    std::fs::write(
        prefix.join("include/gasnetex.h"),
        "/* of another package */\n",
    )?;
    let before = place.content()?;
    refused(
        &prefix,
        "include/gasnetex.h: not as this installation would have left it",
    )?;
    assert_eq!(place.content()?, before);
    // One of ours into which another installer has put files since.
    std::fs::remove_file(prefix.join("include/gasnetex.h"))?;
    std::fs::write(prefix.join("include/other.h"), "")?;
    install(&prefix, &[])?;
    for name in ["gasnetex.h", "gasnet_mk.h"] {
        std::fs::write(
            prefix.join("include").join(name),
            "/* of another package */\n",
        )?;
    }
    let before = place.content()?;
    refused(
        &prefix,
        "include/gasnet_mk.h and 1 more: not as this installation",
    )?;
    assert_eq!(place.content()?, before);
    Ok(())
}

fn locked() -> Result<(), Failed> {
    let place = Place::empty("locked")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let before = place.content()?;
    let directory = std::fs::File::open(&prefix)?;
    directory.lock()?;
    refused(&prefix, "another process is changing it")?;
    assert_eq!(place.content()?, before);
    directory.unlock()?;
    install(&prefix, &[])?;
    Ok(())
}

fn may_mount() -> bool {
    run(Command::new("unshare").args(["-m", "true"])).is_ok_and(|output| output.status.success())
}

/// Runs the installation where mounts of its own hold.
fn mounted_run(prefix: &Path, mount: &str) -> Result<String, Failed> {
    let install = installing(prefix)?;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-e", "-c"]);
    command.arg(format!("{mount}\nshift\nexec \"$@\""));
    command.arg("sh").arg(prefix);
    command.arg(install.get_program()).args(install.get_args());
    Ok(failed(&run(&mut command)?)?)
}

fn mounted() -> Result<(), Failed> {
    let place = Place::empty("mounted")?;
    let prefix = place.prefix();
    install(&prefix, &[])?;
    let before = place.content()?;
    let text = mounted_run(
        &prefix,
        "mount --bind \"$1\" \"$1\"; mount -o remount,ro,bind \"$1\"",
    )?;
    assert!(
        text.starts_with("cargo xtask install: --prefix") && text.contains("Read-only file system"),
        "{text}"
    );
    assert_eq!(place.content()?, before);
    // Nothing shows beforehand that this file cannot be replaced.
    let text = mounted_run(
        &prefix,
        "mount --bind \"$1/bin/gasnetrun_smp\" \"$1/bin/gasnetrun_smp\"",
    )?;
    assert!(
        text.contains("bin/gasnetrun_smp: ")
            && text.contains("is unfinished and cannot be used: install again, or uninstall"),
        "{text}"
    );
    assert!(
        place
            .text("share/argonet/manifest")?
            .contains("\nstate unfinished\n")
    );
    assert!(!prefix.join("include/gasnet_config.h").exists());
    let mut names = place.content()?.into_keys();
    assert!(names.all(|path| !path.to_string_lossy().contains("/.argonet-install")));
    install(&prefix, &[])?;
    let after = place.content()?;
    let lost: Vec<_> = before
        .keys()
        .filter(|path| !after.contains_key(*path))
        .collect();
    assert!(lost.is_empty() && after.len() == before.len(), "{lost:?}");
    Ok(())
}

fn tools() -> Result<(), Failed> {
    let place = Place::empty("tools")?;
    let prefix = place.prefix();
    for (variable, value, why) in [
        (
            "CC",
            "no-such-compiler",
            "no-such-compiler: no such program (CC)",
        ),
        ("CC", "/dev/null", "/dev/null: no such program (CC)"),
        (
            "AR",
            "no-such-archiver -x",
            "no-such-archiver -x: no such program (AR)",
        ),
        ("CC", "false", "exit status: 1"),
        ("AR", "false", "exit status: 1"),
        ("LD", "false", "GNU ld 2.29 or later is needed (LD)"),
        ("NM", "false", "exit status: 1"),
        ("OBJCOPY", "false", "exit status: 1"),
    ] {
        let text = failed(&run(installing(&prefix)?.env(variable, value))?)?;
        assert!(
            text.starts_with("cargo xtask install: ") && text.contains(why),
            "{text}"
        );
        assert!(!prefix.exists(), "{variable}={value}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["install", "--library", "/nonexistent/x.a", "--prefix"]);
    let text = failed(&run(command.arg(&prefix))?)?;
    assert!(text.contains("/nonexistent/x.a: No such file"), "{text}");
    assert!(!prefix.exists());
    // Options belong to the program.
    succeeded(&run(installing(&prefix)?.env("CC", "cc -DUSERS=1"))?)?;
    let mak = place.text("include/smp-conduit/smp-par.mak")?;
    assert!(mak.contains("/cc -DUSERS=1\n"), "{mak}");
    Ok(())
}

/// Neither C++ nor Perl nor git, make or pkg-config.
fn few_tools() -> Result<(), Failed> {
    let place = Place::empty("few tools")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
        files
            .find(|file| file.is_file())
            .ok_or(format!("{name} is not there"))
    };
    let directory = place.file("bin");
    std::fs::create_dir(&directory)?;
    for name in ["cc", "ar", "as", "ld", "nm", "objcopy"] {
        std::os::unix::fs::symlink(find(name)?, directory.join(name))?;
    }
    let mut command = installing(&place.prefix())?;
    let output = run(command.env("PATH", &directory).env("RUSTC", find("rustc")?))?;
    succeeded(&output).map_err(|_| said(&output))?;
    let mak = place.text("include/smp-conduit/smp-seq.mak")?;
    assert!(mak.contains("\nGASNET_CXX = c++\n"), "{mak}");
    assert!(
        place
            .text("lib/argonet/build/config.status")?
            .contains("|@PERL@|perl|")
    );
    Ok(())
}
