//! The streams between the two ranks.

use super::super::super::super::handshake::{Hello, Refused, Verdict};
use super::*;

impl World {
    pub(super) fn connect(
        &mut self,
        end: usize,
        attempt: Attempt,
        address: usize,
        incarnation: u64,
    ) {
        let stream = self.streams.len();
        self.streams.push(Stream {
            connector: end,
            attempt,
            incarnation,
            decision: None,
            broken: false,
        });
        let fresh = self.ends[end].attempts.insert(attempt, stream).is_none();
        assert!(fresh, "an attempt of the same name");
        let there = self.now_ns + self.latency();
        match self.ways[end][address] {
            Way::Good => {
                self.schedule(there, Event::Reached { stream });
                let proof = there + 2 * self.latency();
                self.schedule(proof, Event::Proof { stream });
            }
            Way::Refuses => self.schedule(there, Event::Rejected { stream }),
            Way::Silent => self.schedule(there, Event::Reached { stream }),
            Way::Swallows => {}
        }
        if self.faults && self.chance(3) {
            // At any point of the handshake, or after it.
            let at_ns = self.now_ns
                + if self.chance(2) {
                    self.below(5 * MS)
                } else {
                    self.below(5 * S)
                };
            self.schedule(at_ns, Event::Reset { stream });
        }
    }

    /// The stream's attempt, if its connector still wants it.
    pub(super) fn wanted(&self, stream: usize) -> Option<(usize, Attempt)> {
        let Stream {
            connector, attempt, ..
        } = self.streams[stream];
        let it = self.ends[connector].attempts.get(&attempt);
        (it == Some(&stream)).then_some((connector, attempt))
    }

    pub(super) fn fail(&mut self, stream: usize, why: Failure) {
        if let Some((end, attempt)) = self.wanted(stream) {
            self.ends[end].attempts.remove(&attempt);
            self.ends[end]
                .machine
                .failed(&self.config, self.now_ns, attempt, why);
        }
    }

    pub(super) fn proof(&mut self, stream: usize) {
        let Stream {
            connector,
            attempt,
            incarnation,
            broken,
            ..
        } = self.streams[stream];
        if broken {
            return;
        }
        let end = 1 - connector;
        let hello = Hello {
            rank: JobRank(connector as u32),
            connection: attempt.connection,
            incarnation,
            received: 0,
        };
        let pair = self.pair(end);
        let decision = self.ends[end]
            .machine
            .incoming(&self.config, self.now_ns, pair, &hello);
        self.streams[stream].decision = Some(decision);
        match decision {
            Decision::Accept {
                incarnation: agreed,
                replaces,
            } => {
                assert!(agreed >= incarnation);
                // The fence: nothing of the old one after this.
                let old = self.ends[end].up.remove(&attempt.connection);
                assert_eq!(old.map(|up| up.1), replaces);
                if let Some((old, _)) = old {
                    self.break_stream(old);
                }
                self.up(end, attempt.connection, stream, agreed);
            }
            Decision::Refuse { verdict, .. } => match verdict {
                Verdict::Crossing => self.crossings += 1,
                Verdict::Stale => self.stale += 1,
                _ => panic!("{verdict:?}"),
            },
        }
        let there = self.now_ns + self.latency();
        self.schedule(there, Event::Verdict { stream });
    }

    pub(super) fn verdict(&mut self, stream: usize) {
        if self.streams[stream].broken {
            return;
        }
        let Some((end, attempt)) = self.wanted(stream) else {
            return;
        };
        match self.streams[stream].decision.expect("there is a verdict") {
            Decision::Accept { incarnation, .. } => {
                self.ends[end].attempts.remove(&attempt);
                assert!(
                    self.ends[end].machine.joined(attempt, incarnation),
                    "it is wanted"
                );
                self.up(end, attempt.connection, stream, incarnation);
            }
            Decision::Refuse {
                verdict,
                incarnation,
            } => {
                let why = Refused::ByPeer {
                    verdict,
                    incarnation,
                };
                self.fail(stream, Failure::Refused(why));
            }
        }
    }

    pub(super) fn up(&mut self, end: usize, connection: u16, stream: usize, incarnation: u64) {
        let end = &mut self.ends[end];
        let last = end.last.insert(connection, incarnation);
        assert!(last < Some(incarnation), "{last:?} and then {incarnation}");
        let two = end.up.insert(connection, (stream, incarnation));
        assert!(two.is_none(), "two connections of one number");
    }

    /// One end has closed it, or the network has broken it: each end that is there finds out.
    pub(super) fn break_stream(&mut self, stream: usize) {
        if !core::mem::replace(&mut self.streams[stream].broken, true) {
            for end in 0..2 {
                let at_ns = self.now_ns + self.latency();
                self.schedule(at_ns, Event::Gone { stream, end });
            }
        }
    }

    pub(super) fn gone(&mut self, stream: usize, end: usize) {
        let Stream {
            attempt, connector, ..
        } = self.streams[stream];
        if connector == end {
            self.fail(stream, Failure::Closed);
        }
        let up = self.ends[end].up.get(&attempt.connection).copied();
        if let Some((of, incarnation)) = up.filter(|up| up.0 == stream) {
            assert_eq!(of, stream);
            self.ends[end].up.remove(&attempt.connection);
            let machine = &mut self.ends[end].machine;
            assert!(machine.lost(&self.config, self.now_ns, attempt.connection, incarnation));
        }
    }
}
