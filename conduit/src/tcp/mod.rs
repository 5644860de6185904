//! TCP: how ranks on different hosts reach each other over ordinary networks.

pub mod join;
