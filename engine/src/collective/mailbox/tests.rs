//! Lengths that differ, and messages that no member can send.

use super::*;
use crate::collective::call::Call;

fn header(form: Form, len: u64) -> Header {
    let team = Team::world(JobRank(1), 2);
    let label = Call::of(Kind::Gather).label();
    let (number, from, to, tag, at) = (0, 1, 0, 0, 0);
    Header {
        key: team.key,
        number,
        from,
        to,
        tag,
        form,
        label,
        at,
        len,
    }
}

const SLOT: Slot = Slot {
    number: 0,
    from: 1,
    tag: 0,
    answer: false,
};

/// A mailbox whose member has called once.
fn mailbox() -> Mailbox {
    let mut mailbox = Mailbox::default();
    mailbox.open(&Arc::new(Team::world(JobRank(0), 2)));
    let label = Call::of(Kind::Gather).label();
    assert_eq!(mailbox.call(JobRank(0), label, false), Ok(0));
    mailbox
}

/// Labels can be equal while lengths differ, if settings of the ranks differ.
#[test]
fn another_length_is_reported_in_either_order() {
    let bytes = [1; 9];
    for len in [7, 9] {
        for (form, payload) in [
            (Form::Offer, 0),
            (Form::OfferSegment, 0),
            (Form::Whole, len),
        ] {
            let mut into = [0; 8];
            let header = header(form, len as u64);
            let arrive = |mailbox: &mut Mailbox| {
                let payload = SharedBytes::from_slice(&bytes[..payload]);
                mailbox.arrive(JobRank(1), &header, payload)
            };
            let mut post =
                |mailbox: &mut Mailbox| mailbox.post(SLOT, Place(into.as_mut_ptr()), into.len());
            let mut early = mailbox();
            arrive(&mut early).unwrap();
            let error = post(&mut early).unwrap_err();
            let part = format!("member 1 of a team sent {len} bytes");
            assert!(error.contains(&part), "{error}");
            let mut late = mailbox();
            assert_eq!(post(&mut late), Ok(Coming::Waits));
            let error = match form {
                Form::Whole => arrive(&mut late),
                _ => arrive(&mut late).and_then(|()| late.look(SLOT).map(drop)),
            };
            let error = error.unwrap_err();
            assert!(error.contains(&part), "{error}");
        }
    }
}

/// A call that is given up, as a member is lost, has no memory any more.
#[test]
fn what_comes_for_calls_that_are_given_up_goes_nowhere() {
    let bytes = [1; 8];
    let mut into = [0; 8];
    let mut mailbox = mailbox();
    let posted = mailbox.post(SLOT, Place(into.as_mut_ptr()), into.len());
    assert_eq!(posted, Ok(Coming::Waits));
    mailbox.give_up();
    assert!(mailbox.is_idle());
    for form in [Form::Whole, Form::Piece, Form::Offer, Form::Question] {
        let payload = SharedBytes::from_slice(&bytes);
        let arrived = mailbox.arrive(JobRank(1), &header(form, 8), payload);
        assert_eq!(arrived, Ok(()), "{form:?}");
    }
    assert_eq!((mailbox.kept(), into), (0, [0; 8]));
}
