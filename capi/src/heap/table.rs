//! All blocks of the process.

use core::ffi::c_char;
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::heap::block::{self, Block, GUARD_BYTES, Place};
use crate::heap::options::Options;
use crate::heap::report;
use crate::job::fatal;

/// `gasnett_heapstats_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Stats {
    pub(super) allocated_bytes: u64,
    pub(super) freed_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) live_bytes_max: u64,
    pub(super) allocated_objects: u64,
    pub(super) freed_objects: u64,
    pub(super) live_objects: u64,
    pub(super) live_objects_max: u64,
    pub(super) overhead_bytes: u64,
}

/// How many of the last releases are remembered, so that a second one is reported with its first.
const REMEMBERED: usize = 1024;

/// Blocks by their address, and the last ones that were freed.
pub(super) struct Table {
    pub(super) options: Options,
    pub(super) blocks: BTreeMap<usize, Block>,
    pub(super) stats: Stats,
    last_freed: VecDeque<(usize, Block)>,
    /// The address that `check_one` looked at last.
    checked: usize,
}

/// A call of the client's: its name and place.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) function: &'static str,
    pub(super) place: Place,
}

impl Call {
    pub(super) fn new(function: &'static str, place: *const c_char) -> Self {
        Self {
            function,
            place: Place::new(place),
        }
    }

    #[cold]
    pub(super) fn fatal(self, what: &str) -> ! {
        fatal(&format!("{} at {}", self.function, self.place), what)
    }
}

static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();

/// How long the end of the process waits for the holder of the table: that may be the thread that
/// ends it, with an error.
const PATIENCE: Duration = Duration::from_millis(100);

/// The table, if anything was ever allocated or asked, and no thread holds it.
pub(super) fn find() -> Option<MutexGuard<'static, Table>> {
    TABLE.get()?.try_lock_for(PATIENCE)
}

/// The table; the first call reads the environment.
pub(super) fn table() -> MutexGuard<'static, Table> {
    let new = || {
        report::at_exit();
        Mutex::new(Table {
            options: Options::read(),
            blocks: BTreeMap::new(),
            stats: Stats::default(),
            last_freed: VecDeque::new(),
            checked: 0,
        })
    };
    TABLE.get_or_init(new).lock()
}

impl Table {
    /// A new block.
    ///
    /// There is memory for it, or the program ends.
    pub(super) fn allocate(&mut self, bytes: usize, call: Call) -> *mut u8 {
        self.check_often(call);
        let address = block::new(bytes);
        if address.is_null() {
            call.fatal(&format!("there is no memory for {bytes} bytes"));
        }
        if let Some(fill) = self.options.init {
            // SAFETY: the new block's bytes.
            unsafe { fill.write(address, bytes) };
        }
        let block = Block {
            bytes,
            allocated: call.place,
            freed: None,
        };
        self.blocks.insert(address as usize, block);
        let stats = &mut self.stats;
        stats.allocated_bytes += bytes as u64;
        stats.allocated_objects += 1;
        stats.live_bytes += bytes as u64;
        stats.live_objects += 1;
        stats.live_bytes_max = stats.live_bytes_max.max(stats.live_bytes);
        stats.live_objects_max = stats.live_objects_max.max(stats.live_objects);
        address
    }

    /// The block that the client means, which is whole and not freed; the program ends if there is
    /// none.
    pub(super) fn known(&self, address: *const u8, call: Call) -> Block {
        let Some(&block) = self.blocks.get(&(address as usize)) else {
            self.unknown(address, call);
        };
        if block.freed.is_some() {
            freed_twice(address, &block, call);
        }
        self.look_at(address as usize, &block, call);
        block
    }

    #[cold]
    fn unknown(&self, address: *const u8, call: Call) -> ! {
        let at = address as usize;
        let freed = self.last_freed.iter().rev().find(|(freed, _)| *freed == at);
        if let Some((_, block)) = freed {
            freed_twice(address, block, call);
        }
        if let Some((begin, block)) = self.blocks.range(..at).next_back()
            && at - begin <= block.bytes
        {
            let inside = at - begin;
            call.fatal(&format!(
                "ptr is {address:p}, which is {inside} bytes inside of a block of {} bytes that was allocated at {}",
                block.bytes, block.allocated
            ));
        }
        call.fatal(&format!(
            "ptr is {address:p}, which no gasnett_debug_ function has allocated"
        ))
    }

    fn look_at(&self, address: usize, block: &Block, call: Call) {
        let scans = block.freed.is_some() && self.options.scan_freed;
        let fill = self.options.clobber.filter(|_| scans);
        // SAFETY: the table has blocks that are not released, with their bytes.
        let damage = unsafe { block.damage(std::ptr::with_exposed_provenance(address), fill) };
        if let Some(damage) = damage {
            call.fatal(&format!(
                "the block of {} bytes at {address:#x} that was allocated at {} {damage}",
                block.bytes, block.allocated
            ));
        }
    }

    /// Frees a block.
    pub(super) fn free(&mut self, address: *mut u8, call: Call) {
        let mut block = self.known(address, call);
        self.check_often(call);
        if let Some(fill) = self.options.clobber {
            // SAFETY: the block's bytes, which the client has given back.
            unsafe { fill.write(address, block.bytes) };
        }
        block.freed = Some(call.place);
        let stats = &mut self.stats;
        stats.freed_bytes += block.bytes as u64;
        stats.freed_objects += 1;
        stats.live_bytes -= block.bytes as u64;
        stats.live_objects -= 1;
        if self.options.leak_all {
            self.blocks.insert(address as usize, block);
            return;
        }
        self.blocks.remove(&(address as usize));
        if self.last_freed.len() == REMEMBERED {
            self.last_freed.pop_front();
        }
        self.last_freed.push_back((address as usize, block));
        // SAFETY: it came from `block::new`, as it was in the table, where it is no more.
        unsafe { block::release(address) };
    }

    fn check_often(&self, call: Call) {
        if self.options.extra_check {
            self.check_all(call);
        }
    }

    /// Checks all blocks.
    pub(super) fn check_all(&self, call: Call) {
        for (&address, block) in &self.blocks {
            self.look_at(address, block, call);
        }
    }

    /// Checks one block, each time another.
    pub(super) fn check_one(&mut self, call: Call) {
        let mut next = self.blocks.range(self.checked + 1..);
        let next = next.next().or_else(|| self.blocks.iter().next());
        if let Some((&address, block)) = next {
            self.look_at(address, block, call);
            self.checked = address;
        }
    }

    /// The counts, with what guards and kept blocks take.
    pub(super) fn stats(&self) -> Stats {
        let kept: usize = self
            .blocks
            .values()
            .filter(|b| b.freed.is_some())
            .map(|b| b.bytes)
            .sum();
        Stats {
            overhead_bytes: (self.blocks.len() * 2 * GUARD_BYTES + kept) as u64,
            ..self.stats
        }
    }
}

#[cold]
fn freed_twice(address: *const u8, block: &Block, call: Call) -> ! {
    let freed = block
        .freed
        .map_or_else(String::new, |place| place.to_string());
    call.fatal(&format!(
        "ptr is {address:p}, a block of {} bytes that was allocated at {} and freed already at {freed}",
        block.bytes, block.allocated
    ))
}
