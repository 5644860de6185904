//! Shapes against a sequential model, and transfers between ranks of one process.
