//! The client, and a server that a thread plays.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// An answer, or `None` to close the connection.
type Act = dyn Fn(&str, &mut HashMap<String, String>) -> Option<String> + Send;

/// A client's end of a connection to a server that acts so, and the commands that came.
fn server(act: Box<Act>) -> (OwnedFd, Receiver<String>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (heard, commands) = channel();
    thread::spawn(move || {
        let mut store = HashMap::new();
        let mut answers = theirs.try_clone().unwrap();
        for line in BufReader::new(theirs).lines().map_while(Result::ok) {
            let _ = heard.send(line.clone());
            let Some(answer) = act(&line, &mut store) else {
                return;
            };
            if answers.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (ours.into(), commands)
}

/// The answer of a server with these limits of keys and values.
fn answer(
    line: &str,
    store: &mut HashMap<String, String>,
    [key_max, value_max]: [usize; 2],
) -> String {
    let request = Answer::parse(line).unwrap();
    let key = || {
        let key = request.needed("key").unwrap();
        assert!(key.len() < key_max && line.len() < MAX_LINE_BYTES);
        assert_eq!(request.field("kvsname"), Some("kvs_7"));
        key.to_owned()
    };
    match request.needed("cmd").unwrap() {
        "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".into(),
        "get_maxes" => {
            format!("cmd=maxes kvsname_max=256 keylen_max={key_max} vallen_max={value_max}\n")
        }
        "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7\n".into(),
        "put" => {
            let value = request.needed("value").unwrap();
            assert!(value.len() < value_max);
            store.insert(key(), value.to_owned());
            "cmd=put_result rc=0 msg=success\n".into()
        }
        "barrier_in" => "cmd=barrier_out\n".into(),
        "get" => match store.get(&key()) {
            Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
            None => "cmd=get_result rc=-1 msg=not_found value=unknown\n".into(),
        },
        "finalize" => "cmd=finalize_ack\n".into(),
        other => panic!("{other}"),
    }
}

fn client(limit: Duration) -> Client {
    Client {
        rank: JobRank(3),
        size: 4,
        launcher: "a test",
        limit,
        aborts: true,
    }
}

/// Nothing that could happen.
fn nothing() -> Watched<'static> {
    Watched {
        fds: Vec::new(),
        is_over: Box::new(|| false),
    }
}

/// A client of a server that acts as one should, but for what `differs` gives.
fn started(
    limit: Duration,
    differs: impl Fn(&str) -> Option<Option<String>> + Send + 'static,
) -> Result<Pmi<'static>, BootError> {
    let act = move |line: &str, store: &mut HashMap<String, String>| match differs(line) {
        Some(other) => other,
        None => Some(answer(line, store, [64, 1024])),
    };
    let (socket, _) = server(Box::new(act));
    Pmi::new(client(limit), socket, nothing())
}

/// A client whose server answers `command` in another way, `None` being the end.
fn with(command: &'static str, other: Option<&'static str>) -> Result<Pmi<'static>, BootError> {
    started(LONG, move |line| {
        let is_it = line.split(' ').next() == Some(&format!("cmd={command}"));
        is_it.then(|| other.map(str::to_owned))
    })
}

#[track_caller]
fn fails<T>(result: Result<T, BootError>, reasons: &[&str]) {
    let Err(error) = result else {
        panic!("no error")
    };
    let text = error.to_string();
    for reason in ["rank 3: the store of a test"].iter().chain(reasons) {
        assert!(text.contains(reason), "{reason}: {text}");
    }
}

#[test]
fn values_go_through_stores_of_any_limits() {
    let value: Vec<u8> = (0..=255).cycle().take(3000).collect();
    for limits in [[64, 1024], [40, 64], [64, 1 << 20]] {
        let act = move |line: &str, store: &mut HashMap<String, String>| {
            Some(answer(line, store, limits))
        };
        let (socket, commands) = server(Box::new(act));
        let mut pmi = Pmi::new(client(LONG), socket, nothing()).unwrap();
        pmi.put("root", &value).unwrap();
        pmi.put("host-1023", b"").unwrap();
        pmi.fence().unwrap();
        assert_eq!(
            pmi.get(JobRank(0), "root").unwrap().as_ref(),
            Some(&value),
            "{limits:?}"
        );
        assert_eq!(pmi.get(JobRank(0), "host-1023").unwrap(), Some(Vec::new()));
        assert_eq!(pmi.get(JobRank(0), "host-7").unwrap(), None);
        pmi.finish().unwrap();
        let all: Vec<String> = commands.try_iter().collect();
        assert_eq!(all.last().map(String::as_str), Some("cmd=finalize"));
    }
}

