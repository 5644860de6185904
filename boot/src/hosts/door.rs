//! Where the agents of a job that another launcher started find its root: a port of the root's
//! host, and the two ends of a connection there (`seal`).
//!
//! A stranger that connects and begins as an agent does gets a number that means nothing. It is
//! closed when it has no right code to give, or after [`PATIENCE`], and all are once the agents
//! have come.
//!
//! An agent tries the root's addresses, of which others may lead to other programs on its own host.
//! It has found the root when that has answered its greeting with a right code. The root answers
//! one greeting of each host; so an agent gives up no connection on which it has greeted, and uses
//! the one that is answered.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use if_addrs::get_if_addrs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketFlags, SocketType, connect as begin_connecting, shutdown,
    socket_with, sockopt,
};

use crate::error::BootError;
use crate::hosts::edge::Edge;
use crate::hosts::hello::Hello;
use crate::hosts::list::Host;
use crate::hosts::message::Message;
use crate::hosts::pipe::{receive, transmit};
use crate::hosts::seal::{COMES_BYTES, HEARS_BYTES, Nonce, Seal};
use crate::secret::Secret;

/// Time that a connection has to prove itself, and an address to begin to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connections that have proved nothing and are kept at a time, beside one for each host.
pub(crate) const SPARE_CONNECTIONS: usize = 64;

/// Between attempts at one address of the root and at the next.
const PAUSE: Duration = Duration::from_millis(50);

/// The most addresses that a root names.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The addresses of this host, those last that lead nowhere else.
pub(crate) fn addresses() -> Result<Vec<IpAddr>, BootError> {
    let all = get_if_addrs().map_err(|e| BootError::system("listing network interfaces", e))?;
    let up = all.into_iter().filter(|entry| entry.is_oper_up());
    let mut found: Vec<IpAddr> = up.map(|entry| entry.ip()).filter(is_known).collect();
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found.dedup();
    // Also hosts that are one machine, as in tests, find each other.
    let loopback = found.iter().position(IpAddr::is_loopback);
    let near = loopback.map(|at| found.split_off(at)).unwrap_or_default();
    found.truncate(MAX_ADDRESSES - 1);
    found.extend(near.first());
    Ok(found)
}

/// Whether other hosts know the address: one of a link alone means nothing without the number of an
/// interface.
const fn is_known(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    }
}

/// The root's port.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
}

/// A connection that has not greeted.
struct Comer {
    socket: TcpStream,
    since: Instant,
    /// What has come of its beginning.
    begin: Vec<u8>,
    /// The index of its host, and the connection, once it has begun.
    edge: Option<(usize, Edge)>,
}

/// What becomes of a connection.
enum Heard {
    Nothing,
    /// The agent of a host has greeted; why it cannot be worked with, if so.
    Agent(Option<String>),
    Stranger,
}

