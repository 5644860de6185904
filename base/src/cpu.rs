//! Code that depends on the processor, one version an architecture.

/// Hints to the processor that this is a spin loop.
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}

/// Asks the processor to bring a cache line.
///
/// A hint: any address may be given.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it changes no state that a program can see, and faults at no address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(at.cast());
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(readonly, nostack));
    }
}

/// A counter that rises by a constant number of ticks a second, between 10 MHz and 10 GHz.
///
/// Cheap, not ordered with other instructions, not comparable between hosts.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reading the time-stamp counter touches no memory; Linux leaves it enabled for
        // user processes.
        #[allow(unsafe_code)]
        unsafe {
            core::arch::x86_64::_rdtsc()
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reading the virtual counter touches no memory; Linux enables it for user
        // processes.
        #[allow(unsafe_code)]
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }
}

/// Ticks in about 130 ns on processors of today, for pauses that need no precision.
pub const SHORT_PAUSE_TICKS: u64 = if cfg!(target_arch = "aarch64") {
    8
} else {
    300
};

/// Ticks a second as the processor describes its counter; `None` where it does not.
///
/// Takes some tens of microseconds in a virtual machine, which emulates the instruction.
#[must_use]
pub fn described_tick_rate() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid_count;
        /// Time-stamp counter and core crystal clock.
        const LEAF: u32 = 0x15;
        if __cpuid_count(0, 0).eax < LEAF {
            return None;
        }
        let leaf = __cpuid_count(LEAF, 0);
        let (denominator, numerator, crystal_hz) = (leaf.eax, leaf.ebx, leaf.ecx);
        let scaled = u64::from(crystal_hz) * u64::from(numerator);
        scaled
            .checked_div(u64::from(denominator))
            .filter(|&rate| rate > 0)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let rate: u64;
        // SAFETY: reading the counter's frequency touches no memory; Linux enables it for user
        // processes.
        #[allow(unsafe_code)]
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack));
        }
        (rate > 0).then_some(rate)
    }
}
