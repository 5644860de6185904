//! A handshake of the job, captured on the network and replayed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SocketType, eth, recv, socket, sockopt};

use super::over;
use super::storm::rounds;
use crate::network::Network;
use crate::support::{Done, PROGRAM};

/// Ports at which the ranks listen.
const PORTS: core::ops::Range<u16> = 4000..4010;

/// Bytes of a connector: two messages of the handshake, and the first of what followed.
struct Heard {
    from: SocketAddrV4,
    to: SocketAddrV4,
    sent: Vec<Vec<u8>>,
}

/// Sender, receiver and payload of a packet of TCP.
fn read_packet(packet: &[u8]) -> Option<(SocketAddrV4, SocketAddrV4, &[u8])> {
    let head = usize::from(packet.first()? & 15) * 4;
    let length = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    if *packet.get(9)? != 6 {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(bytes))
    };
    let tcp = packet.get(head..length)?;
    let port = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    let payload = tcp.get(usize::from(tcp.get(12)? >> 4) * 4..)?;
    let from = SocketAddrV4::new(address(12)?, port(0)?);
    let to = SocketAddrV4::new(address(16)?, port(2)?);
    Some((from, to, payload))
}

/// Hears all that passes its host, until its standard input ends; then replays to each port the
/// bytes that were sent to it, and must not be taken for a rank.
pub(super) fn eavesdropper() -> Done {
    static ENDS: AtomicBool = AtomicBool::new(false);
    let ear = socket(AddressFamily::PACKET, SocketType::DGRAM, Some(eth::IP))?;
    sockopt::set_socket_timeout(
        &ear,
        sockopt::Timeout::Recv,
        Some(Duration::from_millis(20)),
    )?;
    println!("listens");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ENDS.store(true, Ordering::Relaxed);
    });
    let mut heard: Vec<Heard> = Vec::new();
    let mut packet = vec![0; 1 << 16];
    while !ENDS.load(Ordering::Relaxed) {
        let Ok((length, _)) = recv(&ear, &mut packet[..], RecvFlags::empty()) else {
            continue;
        };
        let Some((from, to, payload)) = read_packet(&packet[..length]) else {
            continue;
        };
        if !PORTS.contains(&to.port()) || payload.is_empty() {
            continue;
        }
        let known = heard
            .iter()
            .position(|one| (one.from, one.to) == (from, to));
        let at = known.unwrap_or_else(|| {
            let sent = Vec::new();
            heard.push(Heard { from, to, sent });
            heard.len() - 1
        });
        if heard[at].sent.len() < 3 {
            heard[at].sent.push(payload.to_vec());
        }
    }
    heard.retain(|one| one.sent.len() == 3);
    assert!(!heard.is_empty(), "nothing was heard");
    for Heard { to, sent, .. } in &heard {
        for _ in 0..3 {
            let mut socket = TcpStream::connect(to)?;
            socket.set_read_timeout(Some(Duration::from_secs(20)))?;
            let mut answer = vec![0; 4096];
            socket.write_all(&sent[0])?;
            // The sender of this message gets a challenge, which is another one each time.
            let challenge = socket.read(&mut answer)?;
            assert!(challenge > 0, "{to} has not answered a message of the job");
            let _ = socket.write_all(&sent[1]);
            let _ = socket.write_all(&sent[2]);
            // It may be reset, as not all was read.
            let more = socket.read(&mut answer).unwrap_or(0);
            assert_eq!(more, 0, "{to} has taken an old proof");
        }
    }
    println!("{} were heard", heard.len());
    Ok(())
}

pub(super) fn said_again() {
    let network = Network::new(&["a", "b"]);
    let mut command = network.command("b");
    let this = std::env::current_exe().expect("this program");
    command.arg(this).env(PROGRAM, "eavesdropper");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut ear = command.spawn().expect("an eavesdropper");
    let mut says = BufReader::new(ear.stdout.take().expect("piped"));
    says.read_line(&mut String::new()).expect("that it listens");
    let job = over(&network, 3, "a:2,b", "storm-over-hosts").env("ARGONET_TCP_PORTS", "4000-4009");
    let outcome = job.run_with(|talk| {
        rounds(talk, 5);
        drop(ear.stdin.take());
        assert!(ear.wait().expect("an eavesdropper").success());
        rounds(talk, 5);
    });
    outcome.ended_well();
}
