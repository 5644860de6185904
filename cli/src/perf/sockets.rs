//! The raw side over a network: the cost of the same work by sockets, without the library.
//!
//! Ranks 0 and 1 have two connections on the loopback interface, and wait busily.

use super::mesh;
use super::metric::Load;
use super::pair::Pair;
use argonet::{Rank, Result, World};
use argonet_start::StartError;
use std::hint::black_box;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a short message with one argument, and of a put of one word, on the wire.
pub(super) const SHORT: usize = 16;
pub(super) const WORD_PUT: usize = 36;

/// Bytes that small messages are gathered into.
pub(super) const GATHERED: usize = 4 << 10;

/// Bytes that are read at once.
const READ: usize = 256 << 10;

/// Looks that find nothing before the core is lent to another thread.
const LOOKS: u32 = 1 << 12;

/// How long a rank waits for the other one.
const LIMIT: Duration = Duration::from_secs(30);

/// Connections of ranks 0 and 1.
pub(crate) struct Sockets(
    /// None on ranks that take no part.
    Option<[TcpStream; 2]>,
);

pub(super) fn failed(world: &World, cause: &io::Error) -> argonet::Error {
    StartError::Network {
        rank: world.rank(),
        conduit: mesh::CONDUIT,
        cause: format!("sockets of the raw limit: {cause}").into(),
    }
    .into()
}

impl Sockets {
    /// Connects them.
    ///
    /// Collective.
    pub(crate) fn new(world: &World) -> Result<Self> {
        let listener = match world.rank() {
            Rank(0) => {
                let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                Some(bound.map_err(|cause| failed(world, &cause))?)
            }
            _ => None,
        };
        let address = listener.as_ref().and_then(|l| l.local_addr().ok());
        let mut port = [address.map_or(0, |address| address.port())];
        world.broadcast(Rank(0), &mut port)?;
        let connect = || match &listener {
            Some(listener) => Ok(listener.accept()?.0),
            None => TcpStream::connect((Ipv4Addr::LOCALHOST, port[0])),
        };
        let stream = || -> io::Result<TcpStream> {
            let stream = connect()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        if world.rank() > Rank(1) {
            return Ok(Self(None));
        }
        let both = stream().and_then(|one| Ok([one, stream()?]));
        both.map(|both| Self(Some(both)))
            .map_err(|cause| failed(world, &cause))
    }
}

/// Does it until it does not say that it would have to wait.
///
/// # Errors
/// What it says, or that nothing came for [`LIMIT`].
pub(super) fn busily<T>(mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let (mut looks, mut begun) = (0u32, None);
    loop {
        match act() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) {
            if begun.get_or_insert_with(Instant::now).elapsed() > LIMIT {
                return Err(ErrorKind::TimedOut.into());
            }
            std::thread::yield_now();
        }
    }
}