impl Door {
    pub(crate) fn open() -> Result<Self, BootError> {
        let any = [
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ];
        let failed = |e| BootError::system("listening for the agents of other hosts", e);
        let places = any.map(|address| SocketAddr::new(address, 0));
        let listener = TcpListener::bind(&places[..]).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener })
    }

    pub(crate) fn port(&self) -> Result<u16, BootError> {
        let address = self.listener.local_addr();
        address
            .map(|address| address.port())
            .map_err(|e| BootError::system("finding the port of the root", e))
    }

    /// The connections to the agents of all `hosts`, each once it has greeted, within `limit`; else
    /// why some are missing.
    ///
    /// `None` if the process behind the pidfd `starter` has ended before. No one is let in any more
    /// afterwards.
    pub(crate) fn gather(
        &self,
        secret: &Secret,
        hosts: &[Host],
        silence: Duration,
        limit: Duration,
        starter: impl AsFd,
    ) -> Result<Option<Vec<(TcpStream, Edge)>>, String> {
        let gathered = self.gather_until(secret, hosts, silence, limit, starter);
        // Those that no one has accepted are closed by that.
        let _ = shutdown(&self.listener, Shutdown::Both);
        gathered
    }

    fn gather_until(
        &self,
        secret: &Secret,
        hosts: &[Host],
        silence: Duration,
        limit: Duration,
        starter: impl AsFd,
    ) -> Result<Option<Vec<(TcpStream, Edge)>>, String> {
        let until = Instant::now() + limit;
        let mut come: Vec<Option<(TcpStream, Edge)>> = hosts.iter().map(|_| None).collect();
        let mut comers: VecDeque<Comer> = VecDeque::new();
        while come.iter().any(Option::is_none) {
            let now = Instant::now();
            if now >= until {
                let missing = hosts.iter().zip(&come).filter(|(_, agent)| agent.is_none());
                let missing: Vec<String> = missing.map(|(host, _)| host.in_words()).collect();
                return Err(format!(
                    "the agent of {} did not connect to the first host within {} s; does a firewall between the hosts keep TCP \
                     from its ports? If it is only slow, raise ARGONET_START_TIMEOUT (seconds)",
                    missing.join(", "),
                    limit.as_secs_f64()
                ));
            }
            let first_due = comers.front().map(|comer| comer.since + PATIENCE);
            let mut next = first_due.map_or(until, |due| due.min(until));
            for (socket, edge) in come.iter_mut().flatten() {
                next = next.min(edge.beat(now));
                // One that has gone is found when it is served.
                let _ = transmit(edge, socket);
            }
            let mut fds = vec![
                PollFd::new(&starter, PollFlags::IN),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            fds.extend(
                comers
                    .iter()
                    .map(|comer| PollFd::new(&comer.socket, PollFlags::IN)),
            );
            let left = Timespec::try_from(next.saturating_duration_since(now)).ok();
            let _ = poll(&mut fds, left.as_ref());
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return Ok(None);
            }
            for is_ready in ready.into_iter().skip(2) {
                let Some(mut comer) = comers.pop_front() else {
                    break;
                };
                let heard = match is_ready {
                    true => comer.hear(secret, hosts, silence),
                    false => Heard::Nothing,
                };
                match (heard, comer.edge.take()) {
                    (Heard::Agent(differ), Some((i, mut edge))) if come[i].is_none() => {
                        edge.send(Instant::now(), &Message::Beat);
                        let _ = transmit(&mut edge, &comer.socket);
                        if let Some(differ) = differ {
                            return Err(differ);
                        }
                        come[i] = Some((comer.socket, edge));
                    }
                    (Heard::Nothing, edge) if comer.since.elapsed() < PATIENCE => {
                        comer.edge = edge;
                        comers.push_back(comer);
                    }
                    _ => {}
                }
            }
            self.admit(&mut comers, hosts.len() + SPARE_CONNECTIONS);
        }
        let now = Instant::now();
        let mut come: Vec<(TcpStream, Edge)> = come.into_iter().flatten().collect();
        for (_, edge) in &mut come {
            // They were not listened to, so their silence begins now.
            edge.take(now, &[]);
        }
        Ok(Some(come))
    }

    /// Takes new connections, `most` of them, in place of the oldest where there are too many; of
    /// those that have begun as an agent does only if there are no others.
    fn admit(&self, comers: &mut VecDeque<Comer>, most: usize) {
        for _ in 0..most {
            let Ok((socket, _)) = self.listener.accept() else {
                return;
            };
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            if comers.len() >= most {
                let silent = comers.iter().position(|comer| comer.edge.is_none());
                comers.remove(silent.unwrap_or(0));
            }
            comers.push_back(Comer {
                socket,
                since: Instant::now(),
                begin: Vec::new(),
                edge: None,
            });
        }
    }
}

