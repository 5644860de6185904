//! Many seeds, each a job of whole engines: on a cluster whose wire fails in its own way, and over
//! the portals conduit with interfaces that do; and seeds of the reliable layer of datagrams.
#![forbid(unsafe_code)]

mod datagrams;
mod many;
mod portals;
mod wire;
