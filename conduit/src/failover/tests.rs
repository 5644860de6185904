//! Tests of what failover is made of.

mod agreement;
mod world;