#[test]
fn what_a_server_refuses_or_garbles_is_an_error_with_its_words() {
    let version = "cmd=response_to_init pmi_version=2 rc=0\n";
    fails(with("init", Some(version)), &["\"init\"", "version 2"]);
    let failed = "cmd=response_to_init pmi_version=1 rc=-1\n";
    fails(with("init", Some(failed)), &[failed.trim()]);
    let small = "cmd=maxes kvsname_max=256 keylen_max=8 vallen_max=1024\n";
    fails(with("get_maxes", Some(small)), &["limits are 8 bytes"]);
    let tiny = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=16\n";
    fails(with("get_maxes", Some(tiny)), &["16 of a value"]);
    fails(
        with("get_maxes", Some("cmd=maxes\n")),
        &["no field kvsname_max"],
    );
    fails(
        with("get_maxes", Some("hello\x1b[2J\n")),
        &["\"hello[2J\"", "0x1b"],
    );
    let long = "cmd=maxes kvsname_max=3 keylen_max=64 vallen_max=1024\n";
    fails(
        with("get_maxes", Some(long)),
        &["get_my_kvsname", "own limit"],
    );
    let two = "cmd=my_kvsname kvsname=kvs_7\ncmd=barrier_out\n";
    let mut pmi = with("get_my_kvsname", Some(two)).unwrap();
    fails(pmi.fence(), &["more than it was asked for"]);
    let mut pmi = with("put", Some("cmd=put_result rc=-1 msg=full\n")).unwrap();
    fails(
        pmi.put("root", b"x"),
        &["\"put\"", "msg=full", "refuses the key argonet-root-0"],
    );
    let mut pmi = with("put", Some("cmd=get_result rc=0\n")).unwrap();
    fails(
        pmi.put("root", b"x"),
        &["answer get_result, not put_result"],
    );
    let mut pmi = with("barrier_in", Some("cmd=barrier_out rc=1\n")).unwrap();
    fails(pmi.fence(), &["\"barrier_in\"", "it has failed"]);
    for (value, reason) in [
        ("xyz", "no number of pieces"),
        ("1-0g", "hexadecimal"),
        ("2-00", "argonet-root-1"),
    ] {
        let mut pmi = started(LONG, move |line| {
            match line.contains("cmd=get kvsname=kvs_7 key=argonet-root-0") {
                true => Some(Some(format!("cmd=get_result rc=0 value={value}\n"))),
                false => None,
            }
        })
        .unwrap();
        fails(
            pmi.get(JobRank(0), "root"),
            &["\"get\"", "the value of root cannot be used", reason],
        );
    }
}

/// It may be the job's key.
#[test]
fn a_value_that_cannot_be_used_is_not_shown() {
    let odd = "cmd=put_result rc=0 value=1-0123456789abcdef\n";
    let mut pmi = with("get", Some(odd)).unwrap();
    let error = pmi.get(JobRank(0), "root").unwrap_err().to_string();
    assert!(
        error.contains("cmd=put_result rc=0") && !error.contains("0123"),
        "{error}"
    );
}

/// Others wait for it in a fence that does not come.
#[test]
fn a_greeting_that_fails_ends_the_job_where_the_launcher_does_not() {
    for aborts in [true, false] {
        let act = |line: &str, _: &mut HashMap<String, String>| match line.contains("cmd=init") {
            // More than it was asked for: an abort is sent all the same.
            true => Some("cmd=response_to_init pmi_version=2 rc=0\ncmd=more\n".into()),
            false => None,
        };
        let (socket, commands) = server(Box::new(act));
        let client = Client {
            aborts,
            ..client(LONG)
        };
        fails(
            Pmi::new(client, socket, nothing()).map(|_| ()),
            &["version 2"],
        );
        let sent = commands.iter().any(|line| line.starts_with("cmd=abort"));
        assert_eq!(sent, aborts);
    }
}

