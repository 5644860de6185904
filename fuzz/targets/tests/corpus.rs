//! Every file of the corpus, and every beginning of it, goes through its target, as it would under
//! libFuzzer.
//!
//! A file that once made a target fail stays in the corpus.

use argonet_fuzz_targets::TARGETS;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus")
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn each_target_has_a_corpus_and_each_corpus_a_target() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(names(&corpus()), targets);
    for target in targets {
        assert!(names(&corpus().join(&target)).len() > 1, "{target}");
    }
}

#[test]
fn the_corpus_is_replayed() {
    for target in TARGETS {
        for name in names(&corpus().join(target.name)) {
            let bytes = std::fs::read(corpus().join(target.name).join(&name)).unwrap();
            for len in 0..=bytes.len() {
                // Shown by the harness if the target panics.
                println!("{}/{name}, {len} bytes", target.name);
                (target.run)(&bytes[..len]);
            }
        }
    }
}
