//! Several ranks in one process that reach each other's memory by address.

mod everything;
mod forged;
mod longs;
mod refused;
pub(crate) mod rig;
mod transfers;
