//! Output on its way up, and input on its way to rank 0.

use std::time::Instant;

use crate::hosts::message::{BULK_BYTES, Message};
use crate::hosts::node::Node;
use crate::hosts::pipe::pour;
use crate::output::To;

impl Node<'_> {
    /// Sends as many whole lines as the window has room for, and lets those below send more where
    /// there is room.
    pub(super) fn send_lines(&mut self) {
        for to in [To::Out, To::Err] {
            if self.deaf.contains(&to) {
                self.lines.to(to).clear();
            }
            loop {
                let queue = self.lines.to(to);
                let n = whole_lines(queue, self.up.room());
                if n == 0 {
                    break;
                }
                let piece = queue.drain(..n).collect();
                self.send(&Message::Output(to, piece));
            }
        }
        if !self.lines.is_full(To::Out) && !self.lines.is_full(To::Err) {
            self.children.passed_on();
        }
    }

    /// Gives rank 0 the input that has come.
    pub(super) fn pour_input(&mut self) {
        let input = &mut self.input;
        let poured = match &input.pipe {
            Some(_) if input.waiting.is_empty() => Some(0),
            Some(pipe) => pour(&mut input.waiting, pipe),
            None => None,
        };
        if let Some(poured) = poured {
            self.up.passed_on_part(Instant::now(), poured);
        } else {
            // The rank does not read; further input is dropped.
            self.up.passed_on(Instant::now());
            (input.pipe, input.waiting) = (None, Vec::new());
        }
        if input.ended && input.waiting.is_empty() {
            input.pipe = None;
        }
    }
}

/// Number of bytes of `queue` for one message of at most `room` bytes: whole lines, or as much as a
/// message holds of a longer line.
fn whole_lines(queue: &[u8], room: usize) -> usize {
    let most = &queue[..queue.len().min(room)];
    match most.iter().rposition(|&b| b == b'\n') {
        Some(end) => end + 1,
        None if most.len() == BULK_BYTES => BULK_BYTES,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_unless_they_fit_no_message() {
        assert_eq!(whole_lines(b"one\ntwo\nth", 100), 8);
        assert_eq!(whole_lines(b"one\ntwo\n", 7), 4);
        assert_eq!(whole_lines(b"one\n", 3), 0);
        assert_eq!(whole_lines(b"", 100), 0);
        assert_eq!(
            whole_lines(&vec![b'x'; 3 * BULK_BYTES], BULK_BYTES),
            BULK_BYTES
        );
    }
}
