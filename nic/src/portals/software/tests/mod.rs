//! Tests of the software interface.
