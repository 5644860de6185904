//! Reading environments: good, bad and strange ones.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use argonet_settings::*;

fn settings(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_pairs(
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    )
}

fn warnings(name: &str) -> Vec<String> {
    let settings = settings(&[(name, "1")]).unwrap();
    settings
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn given_values_hold_and_defaults_otherwise() {
    let settings = settings(&[
        ("GASNET_CATCH_EXIT", "No"),
        ("GASNET_EXITTIMEOUT_FACTOR", " 0.25 "),
        ("GASNET_BACKTRACE_TYPE", "gdb, EXECINFO"),
        ("GASNET_NO_CATCH_SIGNAL", "SIGUSR1,term"),
        ("ARGONET_WAIT", "SLEEP"),
        ("ARGONET_HUGEPAGES", "1GB"),
        ("GASNET_BACKTRACE_NODES", "0,2-4,6"),
        // Empty and blank count as not given.
        ("GASNET_FS_SYNC", ""),
        ("ARGONET_STALL_TIMEOUT", "  "),
        // Of two the first.
        ("GASNET_FREEZE", "1"),
        ("GASNET_FREEZE", "0"),
        ("HOME", "/"),
    ])
    .unwrap();
    assert!(!settings.get(&CATCH_EXIT));
    assert_eq!(
        settings.get(&EXIT_TIMEOUT_FACTOR),
        Duration::from_millis(250)
    );
    assert_eq!(settings.given(&EXIT_TIMEOUT_FACTOR), Some("0.25"));
    let types = settings.get(&BACKTRACE_TYPE);
    assert_eq!(
        types,
        Some(vec![BacktraceType::Gdb, BacktraceType::Execinfo])
    );
    let left_alone = settings.get(&NO_CATCH_SIGNAL).unwrap();
    assert!(left_alone.contains(SignalNumber(15)) && !left_alone.contains(SignalNumber(2)));
    assert_eq!(settings.get(&WAIT), WaitMode::Sleep);
    assert_eq!(settings.get(&HUGE_PAGES), Some(HugePages::Size1GB));
    assert!(settings.get(&BACKTRACE_NODES).contains(3));
    assert!(!settings.get(&BACKTRACE_NODES).contains(5));
    assert_eq!(settings.given(&FS_SYNC), None);
    assert_eq!(settings.get(&STALL_TIMEOUT), Duration::from_secs(60));
    assert!(settings.get(&FREEZE));
    // Not given.
    assert_eq!(settings.get(&EXIT_TIMEOUT), None);
    let computed = Duration::from_secs(3);
    assert_eq!(settings.get_or(&EXIT_TIMEOUT, computed), computed);
    assert_eq!(settings.get(&EXIT_TIMEOUT_MAX), Duration::from_secs(5));
    assert_eq!(settings.get(&MAX_SEGSIZE), SegmentLimit::default());
    assert_eq!(settings.get(&PSHM_NODES), 0);
    assert_eq!(settings.warnings(), []);
}

#[test]
fn all_bad_values_are_reported_with_the_allowed_ones() {
    let error = settings(&[
        ("GASNET_MAX_SEGSIZE", "64MB/X"),
        ("GASNET_CATCH_EXIT", "perhaps"),
        ("GASNET_EXITTIMEOUT", "-1"),
        ("ARGONET_WAIT", "a\nb"),
        ("GASNET_FREEZE", "1"),
        // Of no effect, so of no kind.
        ("GASNET_NUM_QPS", "many"),
    ])
    .unwrap_err();
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "the environment variable ARGONET_WAIT is \"a\\nb\"; allowed: one of auto, spin, yield, sleep",
            "the environment variable GASNET_CATCH_EXIT is \"perhaps\"; allowed: 1, y or yes; 0, n or no",
            "the environment variable GASNET_EXITTIMEOUT is \"-1\"; allowed: a number of seconds from 0.1 to 86400",
            lines[3],
        ]
    );
    let last = "the environment variable GASNET_MAX_SEGSIZE is \"64MB/X\" (the suffix is 'X'); allowed: a size";
    assert!(lines[3].starts_with(last), "{text}");
}

#[test]
fn other_encodings_are_errors_of_our_names_only() {
    let pair = |name: &str| (OsString::from(name), OsString::from_vec(vec![b'x', 0xff]));
    let error = Settings::from_pairs([pair("GASNET_FS_SYNC")]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("GASNET_FS_SYNC is \"x\u{fffd}\" (not UTF-8)"),
        "{error}"
    );
    for name in [
        "HOME",
        "GASNET_TEST_X",
        "GASNET_NUM_QPS",
        "GASNET_UNHEARD_OF",
    ] {
        assert!(Settings::from_pairs([pair(name)]).is_ok(), "{name}");
    }
    let name = OsString::from_vec(b"GASNET_\xff".to_vec());
    assert!(Settings::from_pairs([(name, "1".into())]).is_ok());
}

