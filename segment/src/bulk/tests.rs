use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;

use super::{
    OutOfRange, SharedBytes, SharedBytesMut, copy, fill, get_value, load_u8, load_u16, load_u32,
    load_u64, put_value, store_u8, store_u16, store_u32, store_u64,
};

const GUARD: usize = 64;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + 7) as u8).collect()
}

/// Copies with guard bytes on both sides and compares the whole buffer with a slice copy.
fn copy_agrees(len: usize, src_align: usize, dst_align: usize) {
    let src = pattern(src_align + len + GUARD);
    let mut want = vec![0xa5; GUARD + dst_align + len + GUARD];
    let mut got = want.clone();
    let at = GUARD + dst_align;
    want[at..at + len].copy_from_slice(&src[src_align..src_align + len]);
    // SAFETY: both ranges lie inside vectors of this test, which do not overlap.
    unsafe { copy(got.as_mut_ptr().add(at), src.as_ptr().add(src_align), len) };
    assert!(
        got == want,
        "len {len}, source +{src_align}, destination +{dst_align}"
    );
}

#[test]
fn copy_agrees_with_slice_copy_for_every_length_and_alignment() {
    for len in 0..300 {
        for src_align in 0..16 {
            copy_agrees(len, src_align, (src_align * 7 + len) % 16);
            copy_agrees(len, src_align, src_align);
        }
    }
    for len in [
        2047,
        2048,
        2049,
        4095,
        4096,
        4097,
        5000,
        16_383,
        16_384,
        16_385,
        65_536,
        1 << 20,
        (3 << 20) + 13,
    ] {
        copy_agrees(len, 0, 0);
        copy_agrees(len, 3, 5);
    }
}

#[test]
fn copy_of_a_constant_length_agrees() {
    // Constant lengths fold to one arm each, which the loop above does not show.
    macro_rules! constant {
        ($($len:literal)*) => {$({
            let src = pattern($len);
            let mut dst = [0xa5; $len + 1];
            // SAFETY: both ranges lie inside distinct locals.
            unsafe { copy(dst.as_mut_ptr(), src.as_ptr(), $len) };
            assert_eq!(&dst[..$len], &src[..]);
            assert_eq!(dst[$len], 0xa5);
        })*};
    }
    constant!(0 1 2 3 4 5 7 8 9 12 15 16 17 24 31 32 33 48 63 64 65 128);
}

#[test]
fn no_bytes_need_no_memory() {
    let nowhere = std::ptr::without_provenance_mut::<u8>(8);
    // SAFETY: with a length of 0 the pointers are not looked at.
    unsafe {
        copy(nowhere, nowhere, 0);
        fill(nowhere, 1, 0);
    }
}

#[test]
fn fill_agrees_with_slice_fill() {
    for len in (0..300).chain([4096, 1 << 20]) {
        for align in [0, 1, 5, 8] {
            let mut want = vec![0xa5; GUARD + align + len + GUARD];
            let mut got = want.clone();
            let at = GUARD + align;
            want[at..at + len].fill(0x3c);
            // SAFETY: the range lies inside the vector.
            unsafe { fill(got.as_mut_ptr().add(at), 0x3c, len) };
            assert!(got == want, "len {len}, align {align}");
        }
    }
}

#[test]
fn aligned_values_load_and_store() {
    let mut word = 0_u64;
    let at = &raw mut word;
    // SAFETY: all accesses are aligned and inside a local that nothing else accesses meanwhile.
    unsafe {
        store_u64(at, 0x0807_0605_0403_0201);
        assert_eq!(load_u64(at), 0x0807_0605_0403_0201);
        assert_eq!(load_u32(at.cast()), 0x0403_0201);
        assert_eq!(load_u16(at.cast::<u16>().add(1)), 0x0403);
        assert_eq!(load_u8(at.cast::<u8>().add(7)), 8);
        store_u32(at.cast(), 0xffff_ffff);
        store_u16(at.cast::<u16>().add(2), 0);
        store_u8(at.cast::<u8>().add(6), 0x99);
    }
    assert_eq!(word, 0x0899_0000_ffff_ffff);
}

