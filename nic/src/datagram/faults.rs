//! Faults of a wire, by rule and seed: a layer over an interface.

use super::{Batch, DatagramQueue};
use core::net::SocketAddr;
use fastrand::Rng;
use parking_lot::Mutex;
use rustix::fd::{AsFd, BorrowedFd};

/// Chances in millionths that a datagram is lost, arrives twice, is overtaken by the next ones, or
/// is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WireFaults {
    /// Where chances begin.
    pub seed: u64,
    /// It never arrives.
    pub drop: u32,
    /// It arrives twice.
    pub duplicate: u32,
    /// It leaves after some later ones; never, if there are none.
    pub reorder: u32,
    /// A bit of it is another one.
    ///
    /// Only a sealed datagram shows that.
    pub corrupt: u32,
}

impl WireFaults {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        seed: 0,
        drop: 0,
        duplicate: 0,
        reorder: 0,
        corrupt: 0,
    };
}

/// By how many datagrams one comes late at most.
const LATEST: u64 = 4;

/// The rules of one direction.
#[derive(Debug)]
struct Faults {
    rules: WireFaults,
    random: Rng,
    /// The datagram that is held back, its target, and for how many datagrams more.
    held: Option<(u32, Vec<u8>, u64)>,
}

impl Faults {
    /// `None` where nothing goes wrong.
    fn new(rules: WireFaults) -> Option<Mutex<Self>> {
        let all = [rules.drop, rules.duplicate, rules.reorder, rules.corrupt];
        all.iter().any(|chance| *chance != 0).then(|| {
            Mutex::new(Self {
                rules,
                random: Rng::with_seed(rules.seed),
                held: None,
            })
        })
    }

    fn chance(&mut self, per_million: u32) -> bool {
        self.random.u32(..1_000_000) < per_million
    }

    /// Passes a datagram on, after the rules' faults.
    fn pass(&mut self, peer: u32, bytes: &[u8], mut pass: impl FnMut(u32, &[u8])) {
        if let Some((_, _, left)) = &mut self.held {
            *left -= 1;
        }
        let WireFaults {
            drop,
            duplicate,
            reorder,
            corrupt,
            ..
        } = self.rules;
        let [drop, twice, late, corrupt] =
            [drop, duplicate, reorder, corrupt].map(|chance| self.chance(chance));
        let changed = (corrupt && !bytes.is_empty()).then(|| {
            let bit = self.random.usize(..bytes.len() * 8);
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            changed
        });
        let bytes = changed.as_deref().unwrap_or(bytes);
        if late && self.held.is_none() {
            let later = self.random.u64(1..=LATEST);
            self.held = Some((peer, bytes.to_vec(), later));
        } else if !drop {
            pass(peer, bytes);
            if twice {
                pass(peer, bytes);
            }
        }
        if let Some((peer, bytes, _)) = self.held.take_if(|(_, _, left)| *left == 0) {
            pass(peer, &bytes);
        }
    }
}

/// An interface with a bad wire: rules for what this rank sends, and for what arrives.
#[derive(Debug)]
pub struct Faulty<Q> {
    queue: Q,
    sent: Option<Mutex<Faults>>,
    arriving: Option<Mutex<Faults>>,
}

impl<Q> Faulty<Q> {
    /// Puts rules over an interface; without any it is as before.
    pub fn new(queue: Q, sent: WireFaults, arriving: WireFaults) -> Self {
        Self {
            queue,
            sent: Faults::new(sent),
            arriving: Faults::new(arriving),
        }
    }
}

impl<Q: AsFd> AsFd for Faulty<Q> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl<Q: DatagramQueue> DatagramQueue for Faulty<Q> {
    type ReceiveBuffers = Q::ReceiveBuffers;

    fn receive_buffers(&self) -> Q::ReceiveBuffers {
        self.queue.receive_buffers()
    }

    fn address(&self, peer: u32) -> Option<SocketAddr> {
        self.queue.address(peer)
    }

    fn place(&self, peer: u32) -> Option<String> {
        self.queue.place(peer)
    }

    fn provider(&self) -> Option<&str> {
        self.queue.provider()
    }

    fn send(&self, peer: u32, datagram: &[u8]) {
        match &self.sent {
            None => self.queue.send(peer, datagram),
            Some(faults) => {
                let mut faults = faults.lock();
                faults.pass(peer, datagram, |peer, bytes| self.queue.send(peer, bytes));
            }
        }
    }

