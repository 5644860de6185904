//! Tests of what failover is made of.

mod agreement;
mod link;
mod pipe;
mod world;