impl Comer {
    /// Takes what has come.
    fn hear(&mut self, secret: &Secret, hosts: &[Host], silence: Duration) -> Heard {
        if self.edge.is_none() {
            let mut bytes = [0; COMES_BYTES];
            let room = COMES_BYTES - self.begin.len();
            match self.socket.read(&mut bytes[..room]) {
                Ok(taken @ 1..) => self.begin.extend_from_slice(&bytes[..taken]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => return Heard::Stranger,
            }
            let Ok(begin) = <[u8; COMES_BYTES]>::try_from(&self.begin[..]) else {
                return Heard::Nothing;
            };
            let edge = self.begun(&begin, secret, hosts, silence);
            if edge.is_none() {
                return Heard::Stranger;
            }
            self.edge = edge;
        }
        let Some((i, edge)) = &mut self.edge else {
            return Heard::Stranger;
        };
        let open = receive(edge, &self.socket, Instant::now());
        match edge.next() {
            Ok(Some(Message::Hello(hello))) => {
                let differ = hello.check().err().map(|differ| {
                    let host = hosts[*i].in_words();
                    format!("{host}: {differ}; build the programs of all hosts from one version of argonet")
                });
                Heard::Agent(differ)
            }
            Ok(None) if open => Heard::Nothing,
            _ => Heard::Stranger,
        }
    }

    /// Answers the beginning of a connection.
    fn begun(
        &mut self,
        begin: &[u8; COMES_BYTES],
        secret: &Secret,
        hosts: &[Host],
        silence: Duration,
    ) -> Option<(usize, Edge)> {
        let (first, agent) = Nonce::of_agent(begin)?;
        let i = hosts.iter().position(|host| host.first == first)?;
        let own = Nonce::new().ok()?;
        // A new connection has room for so little.
        let sent = self.socket.write(&own.hears()).ok()?;
        let [up, down] = Seal::pair(secret, first, &agent, &own);
        let edge = Edge::sealed(Instant::now(), silence, down, up);
        (sent == HEARS_BYTES).then_some((i, edge))
    }
}

/// Connects the agent of the host whose first rank is `first` to the root at one of `places`, and
/// greets it there; why it cannot, once `limit` is over.
pub(crate) fn connect(
    places: &[SocketAddr],
    secret: &Secret,
    first: u32,
    silence: Duration,
    limit: Duration,
) -> Result<(OwnedFd, Edge), String> {
    let mut due = Instant::now();
    let until = due + limit;
    let mut reasons = vec!["no answer".to_owned(); places.len()];
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut turns = (0..places.len()).cycle();
    loop {
        let now = Instant::now();
        if now >= until {
            let reasons = places.iter().zip(reasons);
            let reasons = reasons.map(|(place, reason)| format!("{place}: {reason}"));
            return Err(format!(
                "no address of the first host leads to the root of the job ({}); does a firewall between the hosts keep TCP from \
                 its ports? If it is only slow, raise ARGONET_START_TIMEOUT (seconds)",
                reasons.collect::<Vec<_>>().join("; ")
            ));
        }
        if now >= due {
            due = now + PAUSE;
            let is_idle = |place: &usize| attempts.iter().all(|attempt| attempt.place != *place);
            if let Some(place) = turns.by_ref().take(places.len()).find(is_idle) {
                match Attempt::begin(place, &places[place]) {
                    Ok(attempt) => attempts.push(attempt),
                    Err(reason) => reasons[place] = reason,
                }
            }
        }
        let mut fds: Vec<PollFd<'_>> = attempts
            .iter()
            .map(|attempt| PollFd::new(&attempt.socket, attempt.awaits()))
            .collect();
        let left = Timespec::try_from(due.min(until).saturating_duration_since(now)).ok();
        let _ = poll(&mut fds, left.as_ref());
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let now = Instant::now();
        for (mut attempt, is_ready) in std::mem::take(&mut attempts).into_iter().zip(ready) {
            let went_on = match is_ready {
                true => attempt.go_on(secret, first, silence),
                false if attempt.is_late(now) => Err("no answer".into()),
                false => Ok(false),
            };
            match (went_on, attempt.stage) {
                (Ok(true), Stage::Greeted(edge)) => return Ok((attempt.socket, *edge)),
                (Ok(_), stage) => attempts.push(Attempt { stage, ..attempt }),
                (Err(reason), _) => reasons[attempt.place] = reason,
            }
        }
    }
}

/// A connection to what may be the root.
struct Attempt {
    /// The index of the address.
    place: usize,
    socket: OwnedFd,
    since: Instant,
    stage: Stage,
}

enum Stage {
    Connecting,
    /// Has begun, with this nonce; what has come of the answer.
    Begun(Nonce, Vec<u8>),
    Greeted(Box<Edge>),
}

fn why(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}

impl Attempt {
    fn begin(place: usize, to: &SocketAddr) -> Result<Self, String> {
        let family = match to {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(why)?;
        sockopt::set_tcp_nodelay(&socket, true).map_err(why)?;
        match begin_connecting(&socket, to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self {
                place,
                socket,
                since: Instant::now(),
                stage: Stage::Connecting,
            }),
            Err(error) => Err(why(error)),
        }
    }

    fn awaits(&self) -> PollFlags {
        match self.stage {
            Stage::Connecting => PollFlags::OUT,
            _ => PollFlags::IN,
        }
    }

    /// Whether it may be given up: not one that has greeted, which the root may have taken.
    fn is_late(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Begun(..)) && now >= self.since + PATIENCE
    }

