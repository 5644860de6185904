//! Proves, before anything else on a connection is read, that both ends hold the job's key now.
//!
//! ```text
//! connector                                acceptor
//!    | open: who I am, nonce, code  ------->  |   magic, version, job first; then the code; then the rest
//!    | <--------------  challenge: nonce, code|
//!    | proof: code  ----------------------->  |   Progress::Peer; the user decides
//!    | <----------  verdict: received, code   |   Progress::Done at both ends
//! ```
//!
//! Every code is keyed by the job's key for this kind of message and covers all that was said
//! before, so both nonces and both ranks, the number of the connection, its incarnation and the
//! sequence numbers of both ends. So
//!
//! * a stranger without the key gets no byte out of an acceptor: already the first message must
//!   carry a code;
//! * an old first message gets a challenge with a new nonce and nothing else: no state of the
//!   acceptor changes before the proof;
//! * an old challenge or verdict does not fit the connector's new nonce;
//! * a message sent back to its sender is of the wrong kind, hence keyed otherwise.
//!
//! [`Handshake`] owns no socket and no source of chance: nonces are passed in, and must never be
//! used twice. It takes no byte that comes after the handshake. [ADR
//! 0019](../../../../../docs/adr/0019-a-handshake-of-our-own.md) has the reasons.

mod outcome;
#[cfg(test)]
mod tests;
mod wire;

pub use outcome::{Hello, Progress, Refused};
pub use wire::{HANDSHAKE_BYTES, NONCE_BYTES, Verdict};

use super::key::{JobKey, PurposeKey};
use argonet_base::JobRank;
use core::fmt;
use core::ops::Range;
use wire::{
    Answer, CHALLENGE, CODE_BYTES, JOB_END, MAGIC, MAGIC_END, OPEN, Open, PROOF, VERDICT, VERSION,
    VERSION_END,
};
use zerocopy::{FromBytes, IntoBytes};

struct Keys {
    open: PurposeKey,
    challenge: PurposeKey,
    proof: PurposeKey,
    verdict: PurposeKey,
}

impl Keys {
    fn new(key: &JobKey) -> Self {
        Self {
            open: key.derive("argonet tcp 1: open, connector to acceptor"),
            challenge: key.derive("argonet tcp 1: challenge, acceptor to connector"),
            proof: key.derive("argonet tcp 1: proof, connector to acceptor"),
            verdict: key.derive("argonet tcp 1: verdict, acceptor to connector"),
        }
    }
}

#[derive(Clone, Copy)]
enum Role {
    Connector { me: Hello, peer: JobRank },
    Acceptor { me: JobRank, ranks: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Open,
    Challenge,
    Proof,
    /// The acceptor's user has the word.
    Decide(Hello),
    Verdict,
    Done(Hello),
    /// The acceptor's verdict was no; it need only be sent.
    Declined,
    Failed(Refused),
}

/// One end of a handshake.
///
/// See the module's introduction.
pub struct Handshake {
    keys: Keys,
    job: [u8; super::key::IDENTITY_BYTES],
    nonce: [u8; NONCE_BYTES],
    role: Role,
    step: Step,
    transcript: [u8; HANDSHAKE_BYTES],
    /// How much of the transcript is there.
    filled: usize,
    /// The part of it that is to be sent.
    out: Range<usize>,
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

impl Handshake {
    /// The end that connects: `me` to the rank `peer`.
    ///
    /// `nonce` is random and never used again.
    #[must_use]
    pub fn connect(key: &JobKey, me: Hello, peer: JobRank, nonce: [u8; NONCE_BYTES]) -> Self {
        let mut this = Self::new(key, nonce, Role::Connector { me, peer }, Step::Challenge);
        let open = Open {
            magic: MAGIC,
            version: VERSION.into(),
            job: this.job,
            nonce,
            connector: me.rank.0.into(),
            acceptor: peer.0.into(),
            connection: me.connection.into(),
            incarnation: me.incarnation.into(),
            received: me.received.into(),
            code: [0; CODE_BYTES],
        };
        this.transcript[OPEN].copy_from_slice(open.as_bytes());
        let code = this.keys.open.code(this.before_code(OPEN));
        this.say(OPEN, code);
        this
    }

    /// The end that accepts, rank `me` of a job of `ranks`.
    ///
    /// `nonce` is random and never used again.
    #[must_use]
    pub fn accept(key: &JobKey, me: JobRank, ranks: u32, nonce: [u8; NONCE_BYTES]) -> Self {
        Self::new(key, nonce, Role::Acceptor { me, ranks }, Step::Open)
    }

