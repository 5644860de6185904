//! Tests of what failover is made of.

mod agreement;
mod driver;
mod link;
mod members;
mod pair;
mod pipe;
mod world;
