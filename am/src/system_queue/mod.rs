//! Short messages between ranks that go beside requests and replies, without I/O.
//!
//! Each is a *question* of one word, and each is answered. A rank has at most one unanswered
//! question to each other rank, so that the questions that can arrive at a rank are as many as
//! there are ranks. Nothing here waits for credits, buffers or handlers: a thread that polls takes
//! what is in this queue first, and can answer at once. Credits called back and the end of the job
//! ride on it.
//!
//! The network may lose, repeat and delay frames: a question is repeated until it is answered, a
//! repeated question gets the same answer again, and is carried out once.
//!
//! * [`SystemQueue`] belongs to the rank and is under one lock: questions that wait for their
//!   answers.
//! * [`Slot`] belongs to the stream of a peer: 8 bytes.
//! * [`Shutdown`] is the end of the job over the queue.
// spec P12: the system queue.

mod frame;
mod queue;
mod shutdown;

#[cfg(test)]
mod tests;

pub use frame::{Answer, Frame, FrameError, Question};
pub use queue::{Heard, Slot, SystemQueue};
pub use shutdown::{Shutdown, ShutdownState};
