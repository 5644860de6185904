//! The raw side over datagrams: the cost of the same work by sockets of UDP, without the library.
//!
//! Ranks 0 and 1 have a connected socket each on the loopback interface, and wait busily. A stream
//! keeps so few bytes in flight that the system has room for them, and nothing is lost.

use super::metric::Load;
use super::pair::Pair;
use super::sockets::{GATHERED, SHORT, WORD_PUT, busily, failed, gather_into, handle_each, timed};
use argonet::{Rank, Result, World};
use rustix::net::sockopt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Longest datagram.
const LONGEST: usize = 65_000;

/// Bytes that the system is asked to keep for a rank that does not take them.
const ROOM: usize = 4 << 20;

/// Bytes in flight are at most this part of those that the system keeps: it counts what it needs
/// for them, too.
const PART_IN_FLIGHT: usize = 4;

/// Datagrams that are acknowledged together are this part of those in flight.
const PART_ACKNOWLEDGED: usize = 2;

/// The sockets of ranks 0 and 1.
pub(crate) struct Datagrams(
    /// None on ranks that take no part.
    Option<Socket>,
);

struct Socket {
    udp: UdpSocket,
    /// Bytes that may be in flight.
    in_flight: usize,
}

impl Datagrams {
    /// Connects them.
    ///
    /// Collective.
    pub(crate) fn new(world: &World) -> Result<Self> {
        let takes_part = world.rank() <= Rank(1);
        let failed = |cause| failed(world, &cause);
        let own = takes_part.then(bound).transpose().map_err(failed)?;
        let port = own.as_ref().map_or(0, |(_, address)| address.port());
        let mut ports = [port; 2];
        for (rank, port) in (0..).zip(&mut ports) {
            world.broadcast(Rank(rank), core::slice::from_mut(port))?;
        }
        let connected = own.map(|(udp, _)| {
            let peer = ports[1 - world.rank().0 as usize];
            udp.connect((Ipv4Addr::LOCALHOST, peer))?;
            let room = sockopt::socket_recv_buffer_size(&udp)?;
            Ok(Socket {
                udp,
                in_flight: room / PART_IN_FLIGHT,
            })
        });
        connected.transpose().map(Self).map_err(failed)
    }
}

fn bound() -> io::Result<(UdpSocket, SocketAddr)> {
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    udp.set_nonblocking(true)?;
    // Without the right to pass the system's limit, less is in flight.
    sockopt::set_socket_recv_buffer_size_force(&udp, ROOM)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(&udp, ROOM))?;
    let address = udp.local_addr()?;
    Ok((udp, address))
}

impl Socket {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        busily(|| self.udp.send(datagram)).map(drop)
    }

    fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        busily(|| self.udp.recv(room))
    }

    /// Datagrams of such a length that are in flight, and of which each one that is acknowledged
    /// is the last.
    fn window(&self, each: usize) -> (u64, u64) {
        let window = (self.in_flight / each).max(PART_ACKNOWLEDGED);
        (window as u64, (window / PART_ACKNOWLEDGED) as u64)
    }

    /// Sends so many datagrams of this length, and waits until all have been taken.
    fn pour(
        &self,
        count: u64,
        each: usize,
        mut fill: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let (window, acknowledged) = self.window(each);
        let (mut heard, mut sent) = (0, 0);
        while heard < count {
            while sent < count && sent < heard + window {
                fill(sent)?;
                sent += 1;
            }
            self.receive(&mut [0])?;
            heard = (heard + acknowledged).min(count);
        }
        Ok(())
    }

    /// Takes so many, and acknowledges them.
    fn swallow(
        &self,
        count: u64,
        each: usize,
        room: &mut [u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let (_, acknowledged) = self.window(each);
        for number in 1..=count {
            let len = self.receive(&mut room[..each])?;
            take(&room[..len]);
            if number % acknowledged == 0 || number == count {
                self.send(&[0])?;
            }
        }
        Ok(())
    }
}

/// Work of a rank with its socket and with memory.
type Part = fn(&Socket, &mut [u8], Load) -> io::Result<()>;

fn both(pair: &Pair<'_>, load: Load, parts: [Part; 2]) -> Result<Duration> {
    let socket = pair.datagrams()?.0.as_ref();
    timed(pair, socket, |socket, room| {
        parts[pair.rank().0 as usize](socket, room, load)
    })
}

fn send_all(socket: &Socket, bytes: &[u8]) -> io::Result<()> {
    let mut datagrams = bytes.chunks(LONGEST);
    datagrams.try_for_each(|datagram| socket.send(datagram))
}

fn receive_all(socket: &Socket, room: &mut [u8]) -> io::Result<()> {
    let mut datagrams = room.chunks_mut(LONGEST);
    datagrams.try_for_each(|datagram| socket.receive(datagram).map(drop))
}

fn echo(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    let message = &mut room[..SHORT + load.bytes];
    (0..load.count).try_for_each(|_| {
        receive_all(socket, message)?;
        send_all(socket, message)
    })
}

fn ask(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    let message = &mut room[..SHORT + load.bytes];
    (0..load.count).try_for_each(|_| {
        send_all(socket, message)?;
        receive_all(socket, message)
    })
}

/// A message there, and as many bytes back.
pub(crate) fn round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, [ask, echo])
}

/// The same for a message of the least size, for an operation of any size.
pub(crate) fn short_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, Load { bytes: 0, ..load }, [ask, echo])
}

/// Both send a message at the same time and wait for the other's.
pub(crate) fn exchange(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, Load { bytes: 0, ..load }, [ask, ask])
}

/// Datagrams that hold so many messages.
fn gathered<const LEN: usize>(load: Load) -> u64 {
    load.count.div_ceil((GATHERED / LEN) as u64)
}

fn gather<const LEN: usize>(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    let mut left = load.count;
    socket.pour(gathered::<LEN>(load), GATHERED, |_| {
        let len = gather_into::<LEN>(room, &mut left);
        socket.send(&room[..len])
    })
}

fn take_apart<const LEN: usize>(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    socket.swallow(gathered::<LEN>(load), GATHERED, room, handle_each::<LEN>)
}

/// Short messages one way, gathered by hand, and a function called for each.
pub(crate) fn gathered_shorts(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, [gather::<SHORT>, take_apart::<SHORT>])
}

/// As many bytes as puts of a word have, likewise.
pub(crate) fn gathered_words(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, [gather::<WORD_PUT>, take_apart::<WORD_PUT>])
}

/// Longest datagrams for the bytes of all operations; the last one is as long.
fn longest(load: Load) -> u64 {
    (load.count * load.bytes as u64).div_ceil(LONGEST as u64)
}

fn pour(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    let send = |_| socket.send(&room[..LONGEST]);
    socket.pour(longest(load), LONGEST, send)
}

fn swallow(socket: &Socket, room: &mut [u8], load: Load) -> io::Result<()> {
    socket.swallow(longest(load), LONGEST, room, |_| {})
}

/// The bytes of all operations in the longest datagrams.
pub(crate) fn stream(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, [pour, swallow])
}

/// The same the other way.
pub(crate) fn stream_back(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, [swallow, pour])
}
