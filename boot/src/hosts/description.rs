//! The task of an agent.

use std::ffi::OsString;

use num_enum::{IntoPrimitive, TryFromPrimitive};

use crate::hosts::list::{Host, is_host_name};
use crate::hosts::message::flag;
use crate::hosts::words::{Reader, put_os, put_text, put_u32};
use crate::page::{MAX_JOB_RANKS, MAX_LOCAL_RANKS};

/// The longest name of a host, a conduit or an agent's program.
const MAX_NAME_BYTES: usize = 4096;

/// The most arguments or variables.
const MAX_STRINGS: u32 = 1 << 20;

/// Way to start the agent of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// As a process of the same host, for any name of a host: for trying things out.
    Local,
    /// By a remote shell with these options.
    Shell {
        command: String,
        options: Vec<String>,
    },
    /// By a command with places for host and agent.
    Template(String),
}

/// Task of the agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u8)]
pub(crate) enum Task {
    /// To run the ranks of their hosts.
    Run = 0,
    /// To look at their hosts and answer questions.
    Look = 1,
    /// To serve the ranks of their hosts, which another launcher has started.
    ///
    /// Such agents know it, and are not sent it.
    Serve = 2,
}

/// A variable of the launcher's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: OsString,
    pub(crate) value: OsString,
    /// Whether it replaces what the host's own environment has.
    pub(crate) wins: bool,
}

/// A job, as one agent has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) task: Task,
    pub(crate) job_id: u64,
    /// Ranks of the whole job.
    pub(crate) size: u32,
    /// The agent's own host, then those whose agents it starts or has started: consecutive ranks.
    pub(crate) hosts: Vec<Host>,
    pub(crate) way: Way,
    /// The command that is an agent.
    pub(crate) agent: Vec<OsString>,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) directory: OsString,
    pub(crate) environment: Vec<Variable>,
    pub(crate) conduit: String,
    pub(crate) tag_output: bool,
    pub(crate) bind: bool,
    /// Whether the job goes on without ranks that are lost.
    pub(crate) goes_on: bool,
    /// Number of agents that one starts; 0 for all.
    pub(crate) degree: u32,
    /// After how long a silent connection is given up, in milliseconds.
    pub(crate) silence_ms: u32,
}

impl Description {
    /// The same for the agent of the first of `hosts`.
    pub(crate) fn for_hosts(&self, hosts: &[Host]) -> Self {
        Self {
            hosts: hosts.to_vec(),
            ..self.clone()
        }
    }

    /// The beginning of each line that the command to start a host's agent writes on standard
    /// error.
    pub(crate) fn tag(&self, host: &str) -> String {
        match self.task {
            Task::Run => format!("argonet run: host {host}: "),
            Task::Look => format!("{host}: "),
            Task::Serve => format!("argonet: host {host}: "),
        }
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.push(self.task.into());
        to.extend_from_slice(&self.job_id.to_le_bytes());
        put_u32(to, self.size);
        put_list(to, &self.hosts, |to, host| {
            put_text(to, &host.name);
            put_u32(to, host.first);
            put_u32(to, host.ranks);
        });
        match &self.way {
            Way::Local => to.push(0),
            Way::Shell { command, options } => {
                to.push(1);
                put_text(to, command);
                put_list(to, options, |to, option| put_text(to, option));
            }
            Way::Template(template) => {
                to.push(2);
                put_text(to, template);
            }
        }
        put_list(to, &self.agent, |to, word| put_os(to, word));
        put_os(to, &self.program);
        put_list(to, &self.args, |to, word| put_os(to, word));
        put_os(to, &self.directory);
        put_list(to, &self.environment, |to, variable| {
            put_os(to, &variable.name);
            put_os(to, &variable.value);
            to.push(variable.wins.into());
        });
        put_text(to, &self.conduit);
        to.extend_from_slice(&[self.tag_output, self.bind, self.goes_on].map(u8::from));
        put_u32(to, self.degree);
        put_u32(to, self.silence_ms);
    }

    pub(crate) fn decode(body: &mut Reader<'_>) -> Option<Self> {
        let task = Task::try_from(body.u8()?).ok()?;
        let (job_id, size) = (body.u64()?, body.u32()?);
        let hosts = body.list(MAX_JOB_RANKS, |body| {
            Some(Host {
                name: body.text(MAX_NAME_BYTES)?,
                first: body.u32()?,
                ranks: body.u32()?,
            })
        })?;
        let way = match body.u8()? {
            0 => Way::Local,
            1 => Way::Shell {
                command: body.text(MAX_NAME_BYTES)?,
                options: body.list(MAX_STRINGS, |body| body.text(usize::MAX))?,
            },
            2 => Way::Template(body.text(usize::MAX)?),
            _ => return None,
        };
        let words = |body: &mut Reader<'_>| body.list(MAX_STRINGS, Reader::os);
        let description = Self {
            task,
            job_id,
            size,
            hosts,
            way,
            agent: words(body)?,
            program: body.os()?,
            args: words(body)?,
            directory: body.os()?,
            environment: body.list(MAX_STRINGS, |body| {
                Some(Variable {
                    name: body.os()?,
                    value: body.os()?,
                    wins: flag(body.u8()?)?,
                })
            })?,
            conduit: body.text(MAX_NAME_BYTES)?,
            tag_output: flag(body.u8()?)?,
            bind: flag(body.u8()?)?,
            goes_on: flag(body.u8()?)?,
            degree: body.u32()?,
            silence_ms: body.u32()?,
        };
        description.is_sound().then_some(description)
    }