    /// Does what can be done now; whether the greeting has been answered, and an error if this is
    /// not the root.
    fn go_on(&mut self, secret: &Secret, first: u32, silence: Duration) -> Result<bool, String> {
        let closed = || "the connection was closed by another program, or by a root that has ended";
        let now = Instant::now();
        match &mut self.stage {
            Stage::Connecting => {
                sockopt::socket_error(&self.socket).flatten().map_err(why)?;
                let own = Nonce::new().map_err(|error| error.to_string())?;
                let begin = own.comes(first);
                // A new connection has room for so little.
                let sent = rustix::io::write(&self.socket, &begin).map_err(why)?;
                if sent < begin.len() {
                    return Err(closed().into());
                }
                self.stage = Stage::Begun(own, Vec::new());
            }
            Stage::Begun(own, answer) => {
                let mut bytes = [0; HEARS_BYTES];
                let room = HEARS_BYTES - answer.len();
                match rustix::io::read(&self.socket, &mut bytes[..room]) {
                    Ok(0) => return Err(closed().into()),
                    Ok(taken) => answer.extend_from_slice(&bytes[..taken]),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(why(error)),
                }
                let Ok(answer) = <[u8; HEARS_BYTES]>::try_from(&answer[..]) else {
                    return Ok(false);
                };
                let root = Nonce::of_root(&answer).ok_or("another program answers")?;
                let [up, down] = Seal::pair(secret, first, own, &root);
                let mut edge = Edge::sealed(now, silence, up, down);
                edge.send(now, &Message::Hello(Hello::own()));
                if !transmit(&mut edge, &self.socket) || !edge.to_send().is_empty() {
                    return Err(closed().into());
                }
                self.stage = Stage::Greeted(Box::new(edge));
            }
            Stage::Greeted(edge) => {
                let open = receive(edge, &self.socket, now);
                let answered = edge
                    .is_answered()
                    .map_err(|_| "another program, or another job, answers")?;
                return match answered || open {
                    true => Ok(answered),
                    false => Err(closed().into()),
                };
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::pipe::pipe;

    use super::*;
    use crate::secret::SECRET_BYTES;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(300);

    type Gathered = Result<Option<Vec<(TcpStream, Edge)>>, String>;

    /// Gathers agents, as of a rank that lives.
    fn gather(door: &Door, silence: Duration, limit: Duration) -> Gathered {
        let (starter, _lives) = pipe().unwrap();
        door.gather(&secret(1), &hosts(), silence, limit, starter)
    }

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; SECRET_BYTES])
    }

    fn hosts() -> Vec<Host> {
        let host = |name: &str, first| Host {
            name: name.into(),
            first,
            ranks: 2,
        };
        vec![host("a", 0), host("b", 2)]
    }

