//! Every kind of value: printed values are read back, and no text makes reading panic.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use argonet_settings::*;
use proptest::prelude::*;

fn seconds(unit: TimeUnit) -> Kind {
    let (min, max) = (Duration::ZERO, Duration::MAX);
    Kind::Duration { unit, min, max }
}

const COUNT: Kind = Kind::Count {
    min: 0,
    max: u64::MAX,
    unit: "things",
};

const SIZE: Kind = Kind::Size {
    min: 0,
    max: u64::MAX,
};

fn limits() -> impl Strategy<Value = SegmentLimit> {
    let amount = prop_oneof![
        (1..=1u64 << 56).prop_map(|bytes| format!("{bytes}B")),
        (0..=56u32).prop_map(|shift| format!("{}B", 1u64 << shift)),
        (1..=999_999_999u32).prop_map(|parts| format!("0.{parts:09}")),
        Just("1.0".to_owned()),
    ];
    let text = (amount, prop_oneof!["/P", "/H"]).prop_map(|(amount, scope)| amount + &scope);
    text.prop_map(|text| SegmentLimit::parse(&text).expect("a limit"))
}

fn nodes() -> impl Strategy<Value = NodeSet> {
    let range = (any::<u32>(), any::<u32>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let some = proptest::collection::vec(range, 1..6).prop_map(NodeSet::Some);
    prop_oneof![Just(NodeSet::All), some]
}

fn signals() -> impl Strategy<Value = SignalNumber> {
    (0..=70).prop_filter_map("a signal", |n: i32| SignalNumber::parse(&n.to_string()))
}

/// A value of any kind.
fn values() -> impl Strategy<Value = (Kind, Value)> {
    const WORDS: &[&str] = WaitMode::WORDS;
    let word = || proptest::sample::select(WORDS);
    let text = "[!-~]([ -~]{0,30}[!-~])?";
    let times = (any::<u64>(), 0..1_000_000_000u32).prop_map(|(s, n)| Duration::new(s, n));
    let micros = any::<u64>().prop_map(Duration::from_nanos);
    prop_oneof![
        any::<bool>().prop_map(|b| (Kind::Boolean, Value::Boolean(b))),
        any::<u64>().prop_map(|n| (SIZE, Value::Size(Bytes(n)))),
        (0..64u32).prop_map(|n| (SIZE, Value::Size(Bytes(1 << n)))),
        limits().prop_map(|limit| (Kind::Limit, Value::Limit(limit))),
        any::<u64>().prop_map(|n| (COUNT, Value::Count(n))),
        (proptest::num::f64::NORMAL | proptest::num::f64::ZERO)
            .prop_map(|n| (Kind::Number, Value::Number(n))),
        times.prop_map(|t| (seconds(TimeUnit::Seconds), Value::Duration(t))),
        micros.prop_map(|t| (seconds(TimeUnit::Microseconds), Value::Duration(t))),
        word().prop_map(|w| (Kind::Choice(WORDS), Value::Choice(w))),
        proptest::collection::vec(word(), 1..5)
            .prop_map(|w| (Kind::Choices(WORDS), Value::Choices(w))),
        nodes().prop_map(|n| (Kind::Nodes, Value::Nodes(n))),
        any::<u16>().prop_map(|bits| (Kind::Letters, Value::Letters(Letters::from_bits(bits)))),
        signals().prop_map(|s| (Kind::Signal, Value::Signal(s))),
        proptest::collection::vec(signals(), 1..5)
            .prop_map(|s| (Kind::Signals, Value::Signals(Signals::Some(s)))),
        Just((Kind::Signals, Value::Signals(Signals::All))),
        text.prop_map(|t| (Kind::Text, Value::Text(t))),
        text.prop_map(|t| (Kind::Path, Value::Path(PathBuf::from(t)))),
    ]
}

/// Texts that look like values.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-+.0-9KMGTBPHinfe/,* ]{0,24}",
        "[0-9]{1,40}(\\.[0-9]{0,40})?( ?[KMGT]?i?B)?(/[PH])?",
        "(SIG)?[A-Z0-9]{1,8}(,[A-Z0-9]{1,8}){0,3}",
    ]
}

fn names() -> impl Strategy<Value = OsString> {
    let known: Vec<&str> = table()
        .iter()
        .flat_map(Section::rows)
        .map(|row| row.name)
        .collect();
    prop_oneof![
        4 => proptest::sample::select(known).prop_map(OsString::from),
        1 => "(GASNET|ARGONET|AMUDP)_[A-Z_]{0,12}".prop_map(OsString::from),
        1 => proptest::collection::vec(1..=255u8, 0..12).prop_map(OsString::from_vec),
    ]
}

proptest! {
    #[test]
    fn printed_values_are_read_back((kind, value) in values()) {
        let shown = kind.show(&value);
        prop_assert_eq!(kind.parse(&shown), Ok(value), "{}", shown);
    }

    #[test]
    fn no_text_panics(text in texts()) {
        for row in table().iter().flat_map(Section::rows) {
            if let Ok(value) = row.kind.parse(&text) {
                let shown = row.kind.show(&value);
                prop_assert_eq!(row.kind.parse(&shown), Ok(value), "{}: {}", row.name, shown);
            }
        }
    }

    #[test]
    fn no_environment_panics(
        pairs in proptest::collection::vec((names(), texts()), 0..12),
        raw in proptest::collection::vec(1..=255u8, 0..20),
    ) {
        let mut pairs: Vec<(OsString, OsString)> =
            pairs.into_iter().map(|(name, text)| (name, text.into())).collect();
        pairs.push(("GASNET_FREEZE".into(), OsString::from_vec(raw)));
        match Settings::from_pairs(pairs) {
            Ok(settings) => {
                let card = settings.card();
                prop_assert!(card.len() <= CARD_BYTES);
                prop_assert_eq!(settings.difference(&card), None);
                for constant in typed_constants() {
                    (constant.read)(&settings);
                }
            }
            Err(error) => {
                prop_assert_eq!(error.to_string().lines().count(), error.bad.len());
            }
        }
    }
}