fn write(mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = busily(|| stream.write(bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

fn read(mut stream: &TcpStream, mut room: &mut [u8]) -> io::Result<()> {
    while !room.is_empty() {
        let count = busily(|| stream.read(room))?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        room = &mut room[count..];
    }
    Ok(())
}

/// Work of a rank with its connections and with memory.
type Part = fn(&[TcpStream], &mut [u8], Load) -> io::Result<()>;

/// Ranks 0 and 1 do their parts at the same time, over so many connections, with memory that they
/// do not share.
fn both(pair: &Pair<'_>, load: Load, connections: usize, parts: [Part; 2]) -> Result<Duration> {
    let streams = pair.sockets()?.0.as_ref();
    timed(pair, streams, |streams, room| {
        parts[pair.rank().0 as usize](&streams[..connections], room, load)
    })
}

/// The time of a part of this rank with what it has for it; ranks without that do nothing.
pub(super) fn timed<T>(
    pair: &Pair<'_>,
    with: Option<&T>,
    part: impl FnOnce(&T, &mut [u8]) -> io::Result<()>,
) -> Result<Duration> {
    let start = Instant::now();
    if let Some(with) = with {
        let done = pair.with_private(|bytes| part(with, bytes));
        done.map_err(|cause| failed(pair.world, &cause))?;
    }
    Ok(start.elapsed())
}

fn echo(streams: &[TcpStream], room: &mut [u8], load: Load) -> io::Result<()> {
    let message = &mut room[..SHORT + load.bytes];
    (0..load.count).try_for_each(|_| {
        read(&streams[0], message)?;
        write(&streams[0], message)
    })
}

fn ask(streams: &[TcpStream], room: &mut [u8], load: Load) -> io::Result<()> {
    let message = &mut room[..SHORT + load.bytes];
    (0..load.count).try_for_each(|_| {
        write(&streams[0], message)?;
        read(&streams[0], message)
    })
}

/// A message there, and as many bytes back.
pub(crate) fn round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, 1, [ask, echo])
}

/// The same for a message of the least size, for an operation of any size.
pub(crate) fn short_round_trip(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let load = Load { bytes: 0, ..load };
    both(pair, load, 1, [ask, echo])
}

/// Both send a message at the same time and wait for the other's.
pub(crate) fn exchange(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let load = Load { bytes: 0, ..load };
    both(pair, load, 1, [ask, ask])
}

/// Gathers messages, as many as are left and have room; the bytes of them.
pub(super) fn gather_into<const LEN: usize>(room: &mut [u8], left: &mut u64) -> usize {
    let message = [1; LEN];
    let mut gathered = 0;
    while *left > 0 && gathered + LEN <= GATHERED {
        room[gathered..gathered + LEN].copy_from_slice(black_box(&message));
        gathered += LEN;
        *left -= 1;
    }
    gathered
}

/// Calls a function for each message.
pub(super) fn handle_each<const LEN: usize>(messages: &[u8]) {
    let handle: fn(&[u8]) -> u8 = black_box(|message| message[0]);
    for message in messages.chunks_exact(LEN) {
        black_box(handle(message));
    }
}

fn gather<const LEN: usize>(streams: &[TcpStream], room: &mut [u8], load: Load) -> io::Result<()> {
    let mut left = load.count;
    while left > 0 {
        let len = gather_into::<LEN>(room, &mut left);
        write(&streams[0], &room[..len])?;
    }
    read(&streams[0], &mut room[..1])
}

fn take_apart<const LEN: usize>(
    streams: &[TcpStream],
    room: &mut [u8],
    load: Load,
) -> io::Result<()> {
    let (mut here, mut taken) = (0, 0);
    while taken < load.count {
        let mut stream = &streams[0];
        match busily(|| stream.read(&mut room[here..READ]))? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => here += count,
        }
        let whole = here - here % LEN;
        handle_each::<LEN>(&room[..whole]);
        taken += (whole / LEN) as u64;
        room.copy_within(whole..here, 0);
        here -= whole;
    }
    write(&streams[0], &[0])
}

/// Short messages one way, gathered by hand, and a function called for each.
pub(crate) fn gathered_shorts(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, 1, [gather::<SHORT>, take_apart::<SHORT>])
}

/// As many bytes as puts of a word have, likewise.
pub(crate) fn gathered_words(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let parts: [Part; 2] = [gather::<WORD_PUT>, take_apart::<WORD_PUT>];
    both(pair, load, 1, parts)
}

/// Moves the bytes of all operations over the connections in turn, an equal share each.
///
/// `step` moves some of so many that are left for a connection.
fn in_turn(
    streams: &[TcpStream],
    load: Load,
    mut step: impl FnMut(&TcpStream, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let share = |at: usize| (load.count as usize + at) / streams.len() * load.bytes;
    let mut left: Vec<usize> = (0..streams.len()).map(share).collect();
    while left.iter().any(|left| *left > 0) {
        busily(|| {
            let mut moved = Err(ErrorKind::WouldBlock.into());
            for (stream, left) in streams.iter().zip(&mut left).filter(|(_, left)| **left > 0) {
                match step(stream, *left) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(count) => *left -= count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                    Err(error) => return Err(error),
                }
                moved = Ok(());
            }
            moved
        })?;
    }
    Ok(())
}

/// One write for each operation, and a byte back on each connection.
fn pour(streams: &[TcpStream], room: &mut [u8], load: Load) -> io::Result<()> {
    let bytes = &room[..load.bytes];
    in_turn(streams, load, |mut stream, left| {
        // A piece of which a part was taken goes on.
        stream.write(&bytes[left.next_multiple_of(load.bytes) - left..])
    })?;
    streams.iter().try_for_each(|stream| read(stream, &mut [0]))
}

/// Reads all of that.
fn swallow(streams: &[TcpStream], room: &mut [u8], load: Load) -> io::Result<()> {
    in_turn(streams, load, |mut stream, left| {
        stream.read(&mut room[..left.min(READ)])
    })?;
    streams.iter().try_for_each(|stream| write(stream, &[0]))
}

/// A stream of such writes over one connection.
pub(crate) fn stream(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, 1, [pour, swallow])
}

/// The better of one connection and two.
pub(crate) fn best_stream(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    let one = both(pair, load, 1, [pour, swallow])?;
    Ok(one.min(both(pair, load, 2, [pour, swallow])?))
}

/// A stream the other way, over one connection.
pub(crate) fn stream_back(pair: &Pair<'_>, load: Load) -> Result<Duration> {
    both(pair, load, 1, [swallow, pour])
}
