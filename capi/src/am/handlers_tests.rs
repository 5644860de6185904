use super::*;
use core::ptr::null;

use crate::am::entry::{REPLY, REQUEST};

unsafe extern "C" fn nothing() {}

fn entry(index: u8) -> Entry {
    Entry {
        index,
        function: Some(nothing),
        flags: SHORT | REQUEST,
        nargs: 0,
        cdata: null(),
        name: c"h".as_ptr(),
    }
}

fn indices(table: &[Entry]) -> Vec<u8> {
    table.iter().map(|entry| entry.index).collect()
}

fn bad(handlers: &Handlers, table: &mut [Entry]) -> String {
    match handlers.add(table) {
        Err(Refusal::Bad(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_index_is_the_highest_that_no_fixed_one_of_the_call_takes() {
    let handlers = Handlers::default();
    let mut table = [entry(0), entry(255), entry(0), entry(128), entry(253)];
    handlers.add(&mut table).unwrap();
    assert_eq!(indices(&table), [254, 255, 252, 128, 253]);
    let mut more = [entry(0)];
    handlers.add(&mut more).unwrap();
    assert_eq!(indices(&more), [251]);
    assert!(handlers.entry(251).is_some() && handlers.entry(250).is_none());
    assert!(handlers.entry(127).is_none());
}

#[test]
fn entries_are_copied_and_copies_do_not_move() {
    let handlers = Handlers::default();
    let mut table = [entry(0)];
    handlers.add(&mut table).unwrap();
    let kept = handlers.entry(255).unwrap();
    assert!(!std::ptr::eq(kept, &raw const table[0]));
    assert_eq!(
        (kept.index, kept.flags, kept.name),
        (255, table[0].flags, table[0].name)
    );
    handlers.add(&mut [entry(0)]).unwrap();
    assert!(std::ptr::eq(kept, handlers.entry(255).unwrap()));
}

#[test]
fn a_bad_table_registers_nothing_and_stays_as_it_is() {
    let handlers = Handlers::default();
    handlers.add(&mut [entry(200)]).unwrap();
    let mut table = [entry(0), entry(201), entry(200)];
    assert!(bad(&handlers, &mut table).contains("entry 2 (\"h\") asks for index 200"));
    assert_eq!(indices(&table), [0, 201, 200]);
    assert!(handlers.entry(201).is_none() && handlers.entry(255).is_none());
    assert!(bad(&handlers, &mut [entry(201), entry(201)]).contains("taken"));
}

#[test]
fn invalid_entries_are_refused() {
    let handlers = Handlers::default();
    let with = |flags, nargs| Entry {
        flags,
        nargs,
        ..entry(0)
    };
    for flags in [
        0,
        SHORT,
        REQUEST,
        SHORT | MEDIUM | REQUEST,
        SHORT | LONG | REPLY,
        0x20 | SHORT | REQUEST,
    ] {
        assert!(
            bad(&handlers, &mut [with(flags, 0)]).contains("flags"),
            "{flags:#x}"
        );
    }
    for flags in [SHORT | REPLY, MEDIUM | LONG | KINDS, LONG | REQUEST] {
        handlers.add(&mut [with(flags, 16)]).unwrap();
    }
    assert!(bad(&handlers, &mut [with(SHORT | REQUEST, 17)]).contains("17 arguments"));
    assert!(bad(&handlers, &mut [entry(127)]).contains("index 127"));
    assert!(
        bad(
            &handlers,
            &mut [Entry {
                function: None,
                ..entry(0)
            }]
        )
        .contains("no function")
    );
}

#[test]
fn the_129th_finds_no_index() {
    let handlers = Handlers::default();
    let mut table = vec![entry(0); COUNT + 1];
    assert!(
        matches!(handlers.add(&mut table), Err(Refusal::Full(why)) if why.contains("entry 128"))
    );
    assert!(handlers.entry(255).is_none());
    handlers.add(&mut table[..COUNT]).unwrap();
    assert!(matches!(
        handlers.add(&mut [entry(0)]),
        Err(Refusal::Full(_))
    ));
    assert!(bad(&handlers, &mut [entry(200)]).contains("taken"));
}