    /// Datagrams that would leave together are cut first: each is judged by itself.
    fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
        if self.sent.is_none() {
            return self.queue.send_cut(peer, bytes, each);
        }
        let datagrams = bytes.chunks(each.max(1));
        datagrams.for_each(|datagram| self.send(peer, datagram));
    }

    fn receive(
        &self,
        receive_buffers: &mut Q::ReceiveBuffers,
        take: &mut dyn FnMut(&mut [u8]),
    ) -> Batch {
        let Some(faults) = &self.arriving else {
            return self.queue.receive(receive_buffers, take);
        };
        let mut passed = Vec::new();
        let batch = self.queue.receive(receive_buffers, &mut |datagram| {
            let mut faults = faults.lock();
            faults.pass(0, datagram, |_, bytes| passed.push(bytes.to_vec()));
        });
        // Without the lock: what is taken may send.
        passed.iter_mut().for_each(|datagram| take(datagram));
        batch
    }

    fn arm(&self) -> bool {
        self.queue.arm()
    }

    fn refused(&self) -> u64 {
        self.queue.refused()
    }

    fn trouble(&self) -> Option<String> {
        self.queue.trouble()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of 1,000 numbered datagrams come out, and how many of these were changed.
    fn passed(rules: WireFaults) -> (Vec<u32>, usize) {
        let faults = Faults::new(rules).unwrap();
        let (mut passed, mut changed) = (Vec::new(), 0);
        for n in 0_u32..1000 {
            faults.lock().pass(n, &n.to_le_bytes(), |peer, bytes| {
                changed += usize::from(bytes != peer.to_le_bytes());
                passed.push(peer);
            });
        }
        (passed, changed)
    }

    #[test]
    fn rules_hold_and_seeds_repeat() {
        let none = WireFaults {
            seed: 1,
            ..WireFaults::NONE
        };
        assert!(Faults::new(none).is_none());
        let dropping = WireFaults {
            drop: 100_000,
            ..none
        };
        let (left, changed) = passed(dropping);
        assert!((850..950).contains(&left.len()), "{}", left.len());
        assert!(left.is_sorted() && changed == 0);
        let doubling = WireFaults {
            duplicate: 100_000,
            ..none
        };
        let (twice, changed) = passed(doubling);
        assert!((1050..1150).contains(&twice.len()) && twice.is_sorted() && changed == 0);
        let mixing = WireFaults {
            reorder: 100_000,
            ..none
        };
        let (mut mixed, changed) = passed(mixing);
        assert!(!mixed.is_sorted() && changed == 0);
        assert_eq!(mixed, passed(mixing).0);
        mixed.sort_unstable();
        mixed.dedup();
        assert!(mixed.len() >= 999, "{}", mixed.len());
        let corrupting = WireFaults {
            corrupt: 100_000,
            ..none
        };
        let (all, changed) = passed(corrupting);
        assert!(
            all.len() == 1000 && (50..150).contains(&changed),
            "{changed}"
        );
    }

    /// Has what is to arrive, and keeps what is sent; a train as one.
    struct Loop(Mutex<Vec<Vec<u8>>>, std::os::fd::OwnedFd);

    impl Loop {
        fn new() -> Self {
            let wakeup = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC);
            Self(Mutex::default(), wakeup.unwrap())
        }
    }

    impl AsFd for Loop {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.1.as_fd()
        }
    }

    impl DatagramQueue for Loop {
        type ReceiveBuffers = ();

        fn receive_buffers(&self) {}

        fn address(&self, _peer: u32) -> Option<SocketAddr> {
            None
        }

        fn send(&self, _peer: u32, datagram: &[u8]) {
            self.0.lock().push(datagram.to_vec());
        }

        fn send_cut(&self, peer: u32, bytes: &[u8], _each: usize) {
            self.send(peer, bytes);
        }

        fn receive(&self, _buffers: &mut (), take: &mut dyn FnMut(&mut [u8])) -> Batch {
            let mut came = core::mem::take(&mut *self.0.lock());
            came.iter_mut().for_each(|datagram| take(datagram));
            Batch {
                any: !came.is_empty(),
                full: false,
            }
        }

        fn refused(&self) -> u64 {
            0
        }
    }

    #[test]
    fn each_direction_has_its_own_rules_and_what_is_taken_may_send() {
        let losing = WireFaults {
            seed: 3,
            drop: 500_000,
            ..WireFaults::NONE
        };
        let wire = Faulty::new(Loop::new(), WireFaults::NONE, losing);
        for n in 0..100_u8 {
            wire.send(0, &[n]);
        }
        let mut came = Vec::new();
        let batch = wire.receive(&mut (), &mut |datagram| {
            came.push(datagram.to_vec());
            wire.send(0, datagram);
        });
        assert!(
            batch.any && (25..75).contains(&came.len()),
            "{}",
            came.len()
        );
        assert_eq!(wire.queue.0.lock().len(), came.len());
    }

    #[test]
    fn each_datagram_of_a_train_is_judged_by_itself() {
        let rules = WireFaults {
            seed: 4,
            drop: 200_000,
            duplicate: 200_000,
            reorder: 200_000,
            corrupt: 200_000,
        };
        let sent = |rules, as_train: bool| {
            let wire = Faulty::new(Loop::new(), rules, WireFaults::NONE);
            let bytes: Vec<u8> = (0..=255).collect();
            match as_train {
                true => wire.send_cut(0, &bytes, 3),
                false => bytes.chunks(3).for_each(|datagram| wire.send(0, datagram)),
            }
            wire.queue.0.into_inner()
        };
        let train = sent(rules, true);
        assert_eq!(train, sent(rules, false));
        assert!((30..120).contains(&train.len()), "{}", train.len());
        // A good wire takes it as it is.
        assert_eq!(
            sent(WireFaults::NONE, true),
            [(0..=255).collect::<Vec<u8>>()]
        );
    }
}
