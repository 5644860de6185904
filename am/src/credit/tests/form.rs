//! Tags as bits.

use super::super::*;
use proptest::prelude::*;

// spec P10: the credit byte.
#[test]
fn every_byte_is_a_tag_and_back() {
    for bits in 0..256 {
        let tag = Form::BYTE.unpack(bits).unwrap();
        assert_eq!(Form::BYTE.pack(tag), bits);
        assert_eq!(tag.epoch, bits >= 128);
        assert_eq!(u64::from(tag.extra), bits >> 4 & 7);
        assert_eq!(u64::from(tag.count), bits & 15);
    }
    let refused = Form::BYTE.unpack(256).unwrap_err();
    assert!(refused.to_string().contains("8 bits"), "{refused}");
}

#[test]
fn more_than_the_field_holds_is_asked_for_later() {
    let tag = Tag {
        epoch: true,
        extra: 640,
        count: 4,
    };
    assert_eq!(Form::BYTE.pack(tag), 0b1111_0100);
    assert_eq!(Form::WIDE.unpack(Form::WIDE.pack(tag)), Ok(tag));
}

#[test]
fn costs_are_those_of_the_text() {
    let costs = Costs::OF_TEXT;
    assert_eq!((costs.short(), costs.long()), (1, 2));
    let of = |args, payload| costs.packed(args, payload).unwrap();
    assert_eq!((of(0, 0), of(16, 0), of(0, 256), of(0, 257)), (1, 1, 1, 2));
    assert_eq!((of(0, 1024), of(16, 960)), (4, 4));
    assert!(costs.packed(16, 961).is_err() && costs.packed(usize::MAX, 9).is_err());
    let larger = Costs {
        chunk_bytes: 2048,
        ..costs
    };
    assert_eq!(larger.packed(0, 2048), Ok(8));
    assert_eq!(larger.largest(), 8);
}

proptest! {
    #[test]
    fn tags_survive_fields_of_any_width(
        widths in (1u32..=16, 1u32..=16), epoch: bool, extra: u16, count: u16, bits: u64,
    ) {
        let form = Form::new(widths.0, widths.1).unwrap();
        let tag = Tag { epoch, extra, count: count & form.most_count() };
        let back = form.unpack(form.pack(tag)).unwrap();
        prop_assert_eq!(back, Tag { extra: extra.min(form.most_extra()), ..tag });
        match form.unpack(bits) {
            Ok(tag) => prop_assert_eq!(form.pack(tag), bits),
            Err(_) => prop_assert!(bits >> form.width() != 0),
        }
    }
}
