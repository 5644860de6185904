//! Programs that are not of the job connect to the ports of its ranks, while it works.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use argonet::JobRank;
use argonet_conduit::tcp::join::{Handshake, Hello, JobKey};

use super::over;
use super::storm::rounds;
use crate::network::Network;
use crate::support::{Done, PROGRAM, Random};

/// Names the addresses to disturb.
const TARGETS: &str = "ARGONET_TEST_TARGETS";

/// A connection, if it can be had; the ranks may have others waiting.
fn connect(target: &SocketAddr) -> Option<TcpStream> {
    let socket = TcpStream::connect_timeout(target, Duration::from_secs(5)).ok()?;
    let limit = Some(Duration::from_secs(10));
    socket.set_read_timeout(limit).ok()?;
    socket.set_write_timeout(limit).ok()?;
    Some(socket)
}

/// The first message of a connector that holds another key.
fn first_message(key: u8) -> Vec<u8> {
    let hello = Hello {
        rank: JobRank(0),
        connection: 0,
        incarnation: 1 << 40,
        received: 0,
    };
    let nonce = [key; 32];
    let key = JobKey::from_bytes([key; 32]);
    let handshake = Handshake::connect(&key, hello, JobRank(1), nonce);
    handshake.to_send().to_vec()
}

/// Disturbs all targets in every way; a rank must never answer.
pub(super) fn strangers() -> Done {
    let targets = std::env::var(TARGETS)?;
    let targets: Vec<SocketAddr> = targets
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let mut random = Random::new(3);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.next() as u8).collect();
    for target in &targets {
        let mut answer = Vec::new();
        let mut sockets = Vec::new();
        // Scanners, half-open ones, ones that say nothing: more than may be unknown at a time.
        for i in 0..100 {
            let Some(socket) = connect(target) else {
                continue;
            };
            match i % 4 {
                0 => drop(socket),
                1 => {
                    let _ = socket.shutdown(Shutdown::Write);
                    sockets.push(socket);
                }
                _ => sockets.push(socket),
            }
        }
        // Other protocols, wrong keys, the same again, cut short.
        let open = first_message(1);
        let messages = [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            open.clone(),
            open.clone(),
            first_message(2),
            open[..open.len() - 1].to_vec(),
        ];
        for message in messages {
            if let Some(mut socket) = connect(target) {
                let _ = socket.write_all(&message);
                let _ = socket.shutdown(Shutdown::Write);
                let _ = socket.read_to_end(&mut answer);
            }
        }
        // 10 MB of anything; it is closed soon.
        for _ in 0..10 {
            if let Some(mut socket) = connect(target) {
                let _ = socket.write_all(&noise);
                let _ = socket.read_to_end(&mut answer);
            }
        }
        assert!(answer.is_empty(), "{target} has answered a stranger");
    }
    Ok(())
}

pub(super) fn at_the_doors() {
    let network = Network::new(&["a", "b", "c"]);
    let job = over(&network, 3, "a:2,b", "storm-over-hosts").env("ARGONET_TCP_PORTS", "4000-4001");
    let outcome = job.run_with(|talk| {
        rounds(talk, 5);
        let doors = [("a", 4000), ("a", 4001), ("b", 4000)];
        let targets = doors.map(|(host, port)| format!("{}:{port}", network.address(host, 0)));
        let this = std::env::current_exe().expect("this program");
        // One is of no host of the job, one is of the host itself.
        let mut strangers = ["c", "b"].map(|host| {
            let mut command = network.command(host);
            command.arg(&this).env(PROGRAM, "strangers");
            command
                .env(TARGETS, targets.join(" "))
                .spawn()
                .expect("a stranger")
        });
        for stranger in &mut strangers {
            assert!(stranger.wait().expect("a stranger").success());
        }
        // Whose connections are cut now find each other again.
        network.cut("b");
        network.wait_until_struck("b", 4);
        network.heal("b");
        rounds(talk, 5);
    });
    outcome.ended_well();
}