/// Sets the flag when dropped, so that the threads of a scope end when its body panics, too.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two writers store whole patterns while a reader copies: each byte must come from one of them,
/// and nothing else may happen.
///
/// Aligned 8-byte copies must not tear at all. Returns how many copies were torn.
fn race(len: usize, reads: u32) -> u32 {
    let memory: Vec<AtomicU64> = (0..len / 8).map(|_| AtomicU64::new(0)).collect();
    let base = NonNull::new(memory.as_ptr().cast_mut().cast::<u8>()).unwrap();
    // SAFETY: the vector outlives the scope below, and is accessed by views only.
    let reader = unsafe { SharedBytes::from_raw(base, len) };
    let stop = AtomicBool::new(false);
    let mut torn = 0;
    std::thread::scope(|scope| {
        let stopping = SetOnDrop(&stop);
        let writers = [0x11_u8, 0x22].map(|byte| {
            // SAFETY: as above.
            let mut writer = unsafe { SharedBytesMut::from_raw(base, len) };
            let stop = &stop;
            scope.spawn(move || {
                let source = vec![byte; len];
                while !stop.load(Ordering::Relaxed) {
                    writer.copy_from(0, &source).unwrap();
                }
            })
        });
        let mut got = vec![0; len];
        let mut seen = [false; 256];
        let mut left = reads;
        // Both writers must have run for the reads to count.
        while left > 0 || !(seen[0x11] && seen[0x22]) {
            reader.copy_to(0, &mut got).unwrap();
            left = left.saturating_sub(1);
            seen[usize::from(got[0])] = true;
            torn += u32::from(got.iter().any(|byte| *byte != got[0]));
            assert!(
                got.iter().all(|byte| matches!(byte, 0 | 0x11 | 0x22)),
                "{got:?}"
            );
        }
        drop(stopping);
        // ThreadSanitizer sees a join, but not the end of a scope.
        writers.into_iter().for_each(|t| t.join().unwrap());
    });
    torn
}

#[test]
fn a_race_tears_between_old_and_new_bytes_and_does_nothing_worse() {
    for len in [16, 24, 64, 72, 4096] {
        race(len, 20_000);
    }
}

#[test]
fn an_aligned_copy_of_eight_bytes_never_tears() {
    assert_eq!(race(8, 4_000_000), 0);
}

#[test]
fn views_check_every_range() {
    let bytes = pattern(100);
    let view = SharedBytes::from_slice(&bytes);
    assert_eq!((view.len(), view.is_empty()), (100, false));
    assert_eq!(view.read::<u8>(99), Ok(bytes[99]));
    assert_eq!(
        view.read::<u64>(93),
        Err(OutOfRange {
            offset_bytes: 93,
            len_bytes: 8,
            available_bytes: 100
        })
    );
    assert!(view.read::<u64>(usize::MAX - 3).is_err());
    assert!(view.slice(usize::MAX, 2).is_err());
    assert!(view.slice(100, 0).unwrap().is_empty());
    assert!(view.slice(101, 0).is_err());
    assert!(view.copy_to(1, &mut [0; 100]).is_err());
    assert_eq!(view.slice(10, 5).unwrap().to_vec(), &bytes[10..15]);
    assert!(view.slice(10, 5).unwrap().read::<u8>(5).is_err());
    assert!(SharedBytes::default().to_vec().is_empty());
    let message = view.read::<u64>(93).unwrap_err().to_string();
    assert!(
        message.contains("93") && message.contains("100"),
        "{message}"
    );
}