#[test]
fn a_server_that_closes_is_an_error_at_once() {
    fails(with("init", None), &["\"init\"", "closed the connection"]);
    let mut pmi = with("barrier_in", None).unwrap();
    fails(pmi.fence(), &["closed the connection"]);
    fails(pmi.fence(), &["the connection is broken"]);
    pmi.abort(1);
}

#[test]
fn a_barrier_that_never_comes_is_an_error_in_time() {
    let limit = Duration::from_secs(1);
    let mut pmi = started(limit, |line| {
        (line == "cmd=barrier_in").then(|| Some(String::new()))
    })
    .unwrap();
    let began = Instant::now();
    fails(
        pmi.fence(),
        &[
            "not all processes of the job have come within 1 s",
            "ARGONET_START_TIMEOUT",
        ],
    );
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    let silent = started(limit, |_| Some(Some("cmd=response_to_init pmi".into())));
    fails(silent, &["\"init\"", "no answer has come within 1 s"]);
}

#[test]
fn a_wait_ends_when_there_is_no_job_to_wait_for() {
    let waits = |is_over: bool| {
        let (gone, end) = UnixStream::pair().unwrap();
        let (socket, _) = server(Box::new(move |line, store| match line {
            "cmd=barrier_in" => Some(String::new()),
            _ => Some(answer(line, store, [64, 1024])),
        }));
        let watched = Watched {
            fds: vec![end.as_fd()],
            is_over: Box::new(move || is_over),
        };
        let limit = if is_over {
            LONG
        } else {
            Duration::from_secs(1)
        };
        let mut pmi = Pmi::new(client(limit), socket, watched).unwrap();
        drop(gone);
        pmi.fence()
    };
    fails(waits(true), &["a rank of this host has ended"]);
    fails(waits(false), &["not all processes of the job have come"]);

    // After the fence, ranks may get on without this one.
    let (gone, end) = UnixStream::pair().unwrap();
    let (socket, _) = server(Box::new(|line, store| match line {
        "cmd=finalize" => Some(String::new()),
        _ => Some(answer(line, store, [64, 1024])),
    }));
    let watched = Watched {
        fds: vec![end.as_fd()],
        is_over: Box::new(|| true),
    };
    let mut pmi = Pmi::new(client(Duration::from_secs(1)), socket, watched).unwrap();
    pmi.fence().unwrap();
    drop(gone);
    fails(pmi.finish(), &["\"finalize\"", "no answer has come"]);
}

/// hydra's process for the host fails at one that ends while it is answered.
#[test]
fn an_answer_that_is_due_is_taken_before_the_process_ends() {
    let (gone, end) = UnixStream::pair().unwrap();
    let gone = std::sync::Mutex::new(Some(gone));
    let (socket, commands) = server(Box::new(move |line, store| {
        gone.lock().unwrap().take();
        (!line.contains("abort")).then(|| answer(line, store, [64, 1024]))
    }));
    let other = UnixStream::from(socket.try_clone().unwrap());
    let watched = Watched {
        fds: vec![end.as_fd()],
        is_over: Box::new(|| true),
    };
    fails(Pmi::new(client(LONG), socket, watched).map(|_| ()), &[OVER]);
    other.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(commands.iter().any(|line| line.contains("cmd=init")));
    // The server has ended, and nothing that it has said is left.
    let mut left = String::new();
    std::io::Read::read_to_string(&mut &other, &mut left).unwrap();
    assert_eq!(left, "");
}

#[test]
fn an_abort_is_said_to_the_launcher() {
    let act = |line: &str, store: &mut HashMap<String, String>| match line {
        "cmd=abort exitcode=9" => None,
        _ => Some(answer(line, store, [64, 1024])),
    };
    let (socket, commands) = server(Box::new(act));
    let mut pmi = Pmi::new(client(LONG), socket, nothing()).unwrap();
    pmi.abort(9);
    assert!(commands.iter().any(|line| line == "cmd=abort exitcode=9"));
}
