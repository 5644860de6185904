//! The description of a job for agents, from options, settings and the launcher's environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use argonet_settings::{
    AGENT_TIMEOUT, Reach, SSH_OUT_DEGREE, SSH_REMOTE_PATH, Settings, environment,
};

use crate::attach::new_job_id;
use crate::error::BootError;
use crate::foreign::{JOINED, describes_process};
use crate::hosts::choose::Hosts;
use crate::hosts::description::{Description, Task, Variable, Way};
use crate::hosts::frame::MAX_BODY_BYTES;
use crate::hosts::list::place;
use crate::hosts::start::check_template;
use crate::launch::LaunchOptions;
use crate::page::MAX_JOB_RANKS;

/// Describes the job over the hosts chosen.
pub(crate) fn describe(
    task: Task,
    options: &LaunchOptions,
    conduit: &str,
    hosts: Hosts,
    settings: &Settings,
) -> Result<Description, BootError> {
    let size = u32::try_from(options.ranks).ok();
    let size = size.filter(|n| (1..=MAX_JOB_RANKS).contains(n));
    let size = size.ok_or(BootError::TooManyRanks {
        given: options.ranks,
    })?;
    let placed = place(&hosts.entries, size).map_err(|error| BootError::BadHostList {
        list: hosts.source,
        error,
    })?;
    if placed.len() > 1 && !Reach::of(conduit, settings).hosts {
        return Err(BootError::OneHostConduit {
            conduit: conduit.into(),
            hosts: placed.len(),
            spanning: Reach::over_hosts(),
        });
    }
    if let Way::Template(template) = &hosts.way {
        check_template(template, placed.len())?;
    }
    let directory = match settings.get(&SSH_REMOTE_PATH) {
        Some(path) => path,
        None => std::env::current_dir()
            .map_err(|e| BootError::system("finding the working directory", e))?,
    };
    let silence = settings.get(&AGENT_TIMEOUT);
    let job = Description {
        task,
        job_id: new_job_id()?,
        size,
        hosts: placed,
        way: hosts.way,
        agent: hosts.agent,
        program: options.program.clone(),
        args: options.args.clone(),
        directory: directory.into(),
        environment: variables(&options.hosts.propagate),
        conduit: conduit.into(),
        tag_output: options.tag_output,
        bind: options.bind,
        goes_on: false,
        degree: settings.get(&SSH_OUT_DEGREE) as u32,
        silence_ms: u32::try_from(silence.as_millis()).unwrap_or(u32::MAX),
    };
    let mut body = Vec::new();
    job.encode(&mut body);
    match body.len() <= MAX_BODY_BYTES {
        true => Ok(job),
        false => Err(BootError::TooMuchToSend {
            bytes: body.len(),
            most: MAX_BODY_BYTES,
        }),
    }
}

/// Variables of the launcher's environment that agents get.
///
/// A setting of the library holds for the job, and so does a variable that the user names; of
/// others a host's own value is better.
fn variables(propagate: &[String]) -> Vec<Variable> {
    let begins = |name: &OsStr, prefix: &str| name.as_bytes().starts_with(prefix.as_bytes());
    let own_affair = |name: &OsStr| {
        [
            "ARGONET_BOOT",
            "ARGONET_ROLE",
            "ARGONET_LAUNCH_RANKS",
            JOINED,
            "PWD",
            "OLDPWD",
            "SHLVL",
            "_",
            "HOSTNAME",
            "DISPLAY",
        ]
        .iter()
        .any(|own| name == OsStr::new(own))
            || begins(name, "SSH_")
            || describes_process(name)
    };
    let wins = |name: &OsStr| {
        ["GASNET_", "ARGONET_", "AMUDP_"]
            .iter()
            .any(|prefix| begins(name, prefix))
            || propagate.iter().any(|named| name == OsStr::new(named))
    };
    let variable = |(name, value): (OsString, OsString)| Variable {
        wins: wins(&name),
        name,
        value,
    };
    let named = |name: &OsStr| propagate.iter().any(|named| name == OsStr::new(named));
    environment::variables()
        .into_iter()
        .filter(|(name, _)| named(name) || !own_affair(name))
        .map(variable)
        .collect()
}
