//! Small jobs.
