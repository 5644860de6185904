//! The part of the examination that an agent does on its host.

use std::sync::Arc;

use argonet_base::JobRank;
use argonet_boot::{Answers, Post};
use argonet_conduit::tcp::join::interfaces::{Interface, choose, list};
use argonet_conduit::tcp::join::{
    JobKey, JoinConfig, JoinService, Joiner, Whereabouts, from_settings,
};
use rustix::process::Resource;
use serde::{Deserialize, Serialize};

use super::connect::{Attempts, Found, connect, serve};
use super::datagrams::Office;
use super::facts::{Card, Door, Facts, Limit, Trouble, clock_ns, system_ports};

/// At so many ports a host listens at most; a firewall that lets these pass and not the next is not
/// looked for.
const MOST_DOORS: u32 = 8;

/// A question to an agent.
#[derive(Serialize, Deserialize)]
pub(super) enum Question {
    /// For its [`Facts`]; it listens from then on.
    Look,
    /// To connect to others.
    Connect(Attempts),
}

impl Question {
    pub(super) fn encode(&self) -> Vec<u8> {
        // Nothing in it cannot be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Makes what answers on a host.
pub(crate) fn look(post: Post) -> Answers {
    let mut office = Office::default();
    Box::new(move |question| {
        let answer = match serde_json::from_slice(question) {
            Ok(Question::Look) => serde_json::to_vec(&facts(&post, &mut office)),
            Ok(Question::Connect(attempts)) => {
                let me = JobRank(post.ranks.start);
                // First, as all hosts are asked at about the same time.
                let paths = office.ask(post.key.bytes(), &attempts);
                let probes = connect(&key(&post), me, &attempts);
                serde_json::to_vec(&Found { probes, paths })
            }
            Err(error) => Ok(format!("a question that is none: {error}").into_bytes()),
        };
        answer.unwrap_or_default()
    })
}

fn key(post: &Post) -> JobKey {
    JobKey::from_bytes(*post.key.bytes())
}

fn facts(post: &Post, office: &mut Office) -> Facts {
    let (mut existing, mut chosen, mut doors) = (Vec::new(), Vec::new(), Vec::new());
    let interfaces = |error: &dyn std::fmt::Display| Trouble::Interfaces(error.to_string());
    let mut ports = None;
    let mut mailbox = Err("it has no interface for them".to_owned());
    let mut listening = || {
        let (config, wish) = from_settings(&post.settings).map_err(|e| interfaces(&e))?;
        ports = Some((*config.ports.start(), *config.ports.end()));
        existing = list(&post.host).map_err(|e| interfaces(&e))?;
        let one_host = post.ranks.len() as u32 == post.size;
        chosen = choose(&existing, &wish, one_host, &post.host).map_err(|e| interfaces(&e))?;
        if let Some(first) = chosen.first() {
            mailbox = office.open(first.address, &config.ports);
        }
        for rank in post.ranks.clone().take(MOST_DOORS as usize) {
            doors.push(open(post, JobRank(rank), &config, &chosen).map_err(Trouble::Ports)?);
        }
        Ok(())
    };
    let trouble = listening().err();
    let card = |interface: &Interface| Card::new(interface, chosen.contains(interface));
    Facts {
        version: env!("CARGO_PKG_VERSION").into(),
        cards: existing.iter().map(card).collect(),
        trouble,
        doors,
        mailbox,
        ports: ports.filter(|ports| *ports != (0, 0)),
        system_ports: system_ports(),
        files: Limit::of(Resource::Nofile),
        locked_memory: Limit::of(Resource::Memlock),
        clock_ns: clock_ns(),
    }
}

/// Listens as a rank would, until this process ends.
fn open(
    post: &Post,
    rank: JobRank,
    config: &JoinConfig,
    interfaces: &[Interface],
) -> Result<Door, String> {
    let joiner = Joiner::new(
        config.clone(),
        key(post),
        rank,
        post.size,
        interfaces.to_vec(),
    );
    let joiner = joiner.map_err(|error| error.to_string())?;
    // It asks for no connection.
    let directory = Box::new(|_| Whereabouts::default());
    let service = JoinService::new(joiner, directory);
    let service = Arc::new(service.map_err(|error| format!("rank {rank} cannot listen: {error}"))?);
    let addresses = service.addresses();
    std::thread::spawn(move || serve(&service));
    Ok(Door {
        rank: rank.0,
        addresses,
    })
}
