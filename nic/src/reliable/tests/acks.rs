//! When acknowledgements leave.

use super::{CONFIG, FROM, TO, endpoint};
use crate::reliable::{Channel, Endpoint, ReliableConfig};
use core::time::Duration;

const NOW: Duration = Duration::ZERO;

/// Gives a record of rank 0 to rank 1.
fn pass(from: &mut Endpoint, to: &mut Endpoint, is_accepted: bool) {
    from.submit(NOW, TO, Channel::Command, 100, |place| place.fill(7))
        .unwrap();
    let mut bytes = from.poll_transmit(NOW).unwrap().bytes.to_vec();
    to.handle_recv(NOW, &mut bytes, |_, _| is_accepted).unwrap();
}

/// spec U6: the driver delivers first, and what it answers acknowledges.
#[test]
fn acknowledgements_wait_for_an_answer_where_the_driver_says_so() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    for _ in 0..2 {
        pass(&mut from, &mut to, true);
        assert_eq!(to.poll_transmit_prompt(NOW), None);
    }
    assert!(to.owes());
    to.submit(NOW, FROM, Channel::Command, 8, |_| {}).unwrap();
    let mut answer = to.poll_transmit_prompt(NOW).unwrap().bytes.to_vec();
    assert_eq!(to.poll_transmit(NOW), None, "the answer acknowledges");
    assert_eq!((to.owes(), to.counts().acknowledgements), (false, 0));
    from.handle_recv(NOW, &mut answer, |_, _| true).unwrap();
    // Without an answer it leaves as soon as the driver lets it.
    for _ in 0..2 {
        pass(&mut from, &mut to, true);
    }
    assert_eq!(to.poll_transmit_prompt(NOW), None);
    let mut ack = to.poll_transmit(NOW).unwrap().bytes.to_vec();
    assert_eq!((to.owes(), to.counts().acknowledgements), (false, 1));
    from.handle_recv(NOW, &mut ack, |_, _| true).unwrap();
}

/// What waits to be taken is no gap: one acknowledgement for two records, as for those that are
/// taken at once.
#[test]
fn records_that_wait_to_be_taken_are_acknowledged_by_twos() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    for _ in 0..8 {
        pass(&mut from, &mut to, false);
        assert_eq!(to.poll_transmit(NOW), None);
    }
    for taken in 1..=8 {
        let record = to.take(NOW, FROM, Channel::Command).unwrap();
        to.recycle(record);
        let ack = to.poll_transmit(NOW);
        assert_eq!(ack.is_some(), taken % 2 == 0, "{taken}");
        if let Some(ack) = ack {
            let mut bytes = ack.bytes.to_vec();
            from.handle_recv(NOW, &mut bytes, |_, _| true).unwrap();
        }
    }
    assert!(from.is_drained());
}

/// RFC 5681, 4.2: at once.
#[test]
fn a_gap_is_acknowledged_at_once() {
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(CONFIG, rank, 2, None));
    let mut sent = Vec::new();
    for _ in 0..3 {
        from.submit(NOW, TO, Channel::Command, 100, |_| {}).unwrap();
        sent.push(from.poll_transmit(NOW).unwrap().bytes.to_vec());
    }
    to.handle_recv(NOW, &mut sent[1], |_, _| true).unwrap();
    assert!(to.poll_transmit(NOW).is_some(), "the first is missing");
    to.handle_recv(NOW, &mut sent[0], |_, _| true).unwrap();
    let record = to.take(NOW, FROM, Channel::Command).unwrap();
    to.recycle(record);
    assert!(to.poll_transmit(NOW).is_some(), "it is not any more");
}

/// A trial of a longer datagram is lost where the path takes none.
#[test]
fn no_acknowledgement_rides_on_a_trial() {
    let config = ReliableConfig {
        longer_datagrams: &[1400],
        ..CONFIG
    };
    let [mut from, mut to] = [0, 1].map(|rank| endpoint(config, rank, 2, None));
    // A record of full length gives a reason to look for longer ones.
    let full = to.record_bytes();
    to.submit(NOW, FROM, Channel::Data, full, |_| {}).unwrap();
    let mut trials = 0;
    let mut records = Vec::new();
    while let Some(transmit) = to.poll_transmit(NOW) {
        match transmit.is_trial {
            true => trials += 1,
            false => records.push(transmit.bytes.to_vec()),
        }
    }
    assert_eq!((trials, records.len()), (1, 1));
    from.handle_recv(NOW, &mut records[0], |_, _| true).unwrap();
    from.flush();
    let mut ack = from.poll_transmit(NOW).unwrap().bytes.to_vec();
    to.handle_recv(NOW, &mut ack, |_, _| true).unwrap();
    // The next one is due, and so is an acknowledgement.
    let later = to.poll_timeout().expect("it tries again");
    to.handle_timeout(later);
    for _ in 0..2 {
        pass(&mut from, &mut to, true);
    }
    assert!(to.poll_transmit(later).unwrap().is_trial);
    let next = to
        .poll_transmit(later)
        .expect("the acknowledgement follows");
    assert!(!next.is_trial);
    assert_eq!(to.counts().acknowledgements, 1);
}
