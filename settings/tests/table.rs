//! Rules for every row.

use std::collections::BTreeSet;

use argonet_settings::{Effect, Index, Kind, Preset, Row, Settings, table, typed_constants};

fn rows() -> impl Iterator<Item = &'static Row> {
    table().iter().flat_map(argonet_settings::Section::rows)
}

#[test]
fn names_are_unique_and_found() {
    let (mut names, index) = (BTreeSet::new(), Index::new());
    for row in rows() {
        assert!(names.insert(row.name), "{} has two rows", row.name);
        if row.is_one_name() {
            assert!(
                row.matches(row.name) && index.find(row.name) == Some(row),
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn patterns_match_the_names_they_stand_for() {
    for (name, row) in [
        ("GASNET_IBV_PORTS_0", Some("GASNET_IBV_PORTS_<n>")),
        ("GASNET_IBV_PORTS_0_11", Some("GASNET_IBV_PORTS_<n>")),
        ("GASNET_IBV_PORTS_", None),
        ("GASNET_IBV_PORTS__", None),
        ("GASNET_IBV_PORTS_x", None),
        ("GASNET_IBV_PORTS_TYPE", Some("GASNET_IBV_PORTS_TYPE")),
        ("GASNET_OFI_DEVICE_3", Some("GASNET_OFI_DEVICE_<n>")),
        ("FI_PROVIDER", Some("FI_PROVIDER")),
        ("FI_SOMETHING", Some("FI_*")),
        ("FI_", None),
    ] {
        assert_eq!(Index::new().find(name).map(|row| row.name), row, "{name}");
    }
}

#[test]
fn rows_are_whole_sentences_with_reasons() {
    for row in rows() {
        assert!(row.about.ends_with('.'), "{}", row.name);
        if let Effect::NoEffect(reason) = row.effect {
            assert!(!reason.is_empty() && !reason.ends_with('.'), "{}", row.name);
        }
    }
}

#[test]
fn every_default_is_one_of_its_kinds_values_and_every_constant_has_its_rows_type() {
    let settings = Settings::default();
    for constant in typed_constants() {
        let row = constant.row;
        assert_ne!(row.effect, Effect::Internal, "{}", row.name);
        assert!(row.is_one_name(), "{}", row.name);
        let (shown, is_default) = settings.shown(row);
        assert!(is_default);
        if let (Preset::Is(_), Some(value)) = (row.preset, row.preset_value()) {
            assert_eq!(row.kind.parse(&shown), Ok(value), "{}", row.name);
        }
        // Panics where the type does not fit.
        (constant.read)(&settings);
    }
}

/// A value that a user could give, other than the default where there is another.
fn sample(kind: &Kind) -> String {
    match kind {
        Kind::Boolean => "yes".into(),
        Kind::Size { .. } => "64KB".into(),
        Kind::Limit => "1GB/H".into(),
        Kind::Count { max, .. } => max.to_string(),
        Kind::Number => "0.5".into(),
        Kind::Duration { max, .. } => max.as_secs().to_string(),
        Kind::Choice(words) => words[words.len() - 1].into(),
        Kind::Choices(words) => words.join(","),
        Kind::Nodes => "0,2-4".into(),
        Kind::Letters => "GP".into(),
        Kind::Signal => "SIGUSR2".into(),
        Kind::Signals => "INT,TERM".into(),
        _ => "text".into(),
    }
}

#[test]
fn a_value_given_has_the_type_of_the_constant() {
    let given = typed_constants().map(|c| (c.row.name.into(), sample(&c.row.kind).into()));
    let settings = Settings::from_pairs(given).expect("good values");
    for constant in typed_constants() {
        (constant.read)(&settings);
        assert!(settings.given_text(constant.row).is_some());
    }
}