    fn new(key: &JobKey, nonce: [u8; NONCE_BYTES], role: Role, step: Step) -> Self {
        Self {
            keys: Keys::new(key),
            job: key.identity(),
            nonce,
            role,
            step,
            transcript: [0; HANDSHAKE_BYTES],
            filled: 0,
            out: 0..0,
        }
    }

    /// Takes bytes that arrived: how many it used, and where it stands.
    ///
    /// Unused bytes belong to the time after the handshake or after the user's decision. Without
    /// bytes it only says where it stands.
    ///
    /// # Errors
    /// The handshake has failed; every later call says the same. The connection is to be closed
    /// without a word.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Refused> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let count = rest.len().min(self.wanted());
            if count == 0 {
                break;
            }
            let (from, to) = (self.filled, self.filled + count);
            self.transcript[from..to].copy_from_slice(&rest[..count]);
            self.filled = to;
            used += count;
            if let Err(refused) = self.advance() {
                self.step = Step::Failed(refused);
                self.out = 0..0;
            }
        }
        match self.step {
            Step::Failed(refused) => Err(refused),
            Step::Decide(peer) => Ok((used, Progress::Peer(peer))),
            Step::Done(peer) => Ok((used, Progress::Done(peer))),
            _ => Ok((used, Progress::More)),
        }
    }

    /// How many bytes it takes next at most: the rest of one message.
    ///
    /// A caller that reads no more than that from a socket leaves there the bytes after the
    /// handshake.
    #[must_use]
    pub fn wanted(&self) -> usize {
        let message = match self.step {
            Step::Open => OPEN,
            Step::Challenge => CHALLENGE,
            Step::Proof => PROOF,
            Step::Verdict => VERDICT,
            Step::Decide(_) | Step::Done(_) | Step::Declined | Step::Failed(_) => return 0,
        };
        message.end - self.filled
    }

    /// The acceptor takes the connection, after [`Progress::Peer`], under the incarnation that the
    /// peer has said.
    ///
    /// `received` is reported to the peer.
    ///
    /// # Panics
    /// If it does not stand at [`Progress::Peer`].
    pub fn answer(&mut self, received: u64) {
        let incarnation = self.connector().incarnation;
        self.answer_as(incarnation, received);
    }

    /// As [`answer`](Self::answer), under an incarnation that the acceptor says, at least the
    /// peer's.
    ///
    /// # Panics
    /// If it does not stand at [`Progress::Peer`].
    pub fn answer_as(&mut self, incarnation: u64, received: u64) {
        let Step::Decide(peer) = self.step else {
            panic!("an answer to a peer that has not proved anything, or to one that has had it");
        };
        self.step = Step::Done(Hello {
            incarnation,
            ..peer
        });
        self.say_verdict(Verdict::Accepted, incarnation, received);
    }

    /// The acceptor does not take the connection, after [`Progress::Peer`], and says why.
    ///
    /// When [`to_send`](Self::to_send) is empty the connection may be closed.
    ///
    /// # Panics
    /// If it does not stand at [`Progress::Peer`], or if the verdict accepts.
    pub fn refuse(&mut self, verdict: Verdict, incarnation: u64) {
        assert!(matches!(self.step, Step::Decide(_)), "no peer to refuse");
        assert_ne!(verdict, Verdict::Accepted, "that is no refusal");
        self.step = Step::Declined;
        self.say_verdict(verdict, incarnation, 0);
    }

    /// Bytes that are to be sent.
    #[must_use]
    pub fn to_send(&self) -> &[u8] {
        &self.transcript[self.out.clone()]
    }

    /// `count` bytes of [`to_send`](Self::to_send) are sent.
    pub fn sent(&mut self, count: usize) {
        self.out.start = (self.out.start + count).min(self.out.end);
    }