#[test]
fn views_know_their_length() {
    let mut bytes = [7; 5];
    let at = bytes.as_ptr();
    let shared = SharedBytes::from_slice(&bytes);
    assert_eq!((shared.len(), shared.is_empty()), (5, false));
    assert_eq!(
        format!("{shared:?}"),
        format!("SharedBytes({at:p}, 5 bytes)")
    );
    let view = SharedBytesMut::from_slice(&mut bytes);
    assert_eq!((view.len(), view.is_empty()), (5, false));
    let view = SharedBytesMut::from_slice(&mut bytes[..1]);
    assert_eq!((view.len(), view.is_empty()), (1, false));
    assert!(SharedBytes::default().is_empty());
    assert!(SharedBytesMut::from_slice(&mut []).is_empty());
}

#[test]
fn typed_values_go_in_and_out_unaligned() {
    let mut bytes = [0_u8; 64];
    let mut view = SharedBytesMut::from_slice(&mut bytes);
    view.write(3, &0x1122_3344_5566_7788_u64).unwrap();
    view.copy_from_slice(20, &[1_u32, 2, 3]).unwrap();
    view.fill(40, 10, 9).unwrap();
    assert!(view.write(57, &0_u64).is_err());
    assert!(view.fill(60, 5, 1).is_err());
    assert!(view.copy_from(64, &[1]).is_err());
    let read = view.as_shared();
    assert_eq!(read.read::<u64>(3), Ok(0x1122_3344_5566_7788));
    let mut three = [0_u32; 3];
    read.copy_to_slice(20, &mut three).unwrap();
    assert_eq!(three, [1, 2, 3]);
    assert!(read.copy_to_slice(60, &mut three).is_err());
    view.slice_mut(41, 2)
        .unwrap()
        .copy_from(0, &[5, 6])
        .unwrap();
    assert_eq!(&bytes[39..51], &[0, 9, 5, 6, 9, 9, 9, 9, 9, 9, 9, 0]);
}

proptest! {
    #[test]
    fn views_agree_with_slices(
        mut model in proptest::collection::vec(any::<u8>(), 0..200),
        operations in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<bool>()), 1..40),
    ) {
        let mut memory = model.clone();
        let mut view = SharedBytesMut::from_slice(&mut memory);
        for (offset, len, write) in operations {
            let (offset, len) = (usize::from(offset), usize::from(len));
            let inside = offset + len <= model.len();
            if write {
                let source = pattern(len);
                prop_assert_eq!(view.copy_from(offset, &source).is_ok(), inside);
                if inside {
                    model[offset..offset + len].copy_from_slice(&source);
                }
            } else {
                let mut got = vec![0; len];
                prop_assert_eq!(view.as_shared().copy_to(offset, &mut got).is_ok(), inside);
                if inside {
                    prop_assert_eq!(&got[..], &model[offset..offset + len]);
                }
            }
        }
        prop_assert_eq!(view.as_shared().to_vec(), model);
    }
}

#[test]
fn values_go_through_registers_and_memory_alike() {
    fn check<T: Copy + PartialEq + core::fmt::Debug>(value: T, filler: T) {
        // Both ends of the bytes around it, at every alignment.
        let mut bytes = [0xee_u8; 64];
        for at in 8..24 {
            let place = bytes.as_mut_ptr();
            // SAFETY: the value lies inside of the array at any of these places, and has no
            // padding.
            let back = unsafe {
                put_value(place.add(at), filler);
                put_value(place.add(at), value);
                get_value::<T>(place.add(at))
            };
            assert_eq!(back, value);
            let end = at + size_of::<T>();
            assert!(
                bytes[..at]
                    .iter()
                    .chain(&bytes[end..])
                    .all(|&byte| byte == 0xee)
            );
            bytes.fill(0xee);
        }
    }
    check(0xa5_u8, 0);
    check(0xa5c3_u16, 0);
    check(-0x1234_5678_i32, -1);
    check(core::f64::consts::PI, -1.0);
    check([1_u8, 2, 3], [9; 3]);
    check([1_u64, u64::MAX, 3], [9; 3]);
    check([7_u16; 9], [9; 9]);
    check((), ());
}
