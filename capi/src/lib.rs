//! The functions behind `include/*.h`: what C calls that a header cannot do by itself.
//!
//! Nothing is decided here: a function takes C's arguments apart, calls the crate that knows, and puts the result together.
//! The static library of this crate is what C programs link; a program that uses `gasnet_tools.h` alone never starts a
//! job.
//!
//! # Unsafe code
//!
//! C passes pointers that nothing can check. Every function says what it takes them for, which is what the header says;
//! within that contract they are used as argued at each place.
#![allow(unsafe_code)]

mod export;
pub mod tools;

pub use export::Prototype;
