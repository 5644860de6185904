//! Tests of what failover is made of.

mod agreement;
mod chosen;
mod driver;
mod link;
mod pair;
mod pipe;
mod world;
