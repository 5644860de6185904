//! The socket at which ranks find each other: a name in the kernel's memory, and messages that keep
//! their boundaries.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, bind, connect, listen, recv, recvmsg, sendmsg, socket_with,
};

use super::message::{MAX_BYTES, WELCOME_FILES, is_refusal};
use crate::foreign::Member;
use crate::sys::{self, Peer};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Where the ranks of a job find each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    name: String,
}

impl Place {
    /// The place of `member`'s job, which no other job of this user on this host has.
    pub(super) fn of(member: &Member) -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self {
            name: format!("argonet.{user}.{:016x}", member.job()),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> rustix::io::Result<SocketAddrUnix> {
        SocketAddrUnix::new_abstract_name(self.name.as_bytes())
    }

    fn socket(kind: SocketType) -> rustix::io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socket_with(AddressFamily::UNIX, kind, flags, None)
    }

    /// A socket that others connect to.
    pub(super) fn listen(&self) -> rustix::io::Result<OwnedFd> {
        let socket = Self::socket(SocketType::SEQPACKET)?;
        bind(&socket, &self.address()?)?;
        listen(&socket, BACKLOG)?;
        Ok(socket)
    }

    /// A connection to the process that listens here.
    pub(super) fn connect(&self) -> rustix::io::Result<OwnedFd> {
        self.connect_by(SocketType::SEQPACKET)
    }

    fn connect_by(&self, kind: SocketType) -> rustix::io::Result<OwnedFd> {
        let socket = Self::socket(kind)?;
        connect(&socket, &self.address()?)?;
        Ok(socket)
    }

    /// The process that has this name, in words, where it is not the leader.
    pub(super) fn owner(&self) -> String {
        let mut ways = [SocketType::SEQPACKET, SocketType::STREAM].into_iter();
        let socket = ways.find_map(|kind| self.connect_by(kind).ok());
        let owner = socket.and_then(|socket| peer(&socket).ok());
        owner.map_or("a process that does not listen".into(), in_words)
    }

    /// Whether a socket has this name, by the kernel's list; false if that cannot be read.
    pub(super) fn is_bound(&self) -> bool {
        let list = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let name = format!("@{}", self.name);
        list.lines().any(|line| line.ends_with(&name))
    }
}

