//! What a run is like.

use crate::random::Random;
use argonet_nic::reliable::ReliableConfig;
use core::fmt;
use core::time::Duration;

/// The wire; chances in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WireShape {
    /// Nanoseconds that an interface takes to send 1,000 bytes.
    pub ns_per_kilobyte: u64,
    /// Time from interface to interface, without that.
    pub trip: Duration,
    /// Longest time that some datagrams take beyond that, which others overtake.
    pub late: Duration,
    /// How many are late.
    pub delay: u32,
    /// How many are lost.
    pub drop: u32,
    /// How many arrive twice.
    pub duplicate: u32,
    /// How many have a bit changed; a seal is needed to find it.
    pub corrupt: u32,
    /// Whether an interface has a queue for commands, which are sent first.
    pub has_two_queues: bool,
    /// Longest datagrams that it takes, one after the other; none: it takes all.
    pub mtus: &'static [usize],
    /// How long it takes each.
    pub mtu_lasts: Duration,
}

impl WireShape {
    /// A wire that loses nothing.
    pub const GOOD: Self = Self {
        ns_per_kilobyte: 800,
        trip: Duration::from_micros(20),
        late: Duration::ZERO,
        delay: 0,
        drop: 0,
        duplicate: 0,
        corrupt: 0,
        has_two_queues: true,
        mtus: &[],
        mtu_lasts: Duration::from_secs(1),
    };
}

impl WireShape {
    /// Longest datagram that it takes at a time.
    pub(super) fn mtu_at(&self, now: Duration) -> usize {
        let passed = now.as_nanos() / self.mtu_lasts.as_nanos().max(1);
        let at = passed as usize % self.mtus.len().max(1);
        self.mtus.get(at).copied().unwrap_or(usize::MAX)
    }
}

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramShape {
    /// Its seed.
    pub seed: u64,
    /// Ranks.
    pub ranks: u32,
    /// Sizes and times of the layer.
    pub link: ReliableConfig,
    /// Whether datagrams have a code.
    pub sealed: bool,
    /// The wire, whose faults end after 5 s.
    pub wire: WireShape,
    /// Records of a rank for each other one, by channel.
    pub records: [u64; 2],
    /// Longest record, by channel.
    pub most_bytes: [usize; 2],
    /// How often a rank takes no records for a while, in millionths of its looks.
    pub pauses: u32,
    /// Whether records of sealed datagrams are encrypted.
    pub encrypted: bool,
}

/// Longer datagrams that ranks try, in half of the runs with short ones.
const LONGER: &[usize] = &[1500, 4000, 9000];

/// Paths that take them, or do not, or do not any more.
const MTUS: [&[usize]; 5] = [
    &[],
    &[1480],
    &[9000, 1480],
    &[1480, 9000],
    &[9000, 1500, 4000],
];

impl DatagramShape {
    /// That of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let datagram_bytes = random.pick(&[344, 400, 1232, 1472, 8972, 60 << 10]);
        let windows = random.range(1, 40) as usize;
        let link = ReliableConfig {
            datagram_bytes,
            window_bytes: datagram_bytes * windows,
            // Faults are no reason to give up.
            give_up_after: Duration::from_secs(30),
            unheard_after: Duration::from_secs(30),
            stopped_for: Duration::ZERO,
            is_patient: false,
            ..ReliableConfig::default()
        };
        let sealed = random.chance(500_000);
        let is_bad = random.chance(800_000);
        let mut rate = |most: u64| match is_bad {
            true => random.range(0, most) as u32,
            false => 0,
        };
        let [drop, duplicate, delay, corrupt, pauses] =
            [300_000, 200_000, 300_000, 50_000, 100_000].map(&mut rate);
        let most = link.record_bytes(sealed);
        let mut shape = Self {
            seed,
            ranks: random.range(2, 4) as u32,
            link,
            sealed,
            wire: WireShape {
                ns_per_kilobyte: random.pick(&[80, 800, 8000]),
                trip: Duration::from_micros(random.pick(&[10, 100, 500])),
                late: Duration::from_micros(random.range(1, 20_000)),
                delay,
                drop,
                duplicate,
                corrupt: if sealed { corrupt } else { 0 },
                has_two_queues: random.chance(500_000),
                ..WireShape::GOOD
            },
            records: [random.range(0, 300), random.range(0, 150)],
            most_bytes: [most.min(random.pick(&[8, 768, most])), most],
            pauses,
            encrypted: sealed && random.chance(500_000),
        };
        if datagram_bytes < LONGER[0] && random.chance(500_000) {
            shape.link.longer_datagrams = LONGER;
            shape.wire.mtus = random.pick(&MTUS);
            shape.wire.mtu_lasts = Duration::from_millis(random.pick(&[20, 300, 2000]));
            shape.most_bytes[1] = shape.link.most_record_bytes(sealed);
        }
        shape
    }
}

impl fmt::Display for DatagramShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ranks,
            link,
            wire,
            records: [commands, data],
            ..
        } = self;
        let queues = if wire.has_two_queues { 2 } else { 1 };
        let seal = match (self.sealed, self.encrypted) {
            (false, _) => "open",
            (true, false) => "sealed",
            (true, true) => "encrypted",
        };
        write!(
            f,
            "{ranks} ranks, {commands} commands and {data} of data a pair, datagrams of {} bytes in \
             windows of {} and up to {} by paths of {:?} for {:?} each, {queues} queues, {} ns a kB and {:?} a trip, of a million {} lost, {} \
             twice, {} late, {} changed, {seal}",
            link.datagram_bytes,
            link.window_bytes,
            link.longer_datagrams.last().unwrap_or(&link.datagram_bytes),
            wire.mtus,
            wire.mtu_lasts,
            wire.ns_per_kilobyte,
            wire.trip,
            wire.drop,
            wire.duplicate,
            wire.delay,
            wire.corrupt
        )
    }
}
