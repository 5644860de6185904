//! The chain against a model.

use super::*;
use crate::credit::Costs;
use proptest::prelude::*;

fn space(buffers: u32, chunks: u32) -> Space {
    Space {
        buffers,
        chunks,
        costs: Costs::OF_TEXT,
    }
}

// spec P8: unlinked when less than a chunk is left, linked again when all were handled.
#[test]
fn a_buffer_goes_through_its_life() {
    let mut chain = Chain::new(&space(2, 3));
    let first = chain.place(1024).unwrap();
    assert_eq!(
        first,
        (
            Place {
                buffer: 0,
                offset: 0
            },
            false
        )
    );
    let (second, unlinked) = chain.place(1024).unwrap();
    assert!(
        !unlinked && second.offset == 1024,
        "exactly a chunk is left"
    );
    let (third, unlinked) = chain.place(1).unwrap();
    assert!(unlinked && third.buffer == 0, "less than a chunk is left");
    let (other, _) = chain.place(600).unwrap();
    assert_eq!(
        other,
        Place {
            buffer: 1,
            offset: 0
        }
    );
    assert_eq!(chain.waiting(), 4);
    assert_eq!(chain.handled(second), Handled::Kept);
    assert_eq!(chain.waiting(), 3);
    assert_eq!(chain.handled(third), Handled::Kept);
    assert_eq!(chain.handled(other), Handled::Kept, "empty but linked");
    assert_eq!(chain.handled(first.0), Handled::Relinked(0));
    assert_eq!((chain.linked(), chain.waiting()), (2, 0));
    assert_eq!(
        chain.place(5).unwrap().0,
        Place {
            buffer: 1,
            offset: 600
        }
    );
}

#[test]
#[should_panic(expected = "buffer 0 has no request that was not handled")]
fn a_request_is_handled_once() {
    let mut chain = Chain::new(&space(2, 3));
    let (place, _) = chain.place(5).unwrap();
    assert_eq!(chain.handled(place), Handled::Kept);
    chain.handled(place);
}

// spec P8: at every fill level promised requests fit, handled in order.
#[test]
fn promised_requests_fit_at_every_fill_level() {
    for (buffers, chunks) in [(2, 2), (2, 5), (3, 2), (3, 4), (5, 3)] {
        let space = space(buffers, chunks);
        let promised = space.credits();
        for before in 0..promised * 2 {
            for cost in 1..=4u64 {
                let mut chain = Chain::new(&space);
                // Any fill level to begin with: shorts that were handled at once.
                for _ in 0..before {
                    let (place, _) = chain.place(256).unwrap();
                    chain.handled(place);
                }
                let mut waiting = VecDeque::new();
                // As much as credits allow, one always being handled, three times around.
                for n in 0..promised * 6 / cost {
                    if (waiting.len() as u64 + 1) * cost > promised {
                        chain.handled(waiting.pop_front().unwrap());
                    }
                    let placed = chain.place(cost as u32 * 256);
                    assert!(
                        placed.is_ok(),
                        "{buffers} x {chunks}, {before} before, request {n} of {cost} credits"
                    );
                    waiting.push_back(placed.unwrap().0);
                }
            }
        }
    }
}

#[test]
fn the_last_chunk_and_the_last_buffer_cannot_be_promised() {
    // With one credit more than `Space::credits` there is an order of events without room.
    let space = space(3, 2);
    assert_eq!(space.credits(), 8);
    let mut chain = Chain::new(&space);
    let pinned = chain.place(256).unwrap().0;
    let handled: Vec<Place> = (0..4).map(|_| chain.place(256).unwrap().0).collect();
    for place in handled {
        chain.handled(place);
    }
    // 9 credits: 1 is not handled, and 8 of others; the first buffer cannot come back.
    let mut got = 0;
    while chain.place(256).is_ok() {
        got += 1;
    }
    assert!(got >= 8, "{got}");
    let full = chain.place(256).unwrap_err();
    assert!(full.to_string().contains("all 3 are full"), "{full}");
    let _ = pinned;
}

#[test]
fn handlers_that_end_in_any_order_may_leave_no_room() {
    let space = space(4, 4);
    let mut chain = Chain::new(&space);
    let mut slow = Vec::new();
    // One request of every buffer takes long; the others are handled, and their credits used again.
    let full = loop {
        match chain.place(1024) {
            Ok((place, _)) if place.offset == 0 => slow.push(place),
            Ok((place, _)) => {
                chain.handled(place);
            }
            Err(full) => break full,
        }
    };
    assert_eq!((slow.len(), full.waiting), (4, 4));
    assert!(
        4 * 4 <= space.credits(),
        "no more credits were used than there are"
    );
    // Nothing is lost: with the first that ends there is room again.
    assert_eq!(chain.handled(slow[2]), Handled::Relinked(2));
    assert_eq!(
        chain.place(1024).unwrap().0,
        Place {
            buffer: 2,
            offset: 0
        }
    );
}

proptest! {
    #[test]
    fn requests_never_overlap_and_buffers_come_back_once(
        buffers in 1u32..6, chunks in 1u32..5,
        steps in prop::collection::vec((any::<bool>(), 0u32..=1024, any::<prop::sample::Index>()), 1..300),
    ) {
        let mut chain = Chain::new(&space(buffers, chunks));
        let size = chunks * 1024;
        // The contents of each buffer: the requests that were not handled, and how far it is filled
        // since it was linked.
        let mut model: Vec<(u32, Vec<(u32, u32)>)> = vec![(0, Vec::new()); buffers as usize];
        for (place, len, which) in steps {
            if place {
                match chain.place(len) {
                    Ok((place, unlinked)) => {
                        let (filled, requests) = &mut model[place.buffer as usize];
                        prop_assert_eq!(place.offset, *filled, "behind the last one");
                        prop_assert!(place.offset + len <= size);
                        *filled += len;
                        prop_assert_eq!(unlinked, size - *filled < 1024);
                        requests.push((place.offset, len));
                    }
                    Err(full) => {
                        prop_assert!(model.iter().all(|(filled, requests)| size - filled < 1024 && !requests.is_empty()));
                        prop_assert_eq!(full.waiting as usize, model.iter().map(|(_, requests)| requests.len()).sum::<usize>());
                    }
                }
                continue;
            }
            let busy: Vec<usize> = (0..model.len()).filter(|at| !model[*at].1.is_empty()).collect();
            if busy.is_empty() {
                continue;
            }
            let at = busy[which.index(busy.len())];
            let (filled, requests) = &mut model[at];
            let (offset, _) = requests.swap_remove(which.index(requests.len()));
            let back = requests.is_empty() && size - *filled < 1024;
            if back {
                *filled = 0;
            }
            let handled = chain.handled(Place { buffer: at as u32, offset });
            prop_assert_eq!(handled == Handled::Relinked(at as u32), back);
        }
        let free = model.iter().filter(|(filled, _)| size - filled >= 1024).count();
        prop_assert_eq!(chain.linked() as usize, free);
    }
}
