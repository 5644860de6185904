//! The portals conduit over an interface of which each call returns each of its errors once, at the
//! n-th use: the work of that call still comes about, or is reported as an error; nothing hangs,
//! nothing is done twice, nothing stays in use, and afterwards all works.

mod cases;
#[path = "../../../nic/tests/shared/documented.rs"]
mod documented;
mod interface;
mod job;
mod log;
