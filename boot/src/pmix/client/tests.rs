//! The rank's end, and a process that a thread plays.

use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::super::message::{Answer, Request, decode, encode_answer};
use super::*;

const LONG: Duration = Duration::from_secs(60);

/// What a process does with a request, the first of which is its start: it answers with these
/// bytes, does not answer, or ends.
enum Does {
    Answers(Vec<u8>),
    Waits,
    Ends,
}

fn says(answer: Answer) -> Does {
    Does::Answers(encode_answer(&answer))
}

/// A process that has ended, in place of the one that the thread plays.
fn ended_process() -> Child {
    Child::of_test(Command::new("false"))
}

/// A client of a process that does so, and the requests that came.
fn started<'a>(
    limit: Duration,
    watched: Watched<'a>,
    does: impl Fn(Option<Request<'_>>) -> Does + Send + 'static,
) -> (Result<Pmix<'a>, BootError>, Receiver<String>) {
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    let (ours, theirs) = pair.unwrap();
    let (heard, requests) = channel();
    thread::spawn(move || {
        let mut bytes = vec![0; MAX_BYTES];
        let mut next = does(None);
        loop {
            match next {
                Does::Answers(answer) => {
                    let _ = send(&theirs, &answer, SendFlags::NOSIGNAL);
                }
                Does::Waits => {}
                Does::Ends => return,
            }
            let Ok((taken @ 1.., _)) = recv(&theirs, &mut bytes[..], RecvFlags::empty()) else {
                return;
            };
            let request = decode(&bytes[..taken]).unwrap();
            let (call, number, key, value) = request;
            let _ = heard.send(format!("{call} {number} {key} {value:?}"));
            next = does(Some(request));
        }
    });
    let client = Client {
        rank: JobRank(3),
        size: 4,
        launcher: "a test",
        limit,
        aborts: true,
    };
    let process = (ended_process(), ours);
    (Pmix::over(client, process, watched), requests)
}

/// Nothing that could happen.
fn nothing() -> Watched<'static> {
    Watched {
        fds: Vec::new(),
        is_over: Box::new(|| false),
    }
}

#[track_caller]
fn fails<T>(result: Result<T, BootError>, reasons: &[&str]) {
    let Err(error) = result else {
        panic!("no error")
    };
    let text = error.to_string();
    for reason in ["rank 3: the store of a test (PMIx, by libpmix)"]
        .iter()
        .chain(reasons)
    {
        assert!(text.contains(reason), "{reason}: {text}");
    }
}

#[test]
fn values_and_refusals_are_those_of_the_process() {
    let (store, requests) = started(LONG, nothing(), |request| {
        says(match request {
            Some((GET, 2, "host-2", _)) => Ok(Some(b"value".to_vec())),
            Some((GET, 1, ..)) => Err("BAD (-1)".into()),
            Some((ABORT, ..)) => return Does::Answers(ABORTED.to_vec()),
            _ => Ok(None),
        })
    });
    let mut store = store.unwrap();
    store.put("host-3", b"x").unwrap();
    store.fence().unwrap();
    assert_eq!(
        store.get(JobRank(2), "host-2").unwrap(),
        Some(b"value".to_vec())
    );
    assert_eq!(store.get(JobRank(0), "root").unwrap(), None);
    fails(
        store.get(JobRank(1), "host-1"),
        &["failed at \"PMIx_Get\": BAD (-1)"],
    );
    store.abort(7);
    store.finish().unwrap();
    drop(store);
    let requests: Vec<String> = requests.iter().collect();
    assert_eq!(requests[0], "PMIx_Put 0 host-3 [120]");
    assert_eq!(requests[5..], ["PMIx_Abort 7  []", "PMIx_Finalize 0  []"]);
}

#[test]
fn a_process_that_fails_or_ends_is_an_error_at_once() {
    let refused = |_: Option<Request<'_>>| says(Err("no libpmix".into()));
    let (store, _) = started(LONG, nothing(), refused);
    fails(store, &["\"PMIx_Init\": no libpmix"]);
    let (store, _) = started(LONG, nothing(), |_| Does::Ends);
    fails(
        store,
        &["\"PMIx_Init\": the process that calls libpmix has ended with code 1"],
    );
    let (store, _) = started(LONG, nothing(), |request| match request {
        Some((FENCE, ..)) => Does::Ends,
        _ => says(Ok(None)),
    });
    let mut store = store.unwrap();
    fails(
        store.fence(),
        &["\"PMIx_Fence\": the process that calls libpmix has ended with code 1"],
    );
    store.abort(1);
    let (store, _) = started(LONG, nothing(), |_| Does::Answers(vec![9, 9]));
    fails(store, &["its answer is none"]);
}

#[test]
fn what_does_not_come_is_an_error_in_time_and_the_job_can_be_ended() {
    let limit = Duration::from_secs(1);
    let began = Instant::now();
    let (store, _) = started(limit, nothing(), |_| Does::Waits);
    fails(
        store,
        &[
            "\"PMIx_Init\": no answer has come within 1 s",
            "ARGONET_START_TIMEOUT",
        ],
    );
    let (store, requests) = started(limit, nothing(), |request| match request {
        Some((FENCE, ..)) => Does::Waits,
        _ => says(Ok(None)),
    });
    let mut store = store.unwrap();
    fails(
        store.fence(),
        &["\"PMIx_Fence\": not all processes of the job have come within 1 s"],
    );
    store.abort(3);
    assert!(began.elapsed() < LONG);
    drop(store);
    let requests: Vec<String> = requests.iter().collect();
    assert_eq!(requests, ["PMIx_Fence 0  []", "PMIx_Abort 3  []"]);
}

#[test]
fn a_wait_ends_when_there_is_no_job_to_wait_for() {
    let (gone, end) = std::os::unix::net::UnixStream::pair().unwrap();
    let watched = Watched {
        fds: vec![end.as_fd()],
        is_over: Box::new(|| true),
    };
    let (store, _) = started(LONG, watched, |request| match request {
        Some((FENCE, ..)) => Does::Waits,
        _ => says(Ok(None)),
    });
    let mut store = store.unwrap();
    drop(gone);
    let began = Instant::now();
    fails(store.fence(), &[OVER]);
    assert!(began.elapsed() < LONG, "at once");
}
