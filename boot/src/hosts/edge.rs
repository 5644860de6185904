//! One end of a control connection, without I/O or clock: bytes and times in, messages and bytes
//! out.
//!
//! *Heartbeats*: each end sends a message at least every quarter of the silence after which the
//! other gives it up. *Windows*: output and input are sent only as far as the receiver has
//! forwarded the bytes before, so that ranks that write faster than the user reads wait, and
//! nothing piles up on the way; control messages do not wait behind them for long.

use std::time::{Duration, Instant};

use crate::hosts::frame::{ABOVE, AGENT, FrameReader, Garbled, append};
use crate::hosts::message::{BULK_BYTES, Message};
use crate::hosts::seal::Seal;
use crate::secret::wipe;

/// Bytes of output or input that may be on their way.
pub(crate) const WINDOW_BYTES: usize = 4 * BULK_BYTES;

/// Number of messages that an end sends within the other's limit of silence.
const BEATS: u32 = 4;

#[derive(Debug)]
pub(crate) struct Edge {
    reader: FrameReader,
    outgoing: Vec<u8>,
    /// Codes of what is sent, where the connection has such.
    seal: Option<Seal>,
    /// Bytes of `outgoing` that have been sent.
    sent: usize,
    silence: Duration,
    heard: Instant,
    sent_at: Instant,
    /// When this end found that the other should have been heard.
    suspected: Option<Instant>,
    /// The other end has said that it may be stopped.
    paused: bool,
    /// Bytes of output or input that may still be sent.
    window: usize,
    /// Bytes that have come and have not been acknowledged.
    owed: usize,
}

impl Edge {
    /// The upper end, which gives the agent up after `silence`.
    pub(crate) fn above(now: Instant, silence: Duration) -> Self {
        Self::new(now, silence, FrameReader::new(AGENT), ABOVE.to_vec())
    }

    /// The agent's end, which gives the launcher or agent above up after `silence`.
    pub(crate) fn agent(now: Instant, silence: Duration) -> Self {
        Self::new(now, silence, FrameReader::new(ABOVE), AGENT.to_vec())
    }

    /// An end of a connection whose frames have codes: those that it sends, and those that come.
    pub(crate) fn sealed(now: Instant, silence: Duration, sends: Seal, takes: Seal) -> Self {
        Self {
            seal: Some(sends),
            ..Self::new(now, silence, FrameReader::sealed(takes), Vec::new())
        }
    }

    const fn new(now: Instant, silence: Duration, reader: FrameReader, outgoing: Vec<u8>) -> Self {
        Self {
            reader,
            outgoing,
            seal: None,
            sent: 0,
            silence,
            heard: now,
            sent_at: now,
            suspected: None,
            paused: false,
            window: WINDOW_BYTES,
            owed: 0,
        }
    }

    /// Changes the silence that is allowed.
    pub(crate) fn allow_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Bytes have come.
    pub(crate) fn take(&mut self, now: Instant, bytes: &[u8]) {
        self.heard = now;
        self.suspected = None;
        self.reader.take(bytes);
    }

