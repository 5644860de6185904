//! Messages that a rank keeps for teams that it has not opened.

use super::*;
use crate::collective::call::{Call, Kind};
use crate::collective::wire::Form;
use argonet_am::MAX_MEDIUM;

const SENDER: JobRank = JobRank(5);

fn header(key: u64, tag: u32) -> Header {
    Header {
        key: TeamKey(key),
        number: 0,
        from: 1,
        to: 0,
        tag,
        form: Form::Whole,
        label: Call::of(Kind::Gather).label(),
        at: 0,
        len: 0,
    }
}

#[test]
fn messages_of_unopened_teams_take_bounded_memory() {
    let collectives = Collectives::default();
    let bytes = vec![7; MAX_MEDIUM];
    // Several teams, none of which has too many messages of its own.
    let mut taken = 0;
    let refused = (0..u64::MAX).find_map(|at| {
        let header = header(9 + at % 8, (at / 8) as u32);
        let outcome = collectives.take(SENDER, &header, SharedBytes::from_slice(&bytes));
        taken += bytes.len();
        assert!(taken <= MOST_UNOPENED_BYTES + MAX_MEDIUM, "no end");
        outcome.err()
    });
    let refused = refused.expect("an end");
    for part in ["rank 5", "0x", "not opened", "ARGONET_COLL_EAGER_SIZE"] {
        assert!(refused.contains(part), "no \"{part}\" in \"{refused}\"");
    }
    assert!(taken > MOST_UNOPENED_BYTES / 2, "{taken}");
}

#[test]
fn an_opened_team_gives_its_bytes_back() {
    let collectives = Collectives::default();
    let bytes = vec![7; MAX_MEDIUM];
    for tag in 0..4 {
        let payload = SharedBytes::from_slice(&bytes);
        collectives.take(SENDER, &header(9, tag), payload).unwrap();
        let question = Header {
            form: Form::Question,
            ..header(9, tag)
        };
        let nothing = SharedBytes::from_slice(&[]);
        collectives.take(SENDER, &question, nothing).unwrap();
    }
    assert!(collectives.early_bytes.load(Ordering::Relaxed) >= 4 * bytes.len());
    let members = Members::new(&[(JobRank(0), 0), (SENDER, 0)]).unwrap();
    let team = Arc::new(Team::new(TeamKey(9), Arc::new(members), 0));
    collectives.open(&team, Hoods::one(2));
    assert_eq!(collectives.early_bytes.load(Ordering::Relaxed), 0);
    let payload = SharedBytes::from_slice(&bytes);
    collectives.take(SENDER, &header(9, 77), payload).unwrap();
    assert_eq!(collectives.early_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn a_team_too_many_is_refused() {
    let collectives = Collectives::default();
    let nothing = || SharedBytes::from_slice(&[]);
    for key in 0..MOST_UNOPENED as u64 {
        collectives
            .take(SENDER, &header(9 + key, 0), nothing())
            .unwrap();
    }
    let refused = collectives
        .take(SENDER, &header(5, 0), nothing())
        .unwrap_err();
    assert!(
        refused.contains("rank 5") && refused.contains("1024"),
        "{refused}"
    );
}
