//! The blocks of the user's book, which are compiled and run as documentation tests.

#[doc = include_str!("../docs/book/src/first.md")]
mod first {}

#[doc = include_str!("../docs/book/src/depend.md")]
mod depend {}

#[doc = include_str!("../docs/book/src/memory.md")]
mod memory {}

#[doc = include_str!("../docs/book/src/arrays.md")]
mod arrays {}

#[doc = include_str!("../docs/book/src/which.md")]
mod which {}

#[doc = include_str!("../docs/book/src/messages.md")]
mod messages {}

#[doc = include_str!("../docs/book/src/rpc.md")]
mod rpc {}

#[doc = include_str!("../docs/book/src/tasks.md")]
mod tasks {}

#[doc = include_str!("../docs/book/src/collectives.md")]
mod collectives {}

#[doc = include_str!("../docs/book/src/overlap.md")]
mod overlap {}

#[doc = include_str!("../docs/book/src/async.md")]
mod asynchronous {}
#[doc = include_str!("../docs/book/src/threads.md")]
mod threads {}

#[doc = include_str!("../docs/book/src/ends.md")]
mod ends {}

#[doc = include_str!("../docs/book/src/losses.md")]
mod losses {}

#[doc = include_str!("../docs/book/src/launching.md")]
mod launching {}

#[doc = include_str!("../docs/book/src/launchers.md")]
mod launchers {}

#[doc = include_str!("../docs/book/src/hang.md")]
mod hang {}

#[doc = include_str!("../docs/book/src/testing.md")]
mod testing {}

#[doc = include_str!("../docs/book/src/performance.md")]
mod performance {}

#[doc = include_str!("../docs/book/src/porting.md")]
mod porting {}

#[doc = include_str!("../docs/book/src/conduit.md")]
mod conduit {}

#[doc = include_str!("../docs/book/src/security.md")]
mod security {}
