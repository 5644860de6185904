//! The functions behind `include/*.h`: everything that a header cannot do by itself.
//!
//! Nothing is decided here: a function takes C's arguments apart, calls the crate that knows, and
//! puts the result together. C programs link the static library of this crate; a program that uses
//! `gasnet_tools.h` alone never starts a job.
//!
//! # Unsafe code
//!
//! C passes pointers that nothing can check. Every function says what it takes them for, as the
//! header does; within that contract they are used as argued at each place.
#![allow(unsafe_code)]

mod am;
mod barrier;
mod coll;
mod context;
mod events;
mod exit;
mod export;
mod flags;
mod heap;
mod hsl;
mod job;
mod job_tools;
mod kinds;
mod legacy;
mod ratomic;
mod rma;
pub mod tools;
mod vis;
mod waiting;

pub use export::Prototype;

/// All functions that `gasnetex.h` and its kin call.
#[must_use]
pub fn prototypes() -> Vec<Prototype> {
    [
        am::prototypes().as_slice(),
        barrier::PROTOTYPES,
        &coll::prototypes(),
        &events::prototypes(),
        exit::PROTOTYPES,
        heap::PROTOTYPES,
        &hsl::prototypes(),
        &job::prototypes(),
        &job_tools::prototypes(),
        kinds::PROTOTYPES,
        &legacy::prototypes(),
        &ratomic::prototypes(),
        &rma::prototypes(),
        &vis::prototypes(),
        &waiting::prototypes(),
    ]
    .concat()
}

/// Sizes, places and values that `gasnetex.h` and its kin have too, as C would ask for them.
#[must_use]
pub fn layouts() -> Vec<(&'static str, usize)> {
    [
        am::layouts(),
        heap::LAYOUT.to_vec(),
        hsl::layouts(),
        job::layouts(),
        job_tools::layouts(),
        legacy::layouts(),
        ratomic::layouts(),
        waiting::layouts(),
    ]
    .concat()
}
