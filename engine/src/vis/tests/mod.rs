//! Shapes against a sequential model, and transfers between ranks of one process.

mod forged;
mod model;
mod notices;
mod pure;
mod refused;
mod transfers;
