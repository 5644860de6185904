//! Datagrams that leave in one call of the system.

use argonet_nic::datagram::DatagramQueue;
use argonet_nic::reliable::Transmit;

/// Longer datagrams leave each by itself: to copy one would cost as much as a call.
const LONGEST: usize = 4 << 10;

/// Bytes that are gathered at most.
const MOST: usize = 60 << 10;

/// Datagrams that are gathered at most: as many as Linux cuts at once.
const MOST_DATAGRAMS: usize = 64;

/// Datagrams to one peer, all of one length but the last, which may be shorter.
#[derive(Debug, Default)]
pub(super) struct Together {
    peer: u32,
    bytes: Vec<u8>,
    each: usize,
}

impl Together {
    /// Sends a datagram, with those that follow before [`flush`](Self::flush).
    pub(super) fn send<Q: DatagramQueue>(&mut self, queue: &Q, transmit: Transmit<'_>) {
        let (peer, datagram) = (transmit.peer.0, transmit.bytes);
        let len = datagram.len();
        if len > LONGEST || transmit.is_trial {
            self.flush(queue);
            return queue.send(peer, datagram);
        }
        if !self.bytes.is_empty() && (peer != self.peer || len > self.each || self.is_full()) {
            self.flush(queue);
        }
        if self.bytes.is_empty() {
            (self.peer, self.each) = (peer, len);
        }
        self.bytes.extend_from_slice(datagram);
    }

    /// Whether the last one is shorter, or there are as many as leave at once.
    fn is_full(&self) -> bool {
        let most = MOST.min(MOST_DATAGRAMS * self.each);
        !self.bytes.len().is_multiple_of(self.each) || self.bytes.len() + self.each > most
    }

    /// Sends those that were gathered.
    pub(super) fn flush<Q: DatagramQueue>(&mut self, queue: &Q) {
        if !self.bytes.is_empty() {
            queue.send_cut(self.peer, &self.bytes, self.each);
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_base::JobRank;
    use argonet_nic::datagram::Batch;
    use argonet_nic::reliable::Channel;
    use core::cell::RefCell;
    use core::net::SocketAddr;
    use parking_lot::Mutex;
    use rustix::fd::{AsFd, BorrowedFd};
    use std::fs::File;

    /// Keeps what is sent: peer, and lengths of a call's datagrams.
    struct Kept(File, Mutex<Vec<(u32, Vec<usize>)>>);

    impl AsFd for Kept {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl DatagramQueue for Kept {
        type ReceiveBuffers = ();

        fn receive_buffers(&self) {}

        fn address(&self, _peer: u32) -> Option<SocketAddr> {
            None
        }

        fn send(&self, peer: u32, datagram: &[u8]) {
            self.1.lock().push((peer, vec![datagram.len()]));
        }

        fn send_cut(&self, peer: u32, bytes: &[u8], each: usize) {
            let lengths = bytes.chunks(each).map(<[u8]>::len).collect();
            self.1.lock().push((peer, lengths));
        }

        fn receive(&self, _buffers: &mut (), _take: &mut dyn FnMut(&mut [u8])) -> Batch {
            Batch {
                any: false,
                full: false,
            }
        }

        fn refused(&self) -> u64 {
            0
        }
    }

    #[test]
    fn calls_have_datagrams_of_one_length_to_one_peer() {
        let kept = Kept(File::open("/dev/null").unwrap(), Mutex::default());
        let together = RefCell::new(Together::default());
        let send_one = |peer, len, is_trial| {
            let transmit = Transmit {
                peer: JobRank(peer),
                queue: Channel::Data,
                is_trial,
                bytes: &vec![0; len],
            };
            together.borrow_mut().send(&kept, transmit);
        };
        let send = |peer, lengths: &[usize]| {
            lengths.iter().for_each(|len| send_one(peer, *len, false));
        };
        send(1, &[100, 100, 60, 100]);
        send(2, &[100, 200, 200]);
        send(2, &[LONGEST + 1, 200]);
        send_one(2, 200, true);
        send(2, &[200]);
        together.borrow_mut().flush(&kept);
        together.borrow_mut().flush(&kept);
        let wanted = [
            (1, vec![100, 100, 60]),
            (1, vec![100]),
            (2, vec![100]),
            (2, vec![200, 200]),
            (2, vec![LONGEST + 1]),
            (2, vec![200]),
            (2, vec![200]),
            (2, vec![200]),
        ];
        assert_eq!(core::mem::take(&mut *kept.1.lock()), wanted);
        // No more than the system cuts at once.
        send(3, &[10; 130]);
        send(3, &[4000; 16]);
        together.borrow_mut().flush(&kept);
        let counts: Vec<usize> = kept.1.lock().iter().map(|(_, sent)| sent.len()).collect();
        assert_eq!(counts, [64, 64, 2, 15, 1]);
    }
}
