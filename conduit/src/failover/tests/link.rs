//! What passes over a link, whatever its rail takes and gives at a time.

use super::super::link::{Heard, Link, Read};
use super::super::record::{self, HEAD, LONGEST_RUN};
use super::pipe::{Chance, Pipe};
use crate::channel::AnyRail;
use crate::channel::Pieces;
use crate::channel::rail::Rail;
use std::io;

/// Room of the rail: less than the longest run.
const ROOM: usize = 4000;

const UNTOUCHED: u8 = 0xee;

fn links(lasts: bool, chance: Option<Chance>) -> ([Link; 2], [Pipe; 2]) {
    let pipes = Pipe::pair(ROOM, chance);
    let links = pipes
        .each_ref()
        .map(|pipe| Link::new(0, AnyRail::new(pipe.clone()), None, lasts, 1));
    (links, pipes)
}

fn write(link: &Link, generation: u64, bytes: &[u8], chance: &Chance) -> io::Result<usize> {
    let mut pieces = Pieces::new();
    let mut rest = bytes;
    for _ in 0..chance.below(5) {
        let (piece, behind) = rest.split_at(chance.below(rest.len()));
        pieces.add(piece.as_ptr().cast_mut(), piece.len());
        rest = behind;
    }
    pieces.add(rest.as_ptr().cast_mut(), rest.len());
    // SAFETY: the bytes outlive the call.
    unsafe { link.write_stream(generation, &pieces) }
}

/// Reads to places for at most `most` bytes; what was found, and the bytes.
fn read(link: &Link, generation: u64, most: usize) -> (Read, Vec<u8>) {
    let mut room = vec![UNTOUCHED; most + 64];
    let mut pieces = Pieces::new();
    let (first, second) = room[..most].split_at_mut(most / 3);
    pieces.add(first.as_mut_ptr(), first.len());
    pieces.add(second.as_mut_ptr(), second.len());
    // SAFETY: the room outlives the call.
    let found = unsafe { link.read_stream(generation, &pieces) };
    let count = match found {
        Read::Bytes(bytes) => bytes,
        _ => 0,
    };
    assert!(count <= most);
    let beyond = room.split_off(count);
    assert!(
        beyond.iter().all(|byte| *byte == UNTOUCHED),
        "no byte is written beyond those that were read"
    );
    (found, room)
}

