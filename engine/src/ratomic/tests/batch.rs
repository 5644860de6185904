//! Batches of operations.

use super::*;
use crate::bound::Args;
use crate::bound::tests::rig::{FORGE, context};
use crate::{AtomicBatch, DataType, Engine, Injection, ThreadCtx, internal};
use argonet_am::{Message, Payload};
use argonet_conduit::smp::Smp;
use argonet_segment::SharedBytes;
use proptest::prelude::*;

const WORDS: u64 = 16;

/// Sends a batch to rank 1 and waits for its values.
fn run<T: AtomicWord>(engine: &Engine<Smp>, ctx: &ThreadCtx, batch: &AtomicBatch<T>) -> Vec<u64> {
    let mut values = vec![u64::MAX; batch.values()];
    // SAFETY: the values are there until the event is complete.
    unsafe {
        let (to, at) = (JobRank(1), values.as_mut_ptr());
        let event = engine.atomic_batch_start(ctx, to, batch, at, Injection::Blocking);
        engine.wait(ctx, event.unwrap()).unwrap();
    }
    values
}

fn agrees_with_single_operations<T: AtomicWord>(seeds: &[(usize, u64, u64, u64)]) {
    let rig = Rig::pair(64);
    let operations: Vec<_> = operations_of::<T>().collect();
    rig.served(|engine, ctx| {
        let mut batch = engine.atomic_batch::<T>();
        assert!(batch.is_empty());
        let mut expected = Vec::new();
        // The words of the single operations are those behind the words of the batch.
        let [of_batch, alone] = [0, WORDS].map(|first| move |word: u64| (first + word % WORDS) * 8);
        for &(which, word, operand1, operand2) in seeds {
            let asked = what(
                operations[which % operations.len()],
                T::of_bits(operand1),
                T::of_bits(operand2),
            );
            let before = engine
                .atomic(ctx, segment_word(alone(word)), asked)
                .unwrap();
            if asked.operation.is_fetching() {
                expected.push(before.bits());
            }
            assert!(batch.push(SegmentOffset(of_batch(word)), asked));
        }
        assert_eq!(batch.values(), expected.len());
        assert_eq!(run(engine, ctx, &batch), expected);
        let get = what(Operation::Get, T::of_bits(0), T::of_bits(0));
        let read = |at| engine.atomic(ctx, segment_word(at), get).unwrap().bits();
        for word in 0..WORDS {
            assert_eq!(read(of_batch(word)), read(alone(word)), "word {word}");
        }
        // As good as new.
        batch.clear();
        assert!(batch.is_empty() && batch.values() == 0);
        assert_eq!(run(engine, ctx, &batch), []);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn batches_agree_with_single_operations(
        seeds in proptest::collection::vec(any::<(usize, u64, u64, u64)>(), 0..150),
    ) {
        agrees_with_single_operations::<u32>(&seeds);
        agrees_with_single_operations::<i32>(&seeds);
        agrees_with_single_operations::<u64>(&seeds);
        agrees_with_single_operations::<i64>(&seeds);
        agrees_with_single_operations::<f32>(&seeds);
        agrees_with_single_operations::<f64>(&seeds);
    }
}

#[test]
fn a_batch_takes_as_many_operations_as_a_message_holds() {
    let rig = Rig::pair(64);
    rig.served(|engine, ctx| {
        for (operation, room) in [
            (Operation::FetchInc, 512),
            (Operation::FetchAdd, 256),
            (Operation::FetchCas, 170),
        ] {
            let mut batch = engine.atomic_batch::<u64>();
            let asked = what(operation, 1, 2);
            let count = (0..1000).take_while(|_| batch.push(SegmentOffset(0), asked));
            assert_eq!(count.count(), room, "{operation:?}");
            let get = what(Operation::Get, 0u64, 0);
            let before = engine.atomic(ctx, segment_word(0), get).unwrap();
            let values = run(engine, ctx, &batch);
            assert_eq!(values.len(), room);
            assert_eq!(values[0], before);
        }
    });
}

/// A message that no engine sends.
fn send(rig: &Rig, handler: argonet_base::HandlerIndex, args: &[u32], records: &[u64]) {
    let bytes: Vec<u8> = records.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let message = Message {
        handler,
        args,
        payload: Payload::Medium(SharedBytes::from_slice(&bytes)),
    };
    let engine = &rig.ranks[0].engine;
    let sent = engine.request(&context(), JobRank(1), &message, Injection::Blocking);
    sent.unwrap();
}

fn number(dt: DataType) -> u64 {
    u32::from(dt).trailing_zeros().into()
}

fn head(offset: u64, operation: Operation) -> u64 {
    offset << 8 | u64::from(operation.bit().trailing_zeros())
}

#[test]
fn words_outside_and_unaligned_words_end_the_job() {
    for (offset, said) in [
        (1 << 40, "is outside of its segment"),
        (1 << 55, "is outside of its segment"),
        (4, "not aligned"),
    ] {
        let rig = Rig::pair(64);
        let records = [head(0, Operation::Add), 5, head(offset, Operation::Add), 1];
        let args = Args::pack([0, number(DataType::U64)]);
        send(&rig, internal::RATOMIC_BATCH, args.words(), &records);
        let message = rig.settle().expect("it is refused");
        let what = "rank 0: a remote atomic operation of 8 bytes";
        assert!(
            message.contains(what) && message.contains(said),
            "{message}"
        );
    }
}

#[test]
fn offsets_that_no_record_holds_are_outside() {
    let rig = Rig::pair(64);
    let engine = &rig.ranks[0].engine;
    let mut batch = engine.atomic_batch::<u64>();
    let add = what(Operation::Add, 1, 0);
    assert!(batch.push(SegmentOffset(1 << 56), add));
    // SAFETY: it has no values.
    let sent = unsafe {
        let (to, at) = (JobRank(1), core::ptr::null_mut());
        engine.atomic_batch_start(&context(), to, &batch, at, Injection::Blocking)
    };
    sent.unwrap();
    let message = rig.settle().expect("it is refused");
    assert!(message.contains("is outside of its segment"), "{message}");
}

#[test]
fn malformed_batches_are_broken_messages() {
    let add = head(0, Operation::Add);
    let cas = head(0, Operation::Cas);
    let and = head(0, Operation::And);
    let [u64s, u32s, f64s] = [DataType::U64, DataType::U32, DataType::F64].map(number);
    for (dt, records) in [
        // Records that are cut.
        (u64s, &[add][..]),
        (u64s, &[cas, 1]),
        (u64s, &[add, 1, add]),
        // No operation, none on the type, an operand of 33 bits.
        (u64s, &[0xff, 1]),
        (u64s, &[31, 1]),
        (f64s, &[and, 1]),
        (u32s, &[add, 1 << 32]),
        // No type.
        (31, &[add, 1]),
        (255, &[add, 1]),
        (u64s | 1 << 32, &[add, 1]),
        (number(DataType::User), &[add, 1]),
        // More than a batch can have.
        (u64s, &[head(0, Operation::Inc); 513]),
    ] {
        let rig = Rig::pair(64);
        let args = Args::pack([0, dt]);
        send(&rig, internal::RATOMIC_BATCH, args.words(), records);
        let message = rig.settle().expect("it is refused");
        let said = "rank 1 got a broken message from rank 0";
        assert!(message.contains(said), "{records:?}: {message}");
    }
}

#[test]
fn answers_with_other_values_are_broken_messages() {
    // The operation under way, and how many values the forged answer, which has none, lacks.
    for (operation, well) in [(Operation::Add, true), (Operation::FetchAdd, false)] {
        let rig = Rig::pair(64);
        let engine = &rig.ranks[0].engine;
        let mut batch = engine.atomic_batch::<u64>();
        assert!(batch.push(SegmentOffset(0), what(operation, 1, 0)));
        let mut values = [7u64];
        // An answer that comes before the owner has seen the batch.
        let forged = [u32::from(internal::RATOMIC_BATCH_DONE.0), 0, 0];
        send(&rig, FORGE, &forged, &[]);
        // SAFETY: the values live until the rig is gone.
        let sent = unsafe {
            let (to, at) = (JobRank(1), values.as_mut_ptr());
            engine.atomic_batch_start(&context(), to, &batch, at, Injection::Blocking)
        };
        sent.unwrap();
        let message = rig.settle().expect("the second answer is one too many");
        assert!(
            message.contains("rank 0 got a broken message from rank 1"),
            "{message}"
        );
        let contradict = message.contains("its lengths contradict each other");
        assert_eq!(contradict, !well, "{message}");
        assert_eq!(values, [7]);
    }
}
