//! One end of a link.

use super::config::LinkConfig;
use super::frame::{self, Address, DATA, FrameError, Header, PROBE};
use super::receiver::Receiver;
use super::sender::{Outgoing, Sender};

/// What happened, apart from messages that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The message with this tail is with the peer; the tail's bytes are not read any more.
    Acknowledged(u64),
    /// The peer is dead: it has been silent for so long. Nothing happens on this link any more.
    Dead {
        /// For how long, ns.
        silent_ns: u64,
    },
    /// The peer does not keep to the protocol. Nothing happens on this link any more.
    Broken(FrameError),
}

/// What a link has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames that could not be used.
    pub refused: u64,
    /// Payloads that had arrived before.
    pub duplicates: u64,
    /// Parts sent again.
    pub resent: u64,
    /// Times that the retransmission timer fired.
    pub expiries: u64,
    /// Messages submitted.
    pub submitted: u64,
    /// Messages that the peer has acknowledged.
    pub acknowledged: u64,
    /// Messages from the peer that were taken.
    pub taken: u64,
    /// Parts that the receiving half holds.
    pub held: usize,
}

/// One end of a link: sends to one peer and receives from it. See the module's introduction.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    address: Address,
    sender: Sender,
    receiver: Receiver,
    /// The peer must be told what has arrived.
    owes_ack: bool,
    owes_probe: bool,
    /// Any frame was sent or received.
    used: bool,
    heard_ns: u64,
    /// Since when an answer is owed to this end; silence counts from there.
    asked_ns: Option<u64>,
    probed_ns: u64,
    failed: bool,
    event: Option<LinkEvent>,
    refused: u64,
}

impl Link {
    /// An end that has sent and received nothing. `config` has been checked.
    #[must_use]
    pub fn new(config: LinkConfig, address: Address, now_ns: u64) -> Self {
        debug_assert!(config.check().is_ok());
        Self {
            config,
            address,
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            owes_ack: false,
            owes_probe: false,
            used: false,
            heard_ns: now_ns,
            asked_ns: None,
            probed_ns: now_ns,
            failed: false,
            event: None,
            refused: 0,
        }
    }

    /// Whether a message would be taken now.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Whether so many messages would be taken now.
    #[must_use]
    pub fn has_room_for(&self, messages: usize) -> bool {
        !self.failed && self.sender.messages() + messages <= self.config.send_messages
    }

    /// Takes a message to send; gives it back if there is no room.
    ///
    /// # Errors
    /// The message, when as many are under way as may be, or the peer is dead.
    ///
    /// # Panics
    /// If the message is empty or longer than [`LinkConfig::message_bytes`].
    pub fn submit(&mut self, message: Outgoing) -> Result<(), Outgoing> {
        let len = message.len();
        assert!(len > 0 && len <= self.config.message_bytes, "{len} bytes");
        if !self.has_room() {
            return Err(message);
        }
        self.sender.submit(message);
        Ok(())
    }

    /// Takes a frame that arrived. Whatever is wrong with it, the link goes on without it.
    ///
    /// # Errors
    /// Why it was dropped.
    pub fn handle_recv(&mut self, now_ns: u64, frame: &[u8]) -> Result<(), FrameError> {
        let outcome = self.take(now_ns, frame);
        if outcome.is_err() {
            self.refused += 1;
        }
        outcome
    }

    fn take(&mut self, now_ns: u64, frame: &[u8]) -> Result<(), FrameError> {
        let (header, payload) = frame::parse(frame)?;
        let expected = Address {
            from: self.address.to,
            to: self.address.from,
            ..self.address
        };
        if header.address != expected || self.failed {
            return Err(FrameError::Connection);
        }
        self.sender.acknowledged(&header, now_ns, &self.config)?;
        self.used = true;
        self.heard_ns = now_ns;
        self.asked_ns = None;
        if header.flags & (DATA | PROBE) != 0 {
            // Duplicates too: the acknowledgement of the first may be lost.
            self.owes_ack = true;
        }
        if header.flags & DATA != 0 {
            self.receiver.handle(&header, payload, &self.config)?;
            self.assemble();
        }
        Ok(())
    }

    fn assemble(&mut self) {
        if let Err(error) = self.receiver.assemble(&self.config) {
            self.fail(LinkEvent::Broken(error));
        }
    }

    fn fail(&mut self, event: LinkEvent) {
        self.failed = true;
        self.event = Some(event);
    }