    fn place(door: &Door) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), door.port().unwrap())
    }

    #[test]
    fn agents_of_all_hosts_come_and_strangers_do_not() {
        let door = Door::open().unwrap();
        let place = place(&door);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| gather(&door, LONG, LONG));
            let mut strangers: Vec<TcpStream> = (0..2 * SPARE_CONNECTIONS)
                .map(|_| TcpStream::connect(place).unwrap())
                .collect();
            strangers[0]
                .write_all(b"GET / HTTP/1.1\r\nHost: somewhere in the world\r\n\r\n")
                .unwrap_or(());
            // Another job's secret, a host that is none: nothing becomes of them.
            for (byte, first) in [(2, 0), (1, 1)] {
                let error = connect(&[place], &secret(byte), first, LONG, SHORT).unwrap_err();
                assert!(error.contains("the connection was closed"), "{error}");
            }
            let second = connect(&[place], &secret(1), 2, LONG, LONG).unwrap();
            let first = connect(&[place], &secret(1), 0, LONG, LONG).unwrap();
            let come = gathered.join().unwrap().unwrap().unwrap();
            assert!(come.iter().all(|(socket, _)| socket.nodelay().unwrap()));
            assert!(TcpStream::connect(place).is_err(), "the door is closed");
            let peers: Vec<u16> = come
                .iter()
                .map(|(socket, _)| socket.peer_addr().unwrap().port())
                .collect();
            let own = |(socket, _): &(OwnedFd, Edge)| {
                let socket = TcpStream::from(socket.try_clone().unwrap());
                socket.local_addr().unwrap().port()
            };
            assert_eq!(peers, [own(&first), own(&second)]);
            // What one end says the other hears.
            let [(socket, mut edge), _] = <[_; 2]>::try_from(come).unwrap();
            edge.send(Instant::now(), &Message::Done(7));
            assert!(transmit(&mut edge, &socket));
            let (end, mut heard) = first;
            let message = loop {
                assert!(receive(&mut heard, &end, Instant::now()));
                if let Some(message) = heard.next().unwrap() {
                    break message;
                }
                thread::yield_now();
            };
            assert_eq!(message, Message::Done(7));
        });
    }

    #[test]
    fn what_is_not_the_root_keeps_no_agent_from_it() {
        let (door, impostor) = (Door::open().unwrap(), Door::open().unwrap());
        impostor.listener.set_nonblocking(false).unwrap();
        let places = [place(&impostor), place(&door)];
        thread::scope(|scope| {
            let gathered = scope.spawn(|| gather(&door, LONG, LONG));
            // It answers as a root does, then hears the greeting, and says nothing more.
            let answers = scope.spawn(|| {
                let (mut socket, _) = impostor.listener.accept().unwrap();
                let mut begin = [0; COMES_BYTES];
                socket.read_exact(&mut begin).unwrap();
                let nonce = Nonce::new().unwrap();
                socket.write_all(&nonce.hears()).unwrap();
                let mut greeting = [0; 8];
                socket.read_exact(&mut greeting).unwrap();
                socket
            });
            let _first = connect(&places, &secret(1), 0, LONG, LONG).unwrap();
            let _second = connect(&places[1..], &secret(1), 2, LONG, LONG).unwrap();
            assert!(gathered.join().unwrap().unwrap().is_some());
            drop(answers.join().unwrap());
        });
    }

    #[test]
    fn strangers_do_not_drive_out_one_that_has_begun() {
        let door = Door::open().unwrap();
        let place = place(&door);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| gather(&door, LONG, LONG));
            let mut slow = Attempt::begin(0, &place).unwrap();
            let wait = |slow: &Attempt| {
                poll(&mut [PollFd::new(&slow.socket, slow.awaits())], None).unwrap();
            };
            wait(&slow);
            assert_eq!(slow.go_on(&secret(1), 0, LONG), Ok(false));
            // The answer to its beginning has come.
            wait(&slow);
            let mut strangers: Vec<TcpStream> = (0..2 * SPARE_CONNECTIONS)
                .map(|_| TcpStream::connect(place).unwrap())
                .collect();
            assert_eq!(strangers[0].read(&mut [0]).unwrap_or(0), 0, "driven out");
            while !slow.go_on(&secret(1), 0, LONG).unwrap() {
                wait(&slow);
            }
            let second = connect(&[place], &secret(1), 2, LONG, LONG).unwrap();
            assert!(gathered.join().unwrap().unwrap().is_some());
            drop(second);
        });
    }

    #[test]
    fn agents_that_wait_for_others_hear_the_root() {
        let door = Door::open().unwrap();
        let place = place(&door);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| gather(&door, SHORT, LONG));
            let (socket, _) = connect(&[place], &secret(1), 0, LONG, LONG).unwrap();
            for _ in 0..3 {
                let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], None);
                assert!(rustix::io::read(&socket, &mut [0; 40]).unwrap() > 0);
            }
            let now = Instant::now();
            let _second = connect(&[place], &secret(1), 2, LONG, LONG).unwrap();
            let come = gathered.join().unwrap().unwrap().unwrap();
            for (_, mut edge) in come {
                // Their silence begins when all have come.
                assert!(!edge.is_silent(now) && !edge.is_silent(now + SHORT / 4));
            }
        });
    }

    #[test]
    fn the_root_ends_with_what_started_it() {
        let door = Door::open().unwrap();
        let (starter, other) = pipe().unwrap();
        drop(other);
        let gathered = door.gather(&secret(1), &hosts(), LONG, LONG, starter);
        assert!(gathered.unwrap().is_none());
    }

    #[test]
    fn an_agent_that_does_not_come_is_named() {
        let door = Door::open().unwrap();
        let place = place(&door);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| gather(&door, LONG, Duration::from_secs(1)));
            let _first = connect(&[place], &secret(1), 0, LONG, LONG).unwrap();
            let error = gathered.join().unwrap().unwrap_err();
            assert!(
                error.contains("the agent of host b (ranks 2-3) did not connect"),
                "{error}"
            );
        });
        let error = connect(&[place], &secret(1), 2, LONG, SHORT).unwrap_err();
        assert!(error.contains(&format!("({place}: ")), "{error}");
    }

    #[test]
    fn addresses_end_with_one_of_this_host() {
        let all = addresses().unwrap();
        assert!(all.last().is_some_and(IpAddr::is_loopback), "{all:?}");
        assert!(all.len() <= MAX_ADDRESSES);
    }
}