    /// The next message that is not the connection's own affair.
    ///
    /// # Errors
    /// The connection cannot be used any more.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, Garbled> {
        while let Some(message) = self.reader.next()? {
            self.paused = message == Message::Pause;
            match message {
                Message::Beat | Message::Pause => {}
                Message::Taken(bytes) => {
                    self.window += bytes as usize;
                    if self.window > WINDOW_BYTES {
                        return Err(Garbled(format!("{bytes} bytes taken that were not sent")));
                    }
                }
                message => {
                    self.owed += message.bulk_bytes();
                    if self.owed > WINDOW_BYTES {
                        return Err(Garbled("more bytes than its window has".into()));
                    }
                    return Ok(Some(message));
                }
            }
        }
        Ok(None)
    }

    /// Whether the other end has answered a greeting, which it does by a beat.
    ///
    /// What has come after that waits for [`next`](Self::next).
    ///
    /// # Errors
    /// The connection cannot be used any more.
    pub(crate) fn is_answered(&mut self) -> Result<bool, Garbled> {
        match self.reader.next()? {
            None => Ok(false),
            Some(Message::Beat) => Ok(true),
            Some(other) => Err(Garbled(format!("a {:?} as an answer", other.kind()))),
        }
    }

    /// Bytes that came instead of a greeting.
    pub(crate) fn noise(&self) -> &[u8] {
        self.reader.noise()
    }

    /// Sends a message.
    ///
    /// Output and input: no more than [`room`](Self::room).
    pub(crate) fn send(&mut self, now: Instant, message: &Message) {
        debug_assert!(message.bulk_bytes() <= self.room());
        self.window = self.window.saturating_sub(message.bulk_bytes());
        self.sent_at = now;
        append(message, &mut self.outgoing, self.seal.as_mut());
    }

    /// Bytes of output or input that may be sent in one message now.
    pub(crate) fn room(&self) -> usize {
        self.window.min(BULK_BYTES)
    }

    /// All output or input that came has been passed on.
    pub(crate) fn passed_on(&mut self, now: Instant) {
        self.passed_on_part(now, self.owed);
    }

    /// `bytes` of the output or input that came have been passed on.
    pub(crate) fn passed_on_part(&mut self, now: Instant, bytes: usize) {
        let bytes = bytes.min(self.owed);
        if bytes > 0 {
            self.owed -= bytes;
            self.send(now, &Message::Taken(bytes as u32));
        }
    }

    /// Bytes to send.
    pub(crate) fn to_send(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    /// The first `n` bytes have been sent.
    pub(crate) fn sent(&mut self, n: usize) {
        // Keys go through here.
        wipe(&mut self.outgoing[self.sent..self.sent + n]);
        self.sent += n;
        if self.sent == self.outgoing.len() {
            self.outgoing.clear();
            self.sent = 0;
        } else if self.sent >= WINDOW_BYTES {
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Does the work that is due; whether the other end has been silent for too long.
    pub(crate) fn is_silent(&mut self, now: Instant) -> bool {
        self.beat(now);
        if self.paused || now < self.suspicious_at() {
            return false;
        }
        // If this process was stopped itself, bytes that were sent meanwhile are read first.
        let since = *self.suspected.get_or_insert(now);
        now >= since + self.silence / BEATS
    }

    /// Sends a beat if one is due; when to look again.
    pub(crate) fn beat(&mut self, now: Instant) -> Instant {
        // While the other end takes nothing there is nothing to add.
        if now >= self.beat_due() && self.to_send().is_empty() {
            self.send(now, &Message::Beat);
        }
        let due = self.beat_due();
        if due > now {
            due
        } else {
            now + self.silence / BEATS
        }
    }

    /// The last of the other end's beats is missing.
    fn suspicious_at(&self) -> Instant {
        self.heard + self.silence / BEATS * (BEATS - 1)
    }

    /// When [`is_silent`](Self::is_silent) is to be called at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        // While the other end takes nothing there is nothing to add.
        let beat = self.to_send().is_empty().then(|| self.beat_due());
        let suspicious = match self.suspected {
            Some(since) => since + self.silence / BEATS,
            None => self.suspicious_at(),
        };
        let silent = (!self.paused).then_some(suspicious);
        beat.into_iter().chain(silent).min()
    }

    fn beat_due(&self) -> Instant {
        self.sent_at + self.silence / BEATS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::To;
    use proptest::prelude::*;

    const SILENCE: Duration = Duration::from_secs(8);

    fn pair(now: Instant) -> (Edge, Edge) {
        (Edge::above(now, SILENCE), Edge::agent(now, SILENCE))
    }

    /// Carries up to `most` bytes; how many.
    fn carry(now: Instant, from: &mut Edge, to: &mut Edge, most: usize) -> usize {
        let bytes = from.to_send();
        let n = bytes.len().min(most);
        to.take(now, &bytes[..n]);
        from.sent(n);
        n
    }

    fn drain(edge: &mut Edge) -> Vec<Message> {
        std::iter::from_fn(|| edge.next().unwrap()).collect()
    }

    #[test]
    fn two_idle_ends_keep_each_other_alive() {
        let begin = Instant::now();
        let (mut a, mut b) = pair(begin);
        for second in 0..100 {
            let now = begin + Duration::from_secs(second);
            assert!(!a.is_silent(now) && !b.is_silent(now));
            carry(now, &mut a, &mut b, 1000);
            carry(now, &mut b, &mut a, 1000);
            assert!(drain(&mut a).is_empty() && drain(&mut b).is_empty());
            let next = a.deadline().unwrap();
            assert!(next > now && next <= now + SILENCE);
        }
    }

    #[test]
    fn a_silent_end_is_given_up_and_a_stopped_one_is_not() {
        let begin = Instant::now();
        let (mut a, mut b) = pair(begin);
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert!(!a.is_silent(at(6)) && !a.is_silent(at(7)) && a.is_silent(at(8)));
        a.send(at(9), &Message::Pause);
        carry(at(9), &mut a, &mut b, 1000);
        assert!(drain(&mut b).is_empty() && !b.is_silent(at(10_000)));
        carry(at(10_000), &mut b, &mut a, 1000);
        a.send(at(10_001), &Message::Report);
        carry(at(10_001), &mut a, &mut b, 1000);
        assert_eq!(drain(&mut b), [Message::Report]);
        assert!(!b.is_silent(at(10_007)) && !b.is_silent(at(10_008)) && b.is_silent(at(10_009)));
        // An end that was stopped itself listens before it judges.
        let (mut a, mut b) = pair(begin);
        assert!(!b.is_silent(at(5)) && !b.is_silent(at(100)));
        carry(at(100), &mut a, &mut b, 1000);
        assert!(!b.is_silent(at(100)) && !b.is_silent(at(105)));
    }

    #[test]
    fn an_end_that_reads_nothing_gets_one_beat_at_a_time() {
        let begin = Instant::now();
        let (mut a, _) = pair(begin);
        a.sent(ABOVE.len());
        for second in 0..1000 {
            let _ = a.is_silent(begin + Duration::from_secs(second));
        }
        assert_eq!(a.to_send().len(), 8);
    }

    #[test]
    fn windows_bound_the_bytes_in_flight() {
        let now = Instant::now();
        let (mut a, mut b) = pair(now);
        let mut sent = 0;
        while a.room() > 0 {
            let lines = vec![b'x'; a.room()];
            sent += lines.len();
            a.send(now, &Message::Output(To::Out, lines));
        }
        assert_eq!(sent, WINDOW_BYTES);
        while carry(now, &mut a, &mut b, 10_000) > 0 {}
        assert_eq!(drain(&mut b).len(), 4);
        b.passed_on_part(now, 10);
        b.passed_on(now);
        b.passed_on(now);
        carry(now, &mut b, &mut a, 1000);
        assert!(drain(&mut a).is_empty());
        assert_eq!((a.room(), a.window), (BULK_BYTES, WINDOW_BYTES));

        // An end that keeps to no window is refused.
        let (mut a, mut b) = pair(now);
        for _ in 0..5 {
            a.window = WINDOW_BYTES;
            a.send(now, &Message::Input(vec![0; BULK_BYTES]));
        }
        while carry(now, &mut a, &mut b, 1 << 20) > 0 {}
        assert!(std::iter::from_fn(|| b.next().transpose()).any(|m| m.is_err()));
        let (mut a, mut b) = pair(now);
        b.send(now, &Message::Taken(1));
        carry(now, &mut b, &mut a, 1000);
        assert!(a.next().is_err());
    }

    #[test]
    fn an_answer_is_a_beat_and_what_follows_it_waits() {
        let now = Instant::now();
        let (mut a, mut b) = pair(now);
        assert_eq!(b.is_answered(), Ok(false));
        a.send(now, &Message::Beat);
        a.send(now, &Message::Done(7));
        while carry(now, &mut a, &mut b, 1000) > 0 {}
        assert_eq!(b.is_answered(), Ok(true));
        assert_eq!(drain(&mut b), [Message::Done(7)]);
        a.send(now, &Message::Done(8));
        carry(now, &mut a, &mut b, 1000);
        assert!(b.is_answered().is_err());
    }

    #[test]
    fn beats_are_sent_when_due_and_not_piled_up() {
        let now = Instant::now();
        let (mut a, mut b) = pair(now);
        carry(now, &mut a, &mut b, 1000);
        let due = now + SILENCE / BEATS;
        assert_eq!(a.beat(now), due);
        assert!(a.to_send().is_empty());
        assert_eq!(a.beat(due), due + SILENCE / BEATS);
        let bytes = a.to_send().len();
        assert!(bytes > 0);
        let later = due + 2 * SILENCE;
        assert_eq!(a.beat(later), later + SILENCE / BEATS);
        assert_eq!(a.to_send().len(), bytes);
    }

    proptest! {
        #[test]
        fn output_and_control_messages_keep_their_order_in_any_pieces(
            steps in prop::collection::vec((0usize..5, 1usize..70_000), 1..200),
        ) {
            let now = Instant::now();
            let (mut a, mut b) = pair(now);
            let (mut sent, mut received) = (Vec::new(), Vec::new());
            for (step, n) in steps {
                match step {
                    0 => {
                        let n = n.min(a.room());
                        if n > 0 {
                            let lines = Message::Output(To::Err, vec![n as u8; n]);
                            a.send(now, &lines);
                            sent.push(lines);
                        }
                    }
                    1 => {
                        let message = Message::Arrived(n as u32);
                        a.send(now, &message);
                        sent.push(message);
                    }
                    2 => {
                        carry(now, &mut a, &mut b, n);
                    }
                    3 => {
                        b.passed_on_part(now, n);
                    }
                    _ => {
                        carry(now, &mut b, &mut a, n);
                        prop_assert!(drain(&mut a).is_empty());
                    }
                }
                received.extend(drain(&mut b));
            }
            while carry(now, &mut a, &mut b, 1 << 20) > 0 {}
            received.extend(drain(&mut b));
            prop_assert_eq!(received, sent);
        }
    }
}