    /// Takes the time, and begins a pass: finds losses, closes silent links.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.sender.begin_pass(&self.config);
        if self.failed {
            return;
        }
        self.sender.handle_timeout(now_ns, &self.config);
        if self.probe_at().is_some_and(|at| at <= now_ns) {
            self.owes_probe = true;
            self.sender.probe_expired();
            self.probed_ns = now_ns;
        }
        if let Some(asked_ns) = self.asked_ns
            && now_ns.saturating_sub(asked_ns) >= self.config.dead_after_ns
        {
            let silent_ns = now_ns - asked_ns;
            self.fail(LinkEvent::Dead { silent_ns });
        }
    }

    /// When a probe is due: soon while the receiver's window is closed, else to keep the link
    /// alive.
    fn probe_at(&self) -> Option<u64> {
        let since = self.probed_ns.max(self.heard_ns);
        if self.sender.is_shut_out() {
            Some(since + self.sender.rto_ns(&self.config))
        } else if self.used {
            Some(since + self.config.keepalive_ns)
        } else {
            None
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.failed {
            return None;
        }
        let dead_at = self.asked_ns.map(|at| at + self.config.dead_after_ns);
        let timers = [
            self.sender.poll_timeout(&self.config),
            self.probe_at(),
            dead_at,
        ];
        timers.into_iter().flatten().min()
    }

    /// Writes the next frame to send into `out`; false when there is none. Bytes of tails come from
    /// `read(token, offset, buffer)`.
    pub fn poll_transmit(
        &mut self,
        now_ns: u64,
        out: &mut Vec<u8>,
        read: &mut dyn FnMut(u64, usize, &mut [u8]),
    ) -> bool {
        if self.failed {
            return false;
        }
        let ready = self.sender.next(now_ns, &self.config);
        let owes = self.owes_ack || self.owes_probe || self.receiver.wants_to_tell(&self.config);
        if ready.is_none() && !owes {
            return false;
        }
        let probe = if self.owes_probe { PROBE } else { 0 };
        let header = Header {
            address: self.address,
            flags: ready.as_ref().map_or(0, |part| part.flags) | probe,
            seq: ready.as_ref().map_or(0, |part| part.seq),
            ack: self.receiver.ack(),
            sack: self.receiver.sack(),
            window: self.receiver.tell(&self.config),
        };
        let length = ready.as_ref().map_or(0, |part| part.len);
        frame::write(&header, length, out, |payload| {
            if let Some(part) = &ready {
                self.sender.fill(part, payload, read);
            }
        });
        self.owes_ack = false;
        self.owes_probe = false;
        self.used = true;
        if header.flags & (DATA | PROBE) != 0 {
            self.asked_ns.get_or_insert(now_ns);
        }
        true
    }

    /// Whether any frame was sent or received. A link that was not does not notice a dead peer.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.used
    }

    /// Whether a message has arrived that nobody has taken.
    #[must_use]
    pub fn has_message(&self) -> bool {
        self.receiver.has_message()
    }

    /// Takes the next message that arrived.
    pub fn poll_message(&mut self) -> Option<Vec<u8>> {
        let message = self.receiver.take()?;
        self.assemble();
        Some(message)
    }

    /// Takes the next event.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        if let Some(token) = self.sender.finished.pop_front() {
            return Some(LinkEvent::Acknowledged(token));
        }
        self.event.take()
    }

    /// Whether everything submitted has been acknowledged and everything that arrived was taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.sender.has_unacknowledged() && self.receiver.is_idle()
    }

    /// Whether everything submitted has been acknowledged.
    #[must_use]
    pub fn all_acknowledged(&self) -> bool {
        !self.sender.has_unacknowledged()
    }

    /// What the link has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (submitted, acknowledged) = self.sender.totals();
        Counters {
            refused: self.refused,
            duplicates: self.receiver.duplicates,
            resent: self.sender.resent,
            expiries: self.sender.expiries,
            submitted,
            acknowledged,
            taken: self.receiver.taken,
            held: self.receiver.held(),
        }
    }

    /// Checks the bounds; what is beyond them.
    #[must_use]
    pub fn excess(&self) -> Option<String> {
        let held = self.receiver.held();
        let (messages, parts) = (self.sender.messages(), self.sender.parts());
        let over = held > self.config.recv_parts as usize
            || messages > self.config.send_messages
            || parts > self.config.send_parts as usize;
        over.then(|| format!("{held} parts held, {messages} messages and {parts} parts under way"))
    }
}
