//! The environment: lines `NAME=VALUE` as variables.

use argonet_settings::{Settings, page};

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let given = pairs.map(|(name, value)| (name.into(), value.into()));
    match Settings::from_pairs(given) {
        Ok(settings) => {
            settings.keep_quiet();
            assert!(!page::text(&settings).is_empty());
            for warning in settings.warnings() {
                assert!(!warning.to_string().is_empty());
            }
            // Ranks with the same settings agree.
            assert!(settings.difference(&settings.card()).is_none());
        }
        Err(error) => assert!(error.to_string().contains("allowed"), "{error}"),
    }
}
