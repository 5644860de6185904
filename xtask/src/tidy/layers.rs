//! Arrows point down: a crate names only crates that stand above it in this table.

use super::File;

/// Crates from the bottom, with their directories.
const CRATES: [(&str, &str); 17] = [
    ("argonet-macros", "macros"),
    ("argonet-base", "base"),
    ("argonet-settings", "settings"),
    ("argonet-trace", "trace"),
    ("argonet-segment", "segment"),
    ("argonet-am", "am"),
    ("argonet-event", "event"),
    ("argonet-nic", "nic"),
    ("argonet-conduit", "conduit"),
    ("argonet-boot", "boot"),
    ("argonet-engine", "engine"),
    ("argonet-start", "start"),
    ("argonet", ""),
    ("argonet-capi", "capi"),
    ("argonet-cli", "cli"),
    ("argonet-sim", "sim"),
    ("argonet-conformance", "conformance"),
];

/// Crates without any unsafe code.
const FORBID_UNSAFE: [&str; 4] = [
    "am/src/lib.rs",
    "event/src/lib.rs",
    "macros/src/lib.rs",
    "settings/src/lib.rs",
];

pub(crate) fn check(files: &[File], complaints: &mut Vec<String>) {
    for file in files {
        if let Some(directory) = file.path.strip_suffix("Cargo.toml") {
            manifest(directory.trim_end_matches('/'), file, complaints);
        }
        if FORBID_UNSAFE.contains(&file.path.as_str())
            && !file.text.contains("#![forbid(unsafe_code)]")
        {
            complaints.push(format!("{}: this crate forbids unsafe code", file.path));
        }
    }
}

fn manifest(directory: &str, file: &File, complaints: &mut Vec<String>) {
    let Some(own) = CRATES.iter().position(|(_, d)| *d == directory) else {
        return;
    };
    for name in dependencies(&file.text) {
        let path = &file.path;
        match CRATES.iter().position(|(known, _)| *known == name) {
            // A crate that names itself turns its features on in its tests.
            Some(other) if other <= own => {}
            Some(_) => complaints.push(format!("{path}: {name} does not stand below this crate")),
            None => complaints.push(format!(
                "{path}: {name} has no place in the table of crates (xtask/src/tidy/layers.rs)"
            )),
        }
    }
}

/// The workspace's own crates that a manifest depends on.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = !section.starts_with("workspace") && section.ends_with("dependencies");
        } else if inside && (line.starts_with("argonet-") || line.starts_with("argonet.")) {
            let name: String = line
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let (path, text) = (path.to_owned(), text.to_owned());
        let mut complaints = Vec::new();
        check(&[File { path, text }], &mut complaints);
        complaints
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        let text =
            "[dependencies]\nargonet-base.workspace = true\nargonet-conduit = { path = \"x\" }\n";
        assert_eq!(complaints("am/Cargo.toml", text).len(), 1);
        assert_eq!(complaints("boot/Cargo.toml", text).len(), 0);
        let own = "[dev-dependencies]\nargonet-am.workspace = true\n";
        assert_eq!(complaints("am/Cargo.toml", own).len(), 0);
        let above = "[dev-dependencies]\nargonet-engine.workspace = true\n";
        assert_eq!(complaints("am/Cargo.toml", above).len(), 1);
        let unknown = "[target.'cfg(loom)'.dependencies]\nargonet-x.workspace = true\n";
        assert_eq!(complaints("Cargo.toml", unknown).len(), 1);
        let table = "[workspace.dependencies]\nargonet-x = { path = \"x\" }\n";
        assert_eq!(complaints("Cargo.toml", table).len(), 0);
    }

    #[test]
    fn a_crate_that_allows_unsafe_is_found() {
        assert_eq!(complaints("am/src/lib.rs", "//! x\n").len(), 1);
        assert_eq!(
            complaints("am/src/lib.rs", "#![forbid(unsafe_code)]\n").len(),
            0
        );
    }
}
