//! A service with clients, by tokio: ranks count words, and any of them answers for all.
//!
//! Usage: `argonet run -n 4 service [requests]`
//!
//! Each rank keeps the counts of some words, and listens on a socket. A client sends words to any
//! rank, a line each; that rank calls the word's owner, and sends its new count back. To test
//! itself, each rank also runs eight clients of ranks all around, each with so many requests. All
//! ranks are on one host.

use argonet::{DistObject, Par, Rank, World};
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Anything that fails ends the task, or the program.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Clients of each rank.
const CLIENTS: u32 = 8;

/// The words of a rank, with their counts.
type Counts = Mutex<HashMap<String, u64>>;

argonet::rpc! {
    /// Counts a word once more.
    ///
    /// It runs in calls of the library: no thread may have the lock while it makes one.
    fn count_one(counts: &Counts, word: String) -> u64 {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(word).or_default();
        *count += 1;
        *count
    }
}

struct Service {
    world: Arc<World<Par>>,
    counts: DistObject<Counts, Par>,
}

impl Service {
    /// The rank that counts a word.
    fn owner(&self, word: &str) -> Rank {
        let sum: u32 = word.bytes().map(u32::from).sum();
        Rank(sum % self.world.size())
    }

    /// Answers all clients that come.
    async fn listen(self: Arc<Self>, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            let service = Arc::clone(&self);
            tokio::spawn(async move {
                if let Err(error) = service.answer(client).await {
                    eprintln!("lost a client: {error}");
                }
            });
        }
    }

    /// Answers one client until it closes its connection.
    async fn answer(&self, mut client: TcpStream) -> Result<()> {
        let (read, mut write) = client.split();
        let mut words = BufReader::new(read).lines();
        while let Some(word) = words.next_line().await? {
            let (world, owner) = (&self.world, self.owner(&word));
            let count = self.counts.rpc(world, owner, &count_one, (word,))?.await?;
            write.write_all(format!("{count}\n").as_bytes()).await?;
        }
        Ok(())
    }
}

/// The word of a request: some are frequent.
fn word(client: u32, request: u32) -> String {
    let number = client.wrapping_mul(0x9e37).wrapping_add(request) % 1009;
    format!("word{}", number * number % 97)
}

/// One client: the answers to its requests.
async fn ask(client: u32, requests: u32, ports: Arc<[u16]>) -> Result<Vec<u64>> {
    let port = ports[client as usize % ports.len()];
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
    let (read, mut write) = socket.split();
    let mut lines = BufReader::new(read).lines();
    let mut answers = Vec::new();
    for request in 0..requests {
        let line = word(client, request) + "\n";
        write.write_all(line.as_bytes()).await?;
        let answer = lines.next_line().await?.ok_or("no answer")?;
        answers.push(answer.parse()?);
    }
    Ok(answers)
}

/// The sum of all answers, as one process without any service finds it: of a word that comes n
/// times, whatever their order, the answers are 1 to n.
fn expected(clients: u32, requests: u32) -> u64 {
    let mut counts = HashMap::<String, u64>::new();
    for client in 0..clients {
        for request in 0..requests {
            *counts.entry(word(client, request)).or_default() += 1;
        }
    }
    counts.values().map(|count| count * (count + 1) / 2).sum()
}

fn main() {
    World::builder().run_shared(serve)
}

fn serve(world: &mut Arc<World<Par>>) -> std::result::Result<(), Box<dyn Error>> {
    let requests = std::env::args().nth(1).map_or(Ok(100), |n| n.parse())?;
    let counts = DistObject::new(world, Counts::default())?;
    let service = Arc::new(Service {
        world: Arc::clone(world),
        counts,
    });

    let runtime = Runtime::new()?;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
    let port = listener.local_addr()?.port();
    runtime.spawn(service.listen(listener));
    let ports: Arc<[u16]> = world.collectives().gather_all(&[port])?.into();

    let first = world.rank().0 * CLIENTS;
    let clients: Vec<_> = (first..first + CLIENTS)
        .map(|client| runtime.spawn(ask(client, requests, Arc::clone(&ports))))
        .collect();
    let mut sum = 0;
    for client in clients {
        let answers = runtime
            .block_on(client)?
            .map_err(|error| error.to_string())?;
        sum += answers.iter().sum::<u64>();
    }

    // After this no rank needs another one any more.
    let sum: u64 = world.collectives().gather_all(&[sum])?.iter().sum();
    drop(runtime);
    let clients = world.size() * CLIENTS;
    assert_eq!(sum, expected(clients, requests), "a count is wrong");
    if world.rank() == Rank(0) {
        println!("{clients} clients made {requests} requests each; all counts are right");
    }
    Ok(())
}