/// The next connection to `listener`, if one waits.
pub(super) fn accept(listener: &OwnedFd) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    match accept_with(listener, flags) {
        Ok(socket) => Ok(Some(socket)),
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A process by its credentials, in words.
pub(super) fn in_words(peer: Peer) -> String {
    match peer.pid {
        0 => format!("a process of the user {}", peer.uid),
        pid => format!("process {pid} of the user {}", peer.uid),
    }
}

/// Whether the peer has the user of this process.
pub(super) fn is_of_this_user(peer: Peer) -> bool {
    peer.uid == rustix::process::geteuid().as_raw()
}

/// The peer of a connection.
pub(super) fn peer(socket: &OwnedFd) -> std::io::Result<Peer> {
    sys::peer_of(socket.as_fd())
}

/// Sends a message with descriptors; new sockets have room for it.
pub(super) fn send(
    socket: &OwnedFd,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// Time between two attempts to send.
const CROWDED: Duration = Duration::from_millis(3);

/// Sends as `send` does, again for as long as `goes_on` where only the moment is bad: the system
/// passes no more descriptors while too many of this user's have not been received.
///
/// That is the error, too, where the other end does not wait as long.
pub(super) fn patiently(
    mut goes_on: impl FnMut(Duration) -> bool,
    mut send: impl FnMut() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let mut crowded = None;
    loop {
        match send() {
            Err(error @ (Errno::TOOMANYREFS | Errno::AGAIN | Errno::NOBUFS))
                if goes_on(CROWDED) =>
            {
                crowded = Some(error);
            }
            Err(error @ (Errno::PIPE | Errno::CONNRESET)) => {
                return Err(crowded.unwrap_or(error));
            }
            other => return other,
        }
    }
}

/// A message that came.
#[derive(Debug)]
pub(super) enum Received {
    Message {
        bytes: usize,
        files: Vec<OwnedFd>,
    },
    /// Nothing yet.
    Nothing,
    /// It does not fit, or its descriptors are more than this process may have.
    Cut,
    /// The other end is closed.
    End,
}

/// Takes the next message into `to`.
pub(super) fn receive(socket: &OwnedFd, to: &mut [u8; MAX_BYTES]) -> Received {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(WELCOME_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(to)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    match recvmsg(socket, &mut parts, &mut control, flags) {
        Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
        Err(_) => Received::End,
        Ok(received) => {
            let files = control.drain().flat_map(|part| match part {
                RecvAncillaryMessage::ScmRights(files) => files.collect(),
                _ => Vec::new(),
            });
            let files: Vec<OwnedFd> = files.collect();
            let cut = ReturnFlags::TRUNC | ReturnFlags::CTRUNC;
            match received.bytes {
                _ if received.flags.intersects(cut) => Received::Cut,
                0 => Received::End,
                bytes => Received::Message { bytes, files },
            }
        }
    }
}

/// Whether the other end has gone, or what it says next is that there will be no job; nothing is
/// taken.
pub(super) fn is_over(socket: &OwnedFd) -> bool {
    let mut begin = [0; 8];
    match recv(
        socket,
        &mut begin[..],
        RecvFlags::PEEK | RecvFlags::DONTWAIT,
    ) {
        Ok((0, _)) => true,
        Ok((taken, _)) => is_refusal(&begin[..taken]),
        Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::member_of_test;

    #[test]
    fn each_job_has_a_place_of_its_own() {
        let place = |identity: &str, size| Place::of(&member_of_test(identity, 0, size));
        let one = place("slurm c 7.0", 4);
        assert_eq!(one, place("slurm c 7.0", 4));
        assert!(one.name().starts_with("argonet.") && one.name().len() < 40);
        for other in [place("slurm c 7.1", 4), place("slurm c 7.0", 5)] {
            assert_ne!(one, other);
        }
        let mut far = member_of_test("slurm c 7.0", 3, 4);
        assert_eq!(Place::of(&far), one, "of all ranks");
        far.launcher = "another";
        assert_ne!(Place::of(&far), one);
    }

    #[test]
    fn messages_and_descriptors_arrive_whole_or_not_at_all() {
        let identity = format!("test {}", std::process::id());
        let place = Place::of(&member_of_test(&identity, 0, 2));
        assert_eq!(place.connect().unwrap_err(), Errno::CONNREFUSED);
        let listener = place.listen().unwrap();
        assert_eq!(place.listen().unwrap_err(), Errno::ADDRINUSE);
        let ours = place.connect().unwrap();
        let theirs = accept(&listener).unwrap().unwrap();
        assert!(accept(&listener).unwrap().is_none());
        for end in [&ours, &theirs] {
            let peer = peer(end).unwrap();
            assert_eq!(peer.pid, std::process::id());
            assert!(is_of_this_user(peer));
        }
        let mut to = [0; MAX_BYTES];
        assert!(matches!(receive(&theirs, &mut to), Received::Nothing));
        let file = std::fs::File::open("/dev/null").unwrap();
        send(&ours, b"hello", &[file.as_fd(), file.as_fd()]).unwrap();
        let Received::Message { bytes: 5, files } = receive(&theirs, &mut to) else {
            panic!("nothing came")
        };
        assert_eq!((files.len(), &to[..5]), (2, &b"hello"[..]));
        // Too long, or with more descriptors than any message has.
        send(&ours, &[1; MAX_BYTES + 1], &[]).unwrap();
        assert!(matches!(receive(&theirs, &mut to), Received::Cut));
        drop(ours);
        assert!(matches!(receive(&theirs, &mut to), Received::End));
    }

    #[test]
    fn a_moment_that_is_bad_for_sending_passes_or_the_time_is_over() {
        let attempts = |most: u32, errors: &[Errno]| {
            let (mut waited, mut errors) = (0, errors.iter());
            let goes_on = |_| {
                waited += 1;
                waited <= most
            };
            let sent = patiently(goes_on, || errors.next().map_or(Ok(()), |e| Err(*e)));
            (sent, waited)
        };
        let crowded = [Errno::TOOMANYREFS, Errno::AGAIN, Errno::NOBUFS];
        assert_eq!(attempts(9, &crowded), (Ok(()), 3));
        assert_eq!(attempts(1, &crowded), (Err(Errno::AGAIN), 2));
        let gives_up = [Errno::TOOMANYREFS, Errno::PIPE];
        assert_eq!(attempts(9, &gives_up), (Err(Errno::TOOMANYREFS), 1));
        let gone = [Errno::PIPE, Errno::TOOMANYREFS];
        assert_eq!(attempts(9, &gone), (Err(Errno::PIPE), 0));
    }

    #[test]
    fn the_owner_of_a_place_is_named_if_it_listens_in_any_way() {
        let identity = format!("owner {}", std::process::id());
        let place = Place::of(&member_of_test(&identity, 0, 2));
        let own = format!("process {} of the user ", std::process::id());
        assert!(!place.is_bound());
        for kind in [SocketType::SEQPACKET, SocketType::STREAM] {
            let socket = Place::socket(kind).unwrap();
            bind(&socket, &place.address().unwrap()).unwrap();
            assert!(place.is_bound());
            assert_eq!(place.owner(), "a process that does not listen");
            listen(&socket, 8).unwrap();
            assert!(place.owner().starts_with(&own), "{}", place.owner());
        }
    }
}
