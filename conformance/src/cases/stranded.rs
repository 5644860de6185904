//! Nothing is stranded: messages arrive although their sender does nothing more.

use super::{Case, always};
use crate::bench::{Bench, Want};
use crate::mail::Mail;
use crate::rig::Rig;
use argonet_am::Category;
use argonet_base::JobRank;
use argonet_conduit::{Conduit, SendError};

pub(super) fn cases<R: Rig>() -> Vec<Case<R>> {
    vec![
        always(
            "one_message_without_another_call",
            one_message_without_another_call,
        ),
        always("the_last_of_a_burst", the_last_of_a_burst),
        always("a_reply_without_another_call", a_reply_without_another_call),
        always(
            "a_commit_without_another_call",
            a_commit_without_another_call,
        ),
    ]
}

/// The largest medium that arrives without its sender.
fn largest<R: Rig>(rig: &R) -> usize {
    let bench = Bench::new(rig, Want::ranks(2));
    let limits = bench.at(0).limits();
    let medium = limits.medium_request.min(limits.medium_reply);
    medium.min(bench.promises.alone_bytes)
}

fn one_message_without_another_call<R: Rig>(rig: &R) {
    for mail in [
        Mail::note(0),
        Mail::note(1),
        Mail::note(2).args(16),
        Mail::note(3).medium(8),
        Mail::note(4).medium(largest(rig)),
        Mail::note(5).long(100, 64),
    ] {
        let mut bench = Bench::new(rig, Want::ranks(2).calm());
        let sent = bench.try_send(0, 1, mail);
        assert_eq!(sent, Ok(()), "the first message has room");
        bench.until_among(&[1], "the one message", |bench| bench.all_here());
        bench.quiet_among(&[1]);
        bench.compare();
    }
}

/// Where the conduit delivers accepted messages in any case, the sender never polls and only tries
/// again when there is no room; elsewhere it polls until all but the last have arrived.
fn the_last_of_a_burst<R: Rig>(rig: &R) {
    const COUNT: u32 = 1000;
    for cramped in [false, true] {
        let want = Want::ranks(2).calm();
        let mut bench = Bench::new(rig, if cramped { want.cramped() } else { want });
        let alone = bench.promises.alone_bytes == usize::MAX;
        let max = bench.at(0).limits().medium_request as u32;
        for tag in 0..COUNT {
            let mail = match tag % 3 {
                0 => Mail::note(tag),
                1 => Mail::note(tag).medium((tag % max) as usize),
                _ => Mail::note(tag).long(32, 64 * u64::from(tag)),
            };
            if tag + 1 == COUNT && !alone {
                bench.account();
            }
            let who: &[u32] = if alone { &[1] } else { &[0, 1] };
            bench.until_among(who, "room", |bench| match bench.try_send(0, 1, mail) {
                Ok(()) => true,
                Err(SendError::Full) => false,
                Err(error) => bench.fail(&error.to_string()),
            });
        }
        bench.until_among(&[1], "the last of a burst", |bench| bench.all_here());
        bench.compare();
    }
}

/// The replier does nothing more after the poll in which it has replied.
fn a_reply_without_another_call<R: Rig>(rig: &R) {
    let long = rig.promises().alone_bytes.min(1000);
    for (category, len) in [
        (Category::Short, 0),
        (Category::Medium, 8),
        (Category::Medium, largest(rig)),
        (Category::Long, long),
    ] {
        let mut bench = Bench::new(rig, Want::ranks(2).calm());
        let sent = bench.try_send(0, 1, Mail::note(1).asks(category, 3, len, 64));
        assert_eq!(sent, Ok(()), "the first message has room");
        bench.until_among(&[1], "the request", |bench| bench.logs[1].count() == 1);
        bench.until_among(&[0], "the reply", |bench| bench.all_here());
        bench.compare();
    }
}

/// A negotiated payload, after one that was canceled.
fn a_commit_without_another_call<R: Rig>(rig: &R) {
    let mut bench = Bench::new(rig, Want::ranks(2).calm());
    let want = argonet_conduit::PrepareRequest {
        to: JobRank(1),
        class: argonet_am::MessageClass::Request,
        nargs: 1,
        least: 0,
        most: 100,
        offset: None,
    };
    let prepare = |bench: &Bench<R>| match bench.at(0).prepare(&want) {
        Ok(prepared) => prepared,
        Err(error) => bench.fail(&format!("the first has room: {error}")),
    };
    bench.at(0).cancel(prepare(&bench));
    let prepared = prepare(&bench);
    let mail = Mail::note(7).medium(0);
    bench
        .at(0)
        .commit(prepared, crate::log::NOTE, &mail.arguments(), 0);
    bench.owe(0, 1, mail);
    bench.until_among(&[1], "the negotiated one", |bench| bench.all_here());
    bench.quiet_among(&[1]);
    bench.compare();
}
