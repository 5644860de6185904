//! Peers of which nothing comes any more: whether it is known why.
//!
//! A process that is stopped says nothing, and one that computes answers by its thread. So silence
//! alone is borne for long, with a warning; what the network says to a datagram ends it sooner.

use super::shared::Shared;
use argonet_base::JobRank;
use argonet_nic::datagram::{DatagramQueue, Inquiry, refuses};
use argonet_nic::reliable::PathFault;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;

/// Peers that are asked for at a time, each by a descriptor; others are borne for the whole time.
const MOST_INQUIRIES: usize = 8;

/// Peers of which a rank warns: where a host is cut off, there may be many.
const MOST_WARNINGS: u32 = 4;

/// How often an answer is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// How often it is asked for.
const AGAIN: Duration = Duration::from_secs(5);

/// A peer that is asked for.
struct Asked {
    peer: JobRank,
    inquiry: Inquiry,
    again_at: Duration,
}

impl Asked {
    /// What has been found out.
    fn look(&mut self, now: Duration) -> io::Result<()> {
        self.inquiry.answer()?;
        if now >= self.again_at {
            self.again_at = now + AGAIN;
            self.inquiry.ask()?;
        }
        Ok(())
    }
}

/// The thread's part of it, without the lock of what threads share.
#[derive(Default)]
pub(super) struct Doubts {
    asked: Vec<Asked>,
    warned: u32,
    look_at: Option<Duration>,
}

impl Doubts {
    /// When to see to them again, at the latest.
    pub(super) fn look_at(&self) -> Option<Duration> {
        self.look_at
    }

    /// Sees to them.
    pub(super) fn see<Q: DatagramQueue>(&mut self, shared: &Shared<Q>) {
        let now = shared.now();
        if !shared.has_doubts() && self.look_at.is_none_or(|at| at > now) {
            return;
        }
        for doubt in shared.take_doubts() {
            if self.warned < MOST_WARNINGS {
                self.warned += 1;
                shared.warn(&doubt);
            }
            // A firewall may reject what is new, as an inquiry, on a path that has let pass what
            // went both ways.
            if doubt.fault == PathFault::Unheard
                && self.asked.len() < MOST_INQUIRIES
                && let Some((from, to)) = shared.ends(doubt.peer)
            {
                self.begin(shared, doubt.peer, from, to);
            }
        }
        self.asked.retain_mut(|asked| {
            if !shared.is_doubted(asked.peer) {
                return false;
            }
            let Err(error) = asked.look(now) else {
                return true;
            };
            let is_over = refuses(&error);
            if is_over {
                shared.refuse(asked.peer);
            }
            !is_over
        });
        self.look_at = (!self.asked.is_empty()).then(|| now + LOOK);
    }

    fn begin<Q: DatagramQueue>(
        &mut self,
        shared: &Shared<Q>,
        peer: JobRank,
        from: IpAddr,
        to: SocketAddr,
    ) {
        match Inquiry::new(from, to) {
            Ok(inquiry) => self.asked.push(Asked {
                peer,
                inquiry,
                again_at: shared.now() + AGAIN,
            }),
            Err(error) if refuses(&error) => shared.refuse(peer),
            // This process lacks a descriptor, or memory.
            Err(_) => {}
        }
    }
}
