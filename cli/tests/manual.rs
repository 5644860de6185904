//! The manual pages name all options of the programs, and the README shows programs that compile.

use std::path::Path;
use std::process::Command;

fn text(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The manual page of a subcommand names each of its options.
fn names_every_option(command: &str, one_of_them: &str) {
    let help = Command::new(env!("CARGO_BIN_EXE_argonet"))
        .args([command, "--help"])
        .output()
        .expect("argonet can be run");
    let help = String::from_utf8(help.stdout).expect("text");
    // In a manual page a hyphen is written with a backslash.
    let page = text(&format!("docs/man/argonet-{command}.1")).replace("\\-", "-");
    let options: Vec<&str> = help
        .split(|c: char| c.is_whitespace() || ",[]".contains(c))
        .filter(|word| word.starts_with('-'))
        .collect();
    assert!(options.contains(&one_of_them), "{help}");
    for option in options {
        assert!(
            page.contains(option),
            "the manual page does not name {option}"
        );
    }
}

#[test]
fn the_manual_pages_name_every_option() {
    names_every_option("run", "--timeout");
    names_every_option("info", "--settings");
    names_every_option("perf", "--svg");
    names_every_option("doctor", "--wait");
}

#[test]
fn the_manual_page_of_run_describes_each_conduit() {
    let page = text("docs/man/argonet-run.1");
    let (_, conduits) = page
        .split_once("\\-\\-conduit \" \\fINAME")
        .expect("the option");
    let (conduits, _) = conduits.split_once("\n.TP\n").expect("the next option");
    for conduit in argonet_settings::CONDUIT_NAMES {
        assert!(
            conduits
                .lines()
                .any(|line| line.starts_with(".B") && line.contains(&format!(" {conduit}"))),
            "the manual page does not say what {conduit} is"
        );
    }
}

#[test]
fn the_readme_shows_the_example() {
    let example = text("examples/first.rs");
    let (_, program) = example.split_once("\n\n").expect("an introduction");
    assert!(
        text("README.md").contains(program),
        "README.md shows another program than examples/first.rs"
    );
}

/// Output of `argonet info` with these options; nothing if it fails.
fn info(options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argonet"));
    command
        .arg("info")
        .args(options)
        .env("GASNET_EXITTIMEOUT_MAX", "7");
    let output = command.output().expect("argonet can be run");
    assert_eq!(
        output.status.success(),
        !output.stdout.is_empty(),
        "{output:?}"
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn settings_are_printed_in_three_forms() {
    let text_form = info(&["--settings"]);
    for line in [
        "  GASNET_EXITTIMEOUT_MAX = 7   [seconds; job]\n",
        "  GASNET_EXITTIMEOUT_MIN = 1 (default)   [seconds; job]\n",
    ] {
        assert!(text_form.contains(line), "{line}");
    }
    let row = "\n| `GASNET_EXITTIMEOUT_MAX` | The greatest time that is computed for GASNET_EXITTIMEOUT. | seconds | 5 | job | yes |\n";
    assert!(info(&["--settings", "--markdown"]).contains(row));
    assert_eq!(
        info(&["--settings", "--man"]),
        text("docs/man/argonet-settings.7")
    );
    for bad in [
        &["--man"][..],
        &["--settings", "-n", "2"],
        &["--settings", "--man", "--markdown"],
    ] {
        assert_eq!(info(bad), "", "{bad:?}");
    }
}

/// Facts of a job by `argonet info`, with a setting.
fn facts(ranks: &str, name: &str, value: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argonet"));
    command.args(["info", "-n", ranks]).env(name, value);
    let output = command.output().expect("argonet can be run");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn facts_follow_ranks_and_settings() {
    let small = facts("64", "ARGONET_SEGMENT", "4096");
    for line in [
        "conduit smp",
        "  arguments of a message: at most 16",
        "  ranks: 64",
        "  segment of a rank at start: 4 KiB (ARGONET_SEGMENT), 256 KiB in all;",
        "  message rings: at most 8.01 GiB in all",
        "  memory that reductions pass through: at most 1 GiB in all",
        "  starts: yes",
    ] {
        assert!(small.contains(line), "no \"{line}\" in {small}");
    }
    let large = facts("2", "ARGONET_SEGMENT", "900TB");
    assert!(large.contains("  starts: no: "), "{large}");
    let spin = facts("2", "ARGONET_WAIT", "spin");
    assert!(spin.contains("first yield: without end"), "{spin}");
    let output = Command::new(env!("CARGO_BIN_EXE_argonet"))
        .args(["info"])
        .env("ARGONET_WAIT", "sometimes")
        .output()
        .expect("argonet can be run");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("ARGONET_WAIT") && errors.contains("sometimes"),
        "{errors}"
    );
}
