//! The ranks: each puts into every other rank's segment and reads it back, by the functions that the
//! C compiler has made of the header.

use argonet::raw::NearPrefix;
use argonet::{SharedVec, World};
use std::ffi::{CString, c_int, c_void};

type Put8 = unsafe extern "C" fn(*const NearPrefix, u32, *mut c_void, u64) -> c_int;
type Get8 = unsafe extern "C" fn(*const NearPrefix, u32, *const c_void, *mut u64) -> c_int;
type Valid = unsafe extern "C" fn(*const NearPrefix) -> c_int;

struct Header {
    put8: Put8,
    get8: Get8,
    valid: Valid,
}

impl Header {
    fn load(path: &str) -> Self {
        let path = CString::new(path).expect("a path");
        // SAFETY: the library is `near.c`, which has no constructors.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "the library can be loaded");
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: the library was loaded and stays so.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            assert!(!symbol.is_null(), "{name:?} is in the library");
            symbol
        };
        // SAFETY: `near.c` defines these functions with these types.
        unsafe {
            Self {
                put8: std::mem::transmute::<*mut c_void, Put8>(symbol(c"near_put8")),
                get8: std::mem::transmute::<*mut c_void, Get8>(symbol(c"near_get8")),
                valid: std::mem::transmute::<*mut c_void, Valid>(symbol(c"near_valid")),
            }
        }
    }
}

/// What rank `from` puts into the segment of rank `to`.
fn token(from: u32, to: u32) -> u64 {
    0xdead_0000_0000_0000 | u64::from(from) << 24 | u64::from(to)
}

/// Runs as one rank; panics, and so ends the job, when something is not as it should be.
pub(crate) fn run(library: &str) {
    let world = World::init().expect("a job");
    let header = Header::load(library);
    let numbers = SharedVec::<u64>::alloc(&world, 64).expect("an array");
    let (rank, size) = (world.rank().0, world.size());
    let offset = numbers.gptr(world.rank(), 0).offset();
    let own = world
        .raw()
        .local_address(world.rank(), offset, 64 * 8)
        .expect("the own part");
    let table = world.raw().near_table().expect("a table");
    assert!(table.reach_bytes() >= offset.0 + 64 * 8);
    let team = table.prefix().as_ptr().cast_const();
    // SAFETY: the prefix lives as long as the table.
    assert_eq!(unsafe { (header.valid)(team) }, 1);
    for to in 0..size {
        // SAFETY: the place lies in the own array, whose offset every segment has.
        let place = unsafe { own.as_ptr().add(rank as usize * 8) };
        // SAFETY: the header's conditions: an aligned place within the table's reach.
        let done = unsafe { (header.put8)(team, to, place.cast(), token(rank, to)) };
        assert_eq!(
            done == 1,
            to != rank,
            "a put to rank {to} of {size} from rank {rank}"
        );
    }
    // SAFETY: any rank is allowed; nothing is stored for one that the table does not have.
    let done = unsafe { (header.put8)(team, size, own.as_ptr().cast(), 0) };
    assert_eq!(done, 0, "a put to a rank beyond the table");
    world.barrier().expect("a barrier");
    for from in (0..size).filter(|from| *from != rank) {
        assert_eq!(numbers.read(&world, from as usize), token(from, rank));
        let mut value = 0;
        // SAFETY: as for the put; the value is writable.
        let done = unsafe {
            (header.get8)(
                team,
                from,
                own.as_ptr().add(rank as usize * 8).cast(),
                &raw mut value,
            )
        };
        assert_eq!((done, value), (1, token(rank, from)));
    }
    world.finalise().expect("the end");
}
