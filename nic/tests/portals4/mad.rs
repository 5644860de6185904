//! A rank that is no interface: it sends the records that the test wants, over a link that works.

use super::hosts;
use argonet_base::JobRank;
use argonet_nic::datagram::Whereabouts;
use argonet_nic::portals::networked::NetworkedConfig;
use argonet_nic::reliable::{Channel, Endpoint};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

const INCARNATION: NonZeroU64 = NonZeroU64::new(0x5eed).unwrap();

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct Mad {
    pub(crate) socket: UdpSocket,
    pub(crate) endpoint: Endpoint,
    to: (JobRank, SocketAddr),
    begun: Instant,
    /// Records that have come.
    pub(crate) got: Vec<Vec<u8>>,
}

/// Kinds of records, and where their numbers are.
pub(crate) const PUT: u8 = 1;
pub(crate) const GET: u8 = 2;
pub(crate) const FETCH: u8 = 4;
pub(crate) const ANSWER: u8 = 5;
pub(crate) const MORE: u8 = 6;

/// A request as the wire has it.
pub(crate) fn request(kind: u8, portal: u32, bits: u64, len: u64, data: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 1, 0, 0];
    record.extend(portal.to_le_bytes());
    for word in [7, bits, 0, 0, len, 1, 0] {
        record.extend(word.to_le_bytes());
    }
    record.extend(data);
    record
}

pub(crate) fn more(at: u64, data: &[u8]) -> Vec<u8> {
    let mut record = vec![MORE, 0, 0, 0, 0, 0, 0, 0];
    record.extend(at.to_le_bytes());
    record.extend(data);
    record
}

pub(crate) fn answer(id: u64, moved: u64, data: &[u8]) -> Vec<u8> {
    let mut record = vec![ANSWER, 0, 1, 0, 0, 0, 0, 0];
    record.extend(id.to_le_bytes());
    record.extend(moved.to_le_bytes());
    record.extend(data);
    record
}

impl Mad {
    /// Rank `this` of a job of two, and the port of the other, which is an interface.
    pub(crate) fn new(this: u32, config: &NetworkedConfig, other: Whereabouts) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("socket");
        let pause = Duration::from_millis(1);
        socket.set_read_timeout(Some(pause)).expect("timeout");
        let peer = JobRank(1 - this);
        let seal = config.seal.clone();
        let endpoint = Endpoint::new(config.link, JobRank(this), INCARNATION.get(), seal, 2);
        let mut endpoint = endpoint.expect("endpoint");
        let known = endpoint.know(peer, other.incarnation.get());
        known.expect("peer");
        Self {
            socket,
            endpoint,
            to: (peer, other.address),
            begun: Instant::now(),
            got: Vec::new(),
        }
    }

    pub(crate) fn whereabouts(&self) -> Whereabouts {
        Whereabouts {
            address: self.socket.local_addr().expect("address"),
            incarnation: INCARNATION,
        }
    }

    pub(crate) fn say(&mut self, record: &[u8]) {
        let now = self.begun.elapsed();
        let fill = |place: &mut [u8]| place.copy_from_slice(record);
        let said = self
            .endpoint
            .submit(now, self.to.0, Channel::Data, record.len(), fill);
        said.expect("room");
        self.until(|mad| mad.endpoint.is_drained());
    }

    /// Says some records, and hears nothing.
    pub(crate) fn shout(&mut self, records: &[Vec<u8>]) {
        let now = self.begun.elapsed();
        for record in records {
            let fill = |place: &mut [u8]| place.copy_from_slice(record);
            let said = self
                .endpoint
                .submit(now, self.to.0, Channel::Data, record.len(), fill);
            said.expect("room");
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        let now = self.begun.elapsed();
        self.endpoint.handle_timeout(now);
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let sent = self.socket.send_to(transmit.bytes, self.to.1);
            sent.expect("send");
        }
    }

    /// Sends and receives until something is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let mut bytes = vec![0; 1 << 16];
        while !is_so(self) {
            assert!(self.begun.elapsed() < LIMIT, "it does not become so");
            self.transmit();
            let Ok(len) = self.socket.recv(&mut bytes) else {
                continue;
            };
            let datagram = &mut bytes[..len];
            let now = self.begun.elapsed();
            let arrived = self.endpoint.handle_recv(now, datagram, |_, _| true);
            if let Some(record) = arrived.and_then(|arrived| arrived.record) {
                self.got.push(datagram[record].to_vec());
            }
            while let Some(record) = self.endpoint.take(now, self.to.0, Channel::Data) {
                self.got.push(record.bytes().to_vec());
            }
        }
    }

    /// Sends bytes that the link knows nothing of.
    pub(crate) fn throw(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.to.1).expect("send");
    }
}

/// An interface that is rank 0 of two, of which the other is mad.
pub(crate) fn beside(
    config: &NetworkedConfig,
) -> (
    super::group::Member<argonet_nic::portals::networked::Networked>,
    Mad,
) {
    let port = hosts::port();
    let mad = Mad::new(1, config, port.whereabouts());
    let peers = [port.whereabouts(), mad.whereabouts()];
    let nic = hosts::open(&hosts::file(), (0, 1), JobRank(0), port, &peers, config);
    (hosts::member(nic, Box::new(|| {})), mad)
}