#[test]
fn misspelt_names_are_warned_of_with_the_nearest() {
    for (name, nearest) in [
        ("GASNET_MAX_SEGSIZ", "GASNET_MAX_SEGSIZE"),
        ("GASNET_MAXSEGSIZE", "GASNET_MAX_SEGSIZE"),
        ("GASNET_BACKTRAC", "GASNET_BACKTRACE"),
        ("GASNET_EXIT_TIMEOUT", "GASNET_EXITTIMEOUT"),
        ("ARGONET_EXITTIMEOUT", "GASNET_EXITTIMEOUT"),
        ("ARGONET_HUGE_PAGES", "ARGONET_HUGEPAGES"),
        ("GASNET_PSHM_NODE", "GASNET_PSHM_NODES"),
        ("AMUDP_FAULTRATE", "AMUDP_FAULT_RATE"),
        ("GASNET_IBV_PORTS_x", "GASNET_IBV_PORTS"),
    ] {
        let warning = format!(
            "the environment variable {name} is unknown; the nearest name that is known is {nearest}"
        );
        assert_eq!(warnings(name), [warning]);
    }
}

#[test]
fn known_names_without_a_mechanism_are_warned_of_once() {
    for name in [
        "GASNET_NUM_QPS",
        "GASNET_UCX_SPAWNER",
        "GASNET_IBV_PORTS_0_1",
        "AMUDP_FAULT_RATE",
        "AMMPI_CREDITS_PP",
    ] {
        let warnings = warnings(name);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let start = format!("{name} has no effect in argonet: ");
        assert!(warnings[0].starts_with(&start), "{warnings:?}");
    }
}

/// Realm turns off three things that are not here, and its users can do nothing about it.
#[test]
fn turning_off_absent_features_is_no_warning() {
    let absent = [
        "GASNET_ODP_VERBOSE",
        "GASNET_USE_ODP",
        "GASNET_PHYSMEM_PROBE",
    ];
    // The things that they turn off are here, or are done in another way.
    let present = ["GASNET_USE_HUGEPAGES", "GASNET_NODEMAP_EXACT"];
    let absent = absent.map(|name| (name, 0));
    for (name, when_off) in absent.into_iter().chain(present.map(|name| (name, 1))) {
        for (value, expected) in [("0", when_off), ("no", when_off), ("1", 1)] {
            let settings = settings(&[(name, value)]).unwrap();
            assert_eq!(settings.warnings().len(), expected, "{name}={value}");
        }
    }
}

#[test]
fn foreign_names_are_left_alone() {
    for name in [
        "GASNET_UCX_TLS",
        "GASNET_TEST_POLITE_SYNC",
        "GASNET_TEST_ANYTHING",
        "ARGONET_TEST_MARK",
        "ARGONET_BOOT",
        "GASNETTOOLS_X",
        "UPCXX_SHARED_HEAP_SIZE",
        "CHPL_RT_MASTERIP",
        "FI_PROVIDER",
        "UCX_TLS",
        "SLURM_JOB_ID",
        "SSH_CMD",
        "PATH",
    ] {
        assert_eq!(warnings(name), [""; 0], "{name}");
    }
}

#[test]
fn settings_read_are_printed_once_in_gasnets_shape() {
    let settings = settings(&[
        ("ARGONET_SEGMENT", "64MB"),
        ("GASNET_CATCH_EXIT", "y"),
        ("GASNET_MAX_SEGSIZE", "1GB/P"),
        ("GASNET_FREEZE", "1"),
    ])
    .unwrap();
    let _ = settings.get(&CATCH_EXIT);
    let _ = settings.get(&CATCH_EXIT);
    let _ = settings.get(&SEGMENT);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&lines);
    settings.announce(move |line| into.lock().unwrap().push(line.to_owned()));
    let _ = settings.get(&MAX_SEGSIZE);
    let _ = settings.get(&EXIT_TIMEOUT_FACTOR);
    let _ = settings.get(&NO_CATCH_SIGNAL);
    let _ = settings.get_or(&EXIT_TIMEOUT, Duration::from_millis(1200));
    let _ = settings.get(&CATCH_EXIT);
    let shown = |name: &str, value: &str| {
        let width = 55 - name.len() - value.len();
        format!("ENV parameter: {name} = {value}{:>width$}", "(default)")
    };
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "ENV parameter: GASNET_CATCH_EXIT = YES".to_owned(),
            "ENV parameter: ARGONET_SEGMENT = 64MB (64 MB)".to_owned(),
            "ENV parameter: GASNET_MAX_SEGSIZE = 1GB/P".to_owned(),
            shown("GASNET_EXITTIMEOUT_FACTOR", "0.1"),
            shown("GASNET_NO_CATCH_SIGNAL", "*not set*"),
            shown("GASNET_EXITTIMEOUT", "1.2"),
        ]
    );
}
