//! Readers of bytes from outside, with one plain function for each kind: libFuzzer calls it with
//! inputs that it invents (`cargo xtask fuzz`), and a test with every file of `fuzz/corpus`.
//!
//! A target panics when a promise is broken; bytes that are refused are no failure.
// The modules shared with an example have tests there, which want the rest of the example.
#![cfg(not(test))]

mod control;
mod datagrams;
mod handshake;
mod interfaces;
mod job;
mod pmi;
mod record;
mod ring;
mod rpc;
mod sequences;
mod settings;
mod size;
mod stream;

// The reader of sequence files belongs to an example, which is no library.
#[path = "../../../examples/kmers/kmer.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod kmer;
#[path = "../../../examples/kmers/parse.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod parse;
#[path = "../../../examples/kmers/partition.rs"]
#[allow(dead_code, missing_docs, unreachable_pub)]
mod partition;

/// One kind of bytes from outside.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and its directory in the corpus.
    pub name: &'static str,
    /// Takes the bytes.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 13] = [
    Target {
        name: "control",
        run: control::run,
    },
    Target {
        name: "datagrams",
        run: datagrams::run,
    },
    Target {
        name: "handshake",
        run: handshake::run,
    },
    Target {
        name: "interfaces",
        run: interfaces::run,
    },
    Target {
        name: "job",
        run: job::run,
    },
    Target {
        name: "pmi",
        run: pmi::run,
    },
    Target {
        name: "record",
        run: record::run,
    },
    Target {
        name: "ring",
        run: ring::run,
    },
    Target {
        name: "rpc",
        run: rpc::run,
    },
    Target {
        name: "sequences",
        run: sequences::run,
    },
    Target {
        name: "settings",
        run: settings::run,
    },
    Target {
        name: "size",
        run: size::run,
    },
    Target {
        name: "stream",
        run: stream::run,
    },
];