fn is_later(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Bytes of a generation's stream, none of which says nothing.
fn bytes_of(generation: u64, from: usize, count: usize) -> Vec<u8> {
    let byte = |at: usize| (generation as usize * 97 + at * 31 % 251 + at / 251) as u8;
    (from..from + count)
        .map(byte)
        .map(|byte| if byte == UNTOUCHED { 1 } else { byte })
        .collect()
}

/// One rank writes generation after generation; the other one takes some, and in others is still in
/// the generation before, or takes no stream.
fn run(seed: u64) {
    let chance = Chance::new(seed);
    let ([writer, reader], [pipe, _]) = links(true, Some(chance.clone()));
    let mut taken_in = 0;
    for generation in 1..=6 {
        let mut written = 0;
        let mut got = Vec::new();
        let reads = |got: &mut Vec<u8>| match taken_in {
            0 => reader.read_offer(),
            _ => {
                let (found, bytes) = read(&reader, taken_in, 1 + chance.below(3 * ROOM));
                got.extend(bytes);
                found
            }
        };
        for _ in 0..chance.below(40) {
            let count = 1 + chance.below(2 * LONGEST_RUN);
            let bytes = bytes_of(generation, written, count);
            match write(&writer, generation, &bytes, &chance) {
                Ok(bytes) => written += bytes,
                Err(error) => assert!(is_later(&error)),
            }
            for _ in 0..chance.below(8) {
                assert!(matches!(reads(&mut got), Read::Bytes(_) | Read::Nothing));
            }
        }
        // The generation ends in the middle of anything.
        let heard = Heard {
            generation: generation + 1,
            received: written as u64,
        };
        writer
            .offer(heard.generation, heard.received)
            .expect("it lives");
        loop {
            writer.push().expect("it lives");
            match reads(&mut got) {
                Read::Offer(found) => {
                    assert_eq!(found, heard);
                    break;
                }
                found => assert!(matches!(found, Read::Bytes(_) | Read::Nothing)),
            }
        }
        // Nothing more before it was heard.
        assert_eq!(reads(&mut got), Read::Nothing);
        reader.go_on();
        let all = if taken_in == generation { written } else { 0 };
        assert_eq!(got.len(), all, "generation {generation}, seed {seed}");
        assert!(got == bytes_of(generation, 0, all), "seed {seed}");
        if chance.below(4) < 3 {
            reader.end_stream(taken_in);
            taken_in = generation + 1;
            reader.begin_stream(taken_in);
        }
    }
    reader.end_stream(taken_in);
    while !writer.push().expect("it lives") {
        let _ = reader.read_offer();
    }
    assert!(!writer.has_unsent());
    while pipe.unread() > 0 {
        assert_eq!(reader.read_offer(), Read::Nothing);
    }
}

#[test]
fn each_generation_gets_its_own_bytes_in_order_and_whole() {
    (0..60).for_each(run);
}

#[test]
fn offers_and_then_the_stream_pass_over_a_rail_that_ends_with_it() {
    for seed in 0..60 {
        let chance = Chance::new(seed);
        let ([here, there], _) = links(false, Some(chance.clone()));
        here.offer(5, 77).expect("it lives");
        let found = loop {
            here.push().expect("it lives");
            match there.read_offer() {
                Read::Nothing => {}
                found => break found,
            }
        };
        let (generation, received) = (5, 77);
        assert_eq!(
            found,
            Read::Offer(Heard {
                generation,
                received
            })
        );
        assert_eq!(there.read_offer(), Read::Nothing);
        there.offer(5, 99).expect("it lives");
        there.begin_stream(5);
        there.go_on();
        assert!(
            there.offer(6, 99).is_err(),
            "it would be read as the stream"
        );
        let bytes = bytes_of(5, 0, 3000);
        let (mut written, mut got, mut answer) = (0, Vec::new(), None);
        while got.len() < bytes.len() {
            if written < bytes.len() {
                // Also while the answer is written in part.
                match write(&there, 5, &bytes[written..], &chance) {
                    Ok(count) => written += count,
                    Err(error) => assert!(is_later(&error)),
                }
            }
            if answer.is_none() {
                match here.read_offer() {
                    Read::Offer(heard) => {
                        answer = Some(heard);
                        here.begin_stream(5);
                        here.go_on();
                    }
                    found => assert_eq!(found, Read::Nothing, "seed {seed}"),
                }
            } else {
                let (found, read) = read(&here, 5, 1 + chance.below(500));
                assert!(matches!(found, Read::Bytes(_) | Read::Nothing));
                got.extend(read);
            }
        }
        let (generation, received) = (5, 99);
        assert_eq!(
            answer,
            Some(Heard {
                generation,
                received
            })
        );
        assert!(got == bytes, "seed {seed}");
    }
}

/// What a link finds that reads these bytes and then the end.
fn found_in(lasts: bool, bytes: &[u8]) -> Vec<Read> {
    let ([here, _], [_, pipe]) = links(lasts, None);
    let mut pieces = Pieces::new();
    pieces.add(bytes.as_ptr().cast_mut(), bytes.len());
    // SAFETY: the bytes outlive the call.
    let written = unsafe { pipe.write(&pieces) };
    assert!(bytes.is_empty() || written.is_ok_and(|written| written == bytes.len()));
    pipe.shut();
    let mut all = Vec::new();
    while all.last() != Some(&Read::End) {
        all.push(here.read_offer());
        here.go_on();
        assert!(all.len() < 100, "it finds an end");
    }
    all
}

#[test]
fn what_is_no_record_ends_a_link() {
    let offer = record::offer(3, 9);
    let (generation, received) = (3, 9);
    let heard = Read::Offer(Heard {
        generation,
        received,
    });
    for lasts in [false, true] {
        assert_eq!(found_in(lasts, &offer), [heard, Read::End]);
        for cut in 0..offer.len() {
            assert_eq!(found_in(lasts, &offer[..cut]), [Read::End]);
        }
        for at in 0..HEAD {
            for bit in 0..8 {
                let mut other = offer.to_vec();
                other[at] ^= 1 << bit;
                other.extend(offer);
                let found = found_in(lasts, &other);
                assert_eq!(found[0], Read::End, "byte {at}, bit {bit}");
            }
        }
    }
    let mut run = record::run(3, 2).to_vec();
    run.extend([1, 2]);
    run.extend(offer);
    assert_eq!(found_in(true, &run), [heard, Read::End]);
    assert_eq!(
        found_in(false, &run),
        [Read::End],
        "it carries the stream alone"
    );
    for len in [0, LONGEST_RUN + 1] {
        assert_eq!(found_in(true, &record::run(3, len)), [Read::End]);
    }
}

#[test]
fn a_peer_that_takes_nothing_costs_little() {
    let ([here, _], _) = links(true, None);
    let offers = (1..1_000_000).find(|generation| here.offer(*generation, 0).is_err());
    let offers = offers.expect("an end") as usize;
    assert!(offers * record::OFFER < ROOM + 3 * LONGEST_RUN, "{offers}");
}

#[test]
fn bytes_of_no_use_do_not_hold_up_a_rank() {
    let [pipe, end] = Pipe::pair(1 << 20, None);
    let here = Link::new(0, AnyRail::new(end), None, true, 1);
    let mut bytes = Vec::new();
    for _ in 0..40 {
        bytes.extend(record::run(9, LONGEST_RUN));
        bytes.extend([7; LONGEST_RUN]);
    }
    bytes.extend(record::offer(1, 2));
    let mut pieces = Pieces::new();
    pieces.add(bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the bytes outlive the call.
    let written = unsafe { pipe.write(&pieces) };
    assert_eq!(written.expect("there is room"), bytes.len());
    assert_eq!(here.read_offer(), Read::Nothing);
    assert!(pipe.unread() > bytes.len() / 2, "it goes on the next time");
    let mut found = (0..9).map(|_| here.read_offer());
    let (generation, received) = (1, 2);
    let offer = Read::Offer(Heard {
        generation,
        received,
    });
    assert!(found.any(|found| found == offer));
}
