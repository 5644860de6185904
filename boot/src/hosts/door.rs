//! Where the agents of a job that another launcher started find its root: a port of the root's
//! host, and the two ends of a connection there (`seal`).
//!
//! A stranger that connects gets a number that means nothing, and is closed when it has no right
//! code to give, or after [`PATIENCE`].

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::BootError;
use crate::hosts::edge::Edge;
use crate::hosts::hello::Hello;
use crate::hosts::list::Host;
use crate::hosts::message::Message;
use crate::hosts::pipe::{receive, transmit};
use crate::hosts::seal::{COMES_BYTES, HEARS_BYTES, Nonce, Seal};
use crate::secret::Secret;

/// Time that a connection has to prove itself, and an address to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connections that have proved nothing and are kept at a time, beside one for each host.
pub(crate) const SPARE_CONNECTIONS: usize = 64;

/// Between two rounds over the addresses of the root.
const PAUSE: Duration = Duration::from_millis(50);

/// The most addresses that a root names.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The addresses of this host, those last that lead nowhere else.
pub(crate) fn addresses() -> Result<Vec<IpAddr>, BootError> {
    let all = getifaddrs().map_err(|e| BootError::system("listing network interfaces", e))?;
    let up = all.filter(|entry| entry.flags.contains(InterfaceFlags::IFF_UP));
    let mut found: Vec<IpAddr> = up.filter_map(|entry| ip(entry.address.as_ref()?)).collect();
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found.dedup();
    // Also hosts that are one machine, as in tests, find each other.
    let loopback = found.iter().position(IpAddr::is_loopback);
    let near = loopback.map(|at| found.split_off(at)).unwrap_or_default();
    found.truncate(MAX_ADDRESSES - 1);
    found.extend(near.first());
    Ok(found)
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
    let v6 = || address.as_sockaddr_in6().map(|a| a.ip());
    // One of a link alone means nothing without the number of an interface.
    v4.or_else(|| {
        v6().filter(|v6| !v6.is_unicast_link_local())
            .map(IpAddr::V6)
    })
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
    /// The agent of a host has greeted.
    Agent,
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
    pub(crate) fn gather(
        &self,
        secret: &Secret,
        hosts: &[Host],
        silence: Duration,
        limit: Duration,
    ) -> Result<Vec<(TcpStream, Edge)>, String> {
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
                     from its ports?",
                    missing.join(", "),
                    limit.as_secs_f64()
                ));
            }
            let first_due = comers.front().map(|comer| comer.since + PATIENCE);
            let next = first_due.map_or(until, |due| due.min(until));
            let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
            fds.extend(
                comers
                    .iter()
                    .map(|comer| PollFd::new(&comer.socket, PollFlags::IN)),
            );
            let left = Timespec::try_from(next.saturating_duration_since(now)).ok();
            let _ = poll(&mut fds, left.as_ref());
            let ready: Vec<bool> = fds
                .iter()
                .skip(1)
                .map(|fd| !fd.revents().is_empty())
                .collect();
            for is_ready in ready {
                let Some(mut comer) = comers.pop_front() else {
                    break;
                };
                let heard = match is_ready {
                    true => comer.hear(secret, hosts, silence)?,
                    false => Heard::Nothing,
                };
                match (heard, comer.edge.take()) {
                    (Heard::Agent, Some((i, edge))) if come[i].is_none() => {
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
        Ok(come.into_iter().flatten().collect())
    }

    /// Takes new connections, `most` of them, in place of the oldest where there are too many.
    fn admit(&self, comers: &mut VecDeque<Comer>, most: usize) {
        for _ in 0..most {
            let Ok((socket, _)) = self.listener.accept() else {
                return;
            };
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if comers.len() >= most {
                comers.pop_front();
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
    /// Takes what has come; an error if this is an agent that cannot be worked with.
    fn hear(
        &mut self,
        secret: &Secret,
        hosts: &[Host],
        silence: Duration,
    ) -> Result<Heard, String> {
        if self.edge.is_none() {
            let mut bytes = [0; COMES_BYTES];
            let room = COMES_BYTES - self.begin.len();
            match self.socket.read(&mut bytes[..room]) {
                Ok(taken @ 1..) => self.begin.extend_from_slice(&bytes[..taken]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => return Ok(Heard::Stranger),
            }
            let Ok(begin) = <[u8; COMES_BYTES]>::try_from(&self.begin[..]) else {
                return Ok(Heard::Nothing);
            };
            let edge = self.begun(&begin, secret, hosts, silence);
            if edge.is_none() {
                return Ok(Heard::Stranger);
            }
            self.edge = edge;
        }
        let Some((i, edge)) = &mut self.edge else {
            return Ok(Heard::Stranger);
        };
        let open = receive(edge, &self.socket, Instant::now());
        match edge.next() {
            Ok(Some(Message::Hello(hello))) => match hello.check() {
                Ok(()) => Ok(Heard::Agent),
                Err(differ) => Err(format!(
                    "{}: {differ}; build the programs of all hosts from one version of argonet",
                    hosts[*i].in_words()
                )),
            },
            Ok(None) if open => Ok(Heard::Nothing),
            _ => Ok(Heard::Stranger),
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
/// greets it; why it cannot, once `limit` is over.
pub(crate) fn connect(
    places: &[SocketAddr],
    secret: &Secret,
    first: u32,
    silence: Duration,
    limit: Duration,
) -> Result<(OwnedFd, Edge), String> {
    let until = Instant::now() + limit;
    let mut reasons = Vec::new();
    loop {
        reasons.clear();
        for place in places {
            match connect_to(place, secret, first, silence) {
                Ok(connected) => return Ok(connected),
                Err(reason) => reasons.push(format!("{place}: {reason}")),
            }
        }
        if Instant::now() >= until {
            return Err(format!(
                "no address of the first host leads to the root of the job ({}); does a firewall between the hosts keep TCP from \
                 its ports?",
                reasons.join("; ")
            ));
        }
        let _ = poll(&mut [], Timespec::try_from(PAUSE).ok().as_ref());
    }
}

fn connect_to(
    place: &SocketAddr,
    secret: &Secret,
    first: u32,
    silence: Duration,
) -> Result<(OwnedFd, Edge), String> {
    let in_words = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock => "no answer".to_owned(),
        _ => error.to_string(),
    };
    let mut socket = TcpStream::connect_timeout(place, PATIENCE).map_err(in_words)?;
    let own = Nonce::new().map_err(|error| error.to_string())?;
    let mut answer = [0; HEARS_BYTES];
    socket
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| socket.set_nodelay(true))
        .and_then(|()| socket.write_all(&own.comes(first)))
        .and_then(|()| socket.read_exact(&mut answer))
        .and_then(|()| socket.set_nonblocking(true))
        .map_err(in_words)?;
    let root = Nonce::of_root(&answer).ok_or("another program answers")?;
    let [up, down] = Seal::pair(secret, first, &own, &root);
    let now = Instant::now();
    let mut edge = Edge::sealed(now, silence, up, down);
    edge.send(now, &Message::Hello(Hello::own()));
    let socket = OwnedFd::from(socket);
    match transmit(&mut edge, &socket) {
        true => Ok((socket, edge)),
        false => Err(in_words(Errno::PIPE.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::secret::SECRET_BYTES;

    const LONG: Duration = Duration::from_secs(60);

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
            let gathered = scope.spawn(|| door.gather(&secret(1), &hosts(), LONG, LONG));
            let mut strangers: Vec<TcpStream> = (0..2 * SPARE_CONNECTIONS)
                .map(|_| TcpStream::connect(place).unwrap())
                .collect();
            strangers[0]
                .write_all(b"GET / HTTP/1.1\r\nHost: somewhere in the world\r\n\r\n")
                .unwrap_or(());
            // Another job's secret, a host that is none: nothing becomes of them.
            let (other, _) = connect_to(&place, &secret(2), 0, LONG).unwrap();
            assert!(connect_to(&place, &secret(1), 1, LONG).is_err());
            let second = connect(&[place], &secret(1), 2, LONG, LONG).unwrap();
            let first = connect(&[place], &secret(1), 0, LONG, LONG).unwrap();
            let come = gathered.join().unwrap().unwrap();
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
            drop(other);
        });
    }

    #[test]
    fn an_agent_that_does_not_come_is_named() {
        let door = Door::open().unwrap();
        let place = place(&door);
        thread::scope(|scope| {
            let door = &door;
            let gathered = scope.spawn(move || {
                let limit = Duration::from_secs(1);
                door.gather(&secret(1), &hosts(), LONG, limit).map(drop)
            });
            let _first = connect(&[place], &secret(1), 0, LONG, LONG).unwrap();
            let error = gathered.join().unwrap().unwrap_err();
            assert!(
                error.contains("the agent of host b (ranks 2-3) did not connect"),
                "{error}"
            );
        });
        drop(door);
        let error = connect(&[place], &secret(1), 2, LONG, Duration::ZERO).unwrap_err();
        assert!(error.contains(&format!("({place}: ")), "{error}");
    }

    #[test]
    fn addresses_end_with_one_of_this_host() {
        let all = addresses().unwrap();
        assert!(all.last().is_some_and(IpAddr::is_loopback), "{all:?}");
        assert!(all.len() <= MAX_ADDRESSES);
    }
}
