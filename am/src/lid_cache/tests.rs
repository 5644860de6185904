//! Halves in every order.

use super::*;
use proptest::prelude::*;

// spec P7: either half may come first.
#[test]
fn the_second_half_returns_both() {
    let mut cache = LidCache::new(4, 4);
    assert_eq!(cache.header(1, 9, 'h'), Ok(None));
    assert_eq!(cache.data(2, 9, 'x'), Ok(None), "another source");
    assert_eq!(cache.data(1, 8, 'y'), Ok(None), "another long");
    assert!(!cache.is_empty());
    assert_eq!(cache.data(1, 9, 'd'), Ok(Some(('h', 'd'))));
    assert_eq!(cache.header(1, 8, 'i'), Ok(Some(('i', 'y'))));
    assert_eq!(cache.header(2, 9, 'j'), Ok(Some(('j', 'x'))));
    assert!(cache.is_empty());
}

#[test]
fn limits_are_kept_and_nothing_is_lost_by_them() {
    let mut cache = LidCache::new(3, 2);
    cache.header(1, 1, ()).unwrap();
    cache.data(1, 2, ()).unwrap();
    let rooms = [(1, 1), (1, 3), (2, 3)].map(|(source, lid)| cache.has_room(source, lid));
    assert_eq!(rooms, [true, false, true]);
    let refused = cache.header(1, 3, ()).unwrap_err();
    assert!(
        matches!(
            refused,
            LidError::Full {
                kept: 2,
                most: 2,
                ..
            }
        ),
        "{refused}"
    );
    cache.header(2, 1, ()).unwrap();
    assert!(!cache.has_room(3, 1));
    assert!(cache.header(3, 1, ()).is_err());
    // Data cannot be pushed back.
    (1..4).for_each(|lid| _ = cache.data(3, lid, ()).unwrap());
    let refused = cache.data(4, 1, ()).unwrap_err();
    assert!(
        refused.to_string().contains("from rank 4: 6 halves"),
        "{refused}"
    );
    assert_eq!(cache.forget(3), 3);
    // A second half is always taken.
    assert!(cache.data(1, 1, ()).unwrap().is_some());
    let twice = cache.data(1, 2, ()).unwrap_err();
    assert!(
        matches!(twice, LidError::Twice { half: "data", .. }),
        "{twice}"
    );
    assert!(
        cache.header(1, 2, ()).unwrap().is_some(),
        "the first was kept"
    );
}

// spec P7: a lost peer leaves nothing.
#[test]
fn halves_of_a_lost_peer_go() {
    let mut cache: LidCache<u8, u8> = LidCache::new(10, 10);
    for lid in 0..3 {
        cache.header(5, lid, 0).unwrap();
        cache.data(6, lid, 0).unwrap();
    }
    assert_eq!((cache.forget(5), cache.of(5), cache.of(6)), (3, 0, 3));
    assert_eq!(cache.forget(5), 0);
    assert_eq!(cache.data(5, 0, 1), Ok(None), "its successor begins anew");
    assert_eq!(cache.peak(), 6);
}

#[test]
fn numbers_begin_again_when_the_field_is_full() {
    let mut lids = Lids::new(16).unwrap();
    let drawn: Vec<u32> = (0..65_537).map(|_| lids.draw()).collect();
    assert_eq!((drawn[0], drawn[65_535], drawn[65_536]), (0, 65_535, 0));
    assert!(Lids::new(15).is_none() && Lids::new(33).is_none());
    let mut lids = Lids::new(32).unwrap();
    lids.next = u32::MAX;
    assert_eq!((lids.draw(), lids.draw()), (u32::MAX, 0));
}

proptest! {
    #[test]
    fn every_order_of_halves_gives_every_long_once(
        longs in prop::collection::vec((0u32..4, any::<u64>(), any::<bool>()), 1..60),
        order in any::<u64>(),
        lost in prop::option::of(0u32..4),
    ) {
        // Each long is numbered by its place; its halves come in an order drawn from the numbers.
        let mut halves: Vec<(u64, usize, bool)> = longs.iter().enumerate()
            .flat_map(|(at, (_, draw, first))| {
                let mix = |n: u64| (n ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
                [(mix(*draw), at, *first), (mix(draw.wrapping_add(1)), at, !*first)]
            })
            .collect();
        halves.sort_unstable();
        let mut cache = LidCache::new(longs.len(), longs.len());
        let mut lids: Vec<Lids> = (0..4).map(|_| Lids::new(16).unwrap()).collect();
        let lids: Vec<u32> = longs.iter().map(|(source, ..)| lids[*source as usize].draw()).collect();
        let mut run = vec![0; longs.len()];
        for (_, at, is_header) in halves {
            let source = longs[at].0;
            let both = if is_header { cache.header(source, lids[at], at) } else { cache.data(source, lids[at], at) };
            if let Some((header, data)) = both.unwrap() {
                prop_assert_eq!((header, data), (at, at));
                run[at] += 1;
            }
        }
        prop_assert!(run.iter().all(|times| *times == 1) && cache.is_empty());
        if let Some(lost) = lost {
            for (at, (source, ..)) in longs.iter().enumerate() {
                cache.header(*source, lids[at], at).unwrap();
            }
            let of = longs.iter().filter(|(source, ..)| *source == lost).count();
            prop_assert_eq!(cache.forget(lost), of);
            prop_assert_eq!(cache.len(), longs.len() - of);
        }
    }
}