    /// Checks the bytes that are there.
    fn advance(&mut self) -> Result<(), Refused> {
        match self.step {
            Step::Open => {
                self.check_prefix()?;
                if self.filled == OPEN.end {
                    self.check_open()?;
                    self.transcript[CHALLENGE][..NONCE_BYTES].copy_from_slice(&self.nonce);
                    let code = self.keys.challenge.code(self.before_code(CHALLENGE));
                    self.say(CHALLENGE, code);
                    self.step = Step::Proof;
                }
            }
            Step::Challenge if self.filled == CHALLENGE.end => {
                self.verify(CHALLENGE)?;
                let code = self.keys.proof.code(self.before_code(PROOF));
                self.say(PROOF, code);
                self.step = Step::Verdict;
            }
            Step::Proof if self.filled == PROOF.end => {
                self.verify(PROOF)?;
                self.step = Step::Decide(self.connector());
            }
            Step::Verdict if self.filled == VERDICT.end => {
                self.verify(VERDICT)?;
                self.step = Step::Done(self.verdict()?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whole fields only: a stranger that could try the job's identity byte by byte would soon have
    /// it.
    fn check_prefix(&self) -> Result<(), Refused> {
        let open = &self.transcript[OPEN];
        if self.filled >= MAGIC_END && open[..MAGIC_END] != MAGIC {
            return Err(Refused::Magic);
        }
        if self.filled >= VERSION_END {
            let version = u16::from_le_bytes([open[MAGIC_END], open[MAGIC_END + 1]]);
            if version != VERSION {
                return Err(Refused::Version(version));
            }
        }
        if self.filled >= JOB_END && open[VERSION_END..JOB_END] != self.job {
            return Err(Refused::Job);
        }
        Ok(())
    }

    fn check_open(&self) -> Result<(), Refused> {
        self.verify(OPEN)?;
        let Role::Acceptor { me, ranks } = self.role else {
            unreachable!("only acceptors wait for the first message");
        };
        let open = self.open();
        let (connector, acceptor) = (open.connector.get(), open.acceptor.get());
        if acceptor != me.0 {
            return Err(Refused::Acceptor(acceptor));
        }
        if connector >= ranks || connector == me.0 {
            return Err(Refused::Connector(connector));
        }
        Ok(())
    }

    fn open(&self) -> Open {
        Open::read_from_bytes(&self.transcript[OPEN]).expect("as long as the range")
    }

    /// The connector's message, once it is proved.
    fn connector(&self) -> Hello {
        let open = self.open();
        Hello {
            rank: JobRank(open.connector.get()),
            connection: open.connection.get(),
            incarnation: open.incarnation.get(),
            received: open.received.get(),
        }
    }

    /// The acceptor's message, once it is proved.
    fn verdict(&self) -> Result<Hello, Refused> {
        let Role::Connector { me, peer } = self.role else {
            unreachable!("only connectors wait for a verdict");
        };
        let answer =
            Answer::read_from_bytes(&self.transcript[VERDICT]).expect("as long as the range");
        let incarnation = answer.incarnation.get();
        match Verdict::try_from(answer.verdict) {
            Ok(Verdict::Accepted) => Ok(Hello {
                rank: peer,
                connection: me.connection,
                incarnation,
                received: answer.received.get(),
            }),
            Ok(verdict) => Err(Refused::ByPeer {
                verdict,
                incarnation,
            }),
            Err(_) => Err(Refused::Verdict(answer.verdict)),
        }
    }

    fn before_code(&self, message: Range<usize>) -> &[u8] {
        &self.transcript[..message.end - CODE_BYTES]
    }

    fn verify(&self, message: Range<usize>) -> Result<(), Refused> {
        let key = match self.step {
            Step::Open => &self.keys.open,
            Step::Challenge => &self.keys.challenge,
            Step::Proof => &self.keys.proof,
            _ => &self.keys.verdict,
        };
        let mut code = [0; CODE_BYTES];
        code.copy_from_slice(&self.transcript[message.end - CODE_BYTES..message.end]);
        if key.verifies(self.before_code(message), &code) {
            Ok(())
        } else {
            Err(Refused::Proof)
        }
    }

    fn say_verdict(&mut self, verdict: Verdict, incarnation: u64, received: u64) {
        let answer = Answer {
            verdict: verdict.into(),
            incarnation: incarnation.into(),
            received: received.into(),
            code: [0; CODE_BYTES],
        };
        self.transcript[VERDICT].copy_from_slice(answer.as_bytes());
        let code = self.keys.verdict.code(self.before_code(VERDICT));
        self.say(VERDICT, code);
    }

    /// Completes one of this end's messages, which lies in the transcript, with its code.
    fn say(&mut self, message: Range<usize>, code: [u8; CODE_BYTES]) {
        self.transcript[message.end - CODE_BYTES..message.end].copy_from_slice(&code);
        self.filled = message.end;
        self.out = message;
    }
}