    /// Whether the numbers fit each other.
    fn is_sound(&self) -> bool {
        let own = |host: &Host| {
            let end = host.first.checked_add(host.ranks);
            (1..=MAX_LOCAL_RANKS).contains(&host.ranks)
                && end.is_some_and(|end| end <= self.size)
                && is_host_name(&host.name)
        };
        let follows = |pair: &[Host]| pair[0].first + pair[0].ranks == pair[1].first;
        self.size <= MAX_JOB_RANKS
            && !self.hosts.is_empty()
            && self.hosts.iter().all(own)
            && self.hosts.windows(2).all(follows)
            && !self.agent.is_empty()
            && self.silence_ms > 0
            && self.task != Task::Serve
    }
}

fn put_list<T>(to: &mut Vec<u8>, list: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_u32(to, list.len() as u32);
    list.iter().for_each(|item| put(to, item));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    impl Default for Description {
        fn default() -> Self {
            Self {
                task: Task::Run,
                job_id: 1,
                size: 1,
                hosts: vec![Host {
                    name: "here".into(),
                    first: 0,
                    ranks: 1,
                }],
                way: Way::Local,
                agent: vec!["argonet".into(), "agent".into()],
                program: "prog".into(),
                args: Vec::new(),
                directory: "/".into(),
                environment: Vec::new(),
                conduit: "none".into(),
                tag_output: false,
                bind: false,
                goes_on: false,
                degree: 32,
                silence_ms: 30_000,
            }
        }
    }

    fn ways() -> impl Strategy<Value = Way> {
        prop_oneof![
            Just(Way::Local),
            ("[a-z/]{1,9}", vec("\\PC{0,9}", 0..4))
                .prop_map(|(command, options)| Way::Shell { command, options }),
            "\\PC{0,40}".prop_map(Way::Template),
        ]
    }

    fn strings() -> impl Strategy<Value = OsString> {
        use std::os::unix::ffi::OsStringExt;
        vec(1u8..=255, 0..20).prop_map(OsString::from_vec)
    }

    /// Any sound description.
    pub(crate) fn descriptions() -> impl Strategy<Value = Description> {
        let hosts = vec(("[a-z][a-z0-9.-]{0,9}", 1u32..9), 1..6);
        let variables = vec((strings(), strings(), any::<bool>()), 0..4);
        let args = vec(strings(), 0..4);
        (hosts, ways(), variables, args, any::<u64>(), 0u32..5).prop_map(
            |(names, way, variables, args, job_id, degree)| {
                let mut first = 0;
                let hosts: Vec<Host> = names
                    .into_iter()
                    .map(|(name, ranks)| {
                        let host = Host { name, first, ranks };
                        first += ranks;
                        host
                    })
                    .collect();
                let environment = variables
                    .into_iter()
                    .map(|(name, value, wins)| Variable { name, value, wins })
                    .collect();
                Description {
                    task: [Task::Run, Task::Look][job_id as usize % 2],
                    job_id,
                    size: first,
                    hosts,
                    way,
                    args,
                    environment,
                    degree,
                    goes_on: job_id & 2 != 0,
                    ..Description::default()
                }
            },
        )
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let decoded = |change: &dyn Fn(&mut Description)| {
            let mut description = Description::default();
            change(&mut description);
            let mut body = Vec::new();
            description.encode(&mut body);
            Description::decode(&mut Reader::new(&body))
        };
        assert!(decoded(&|_| ()).is_some());
        let changes: [&dyn Fn(&mut Description); 10] = [
            &|d| d.hosts.clear(),
            &|d| d.hosts[0].ranks = 0,
            &|d| d.hosts[0].ranks = 2,
            &|d| d.hosts[0].first = u32::MAX,
            &|d| d.hosts[0].name = "-oProxyCommand=x".into(),
            &|d| d.size = MAX_JOB_RANKS + 1,
            &|d| d.hosts.push(d.hosts[0].clone()),
            &|d| d.agent.clear(),
            &|d| d.silence_ms = 0,
            &|d| d.task = Task::Serve,
        ];
        for (i, change) in changes.iter().enumerate() {
            assert!(decoded(change).is_none(), "change {i}");
        }
    }
}
