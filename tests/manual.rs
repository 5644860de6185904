//! The manual pages name what the programs offer, and the README shows programs that compile.

use std::path::Path;
use std::process::Command;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_manual_page_names_every_option_of_run() {
    let help = Command::new(env!("CARGO_BIN_EXE_argonet"))
        .args(["run", "--help"])
        .output()
        .expect("argonet can be run");
    let help = String::from_utf8(help.stdout).expect("text");
    // In a manual page a hyphen is written with a backslash.
    let page = text("docs/man/argonet-run.1").replace("\\-", "-");
    let options: Vec<&str> = help
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| word.starts_with('-'))
        .collect();
    assert!(options.contains(&"--timeout"), "{help}");
    for option in options {
        assert!(
            page.contains(option),
            "the manual page does not name {option}"
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

/// What `argonet info` prints with these options; nothing where it fails.
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
    for bad in [&[][..], &["--man"], &["--settings", "--man", "--markdown"]] {
        assert_eq!(info(bad), "", "{bad:?}");
    }
}
