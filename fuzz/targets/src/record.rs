//! A record as it lies in a ring: unpacked, checked, and packed again.

use argonet_am::record::{
    Head, Kind, Medium, Packed, Scratch, UNIT, header_units, pack, record_units, unpack,
};
use argonet_am::{Category, MAX_CARRIED, MAX_MEDIUM};

/// Units that the longest input stands for.
const LONGEST: usize = 64;

pub(crate) fn run(data: &[u8]) {
    let (available, data) = match data {
        [low, high, rest @ ..] => (u32::from(u16::from_le_bytes([*low, *high])), rest),
        _ => return,
    };
    let words: Vec<u64> = data
        .chunks(8)
        .take(LONGEST * 2)
        .map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        })
        .collect();
    let word = |i: usize| words.get(i).copied().unwrap_or(0);
    let head = Head(word(0));
    let Ok(Kind::Message(category)) = head.kind() else {
        return;
    };
    let mut scratch = Scratch::default();
    let got = unpack(head, category, available, &mut scratch, |i| {
        assert!(i < available as usize * 2, "a word beyond the ring");
        word(i)
    });
    let short_cut = Medium::check(head, word(1), available);
    let Ok(got) = got else {
        assert!(short_cut.is_none(), "only the short cut takes this record");
        return;
    };
    let args = got.args(&scratch);
    assert!(args.len() == head.nargs() && args.len() <= MAX_CARRIED);
    assert!(head.units() <= available && got.header_units <= head.units());
    assert_eq!(
        got.header_units as usize,
        header_units(category, args.len())
    );
    if category == Category::Medium {
        assert!(got.payload <= MAX_MEDIUM as u64);
        let room = (head.units() - got.header_units) as usize * UNIT;
        assert!(got.payload as usize <= room, "a payload beyond its record");
        assert!(record_units(category, args.len(), got.payload as usize) <= head.units());
    }
    if let Some(medium) = short_cut {
        assert_eq!(medium.len() as u64, got.payload);
        assert_eq!(&medium.args()[..args.len()], args);
    }
    if args.is_empty() && head.arg0() != 0 {
        // Argument 0 has its place whether it is used or not; a sender leaves it zero.
        return;
    }
    let Packed { words: again, .. } = pack(
        category,
        head.handler(),
        args,
        got.payload,
        got.offset,
        head.units(),
    );
    assert_eq!(again[0], head.0, "the first word");
    let mut second = Scratch::default();
    let same = unpack(head, category, available, &mut second, |i| again[i]).unwrap();
    assert_eq!(same.args(&second), args);
    assert_eq!((same.payload, same.offset), (got.payload, got.offset));
}
