//! Many seeds, each a job of whole engines: on a cluster whose wire fails in its own way, and over
//! the portals conduit with interfaces that do.
#![forbid(unsafe_code)]

mod many;
mod portals;
mod wire;
