//! temp
pub mod bulk;
