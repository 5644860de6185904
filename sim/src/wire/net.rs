//! What happens to a frame on its way.

use super::faults::FaultPlan;
use crate::random::Random;

/// Copies of a frame that arrive, and when.
pub(crate) type Arrivals = [Option<(u64, Vec<u8>)>; 2];

/// The wires of all ranks.
#[derive(Debug)]
pub(crate) struct Net {
    random: Random,
    /// Until when each rank's outgoing wire is busy.
    busy_until_ns: Vec<u64>,
}

impl Net {
    pub(crate) fn new(seed: u64, ranks: u32) -> Self {
        Self {
            random: Random::fork(seed, 1),
            busy_until_ns: vec![0; ranks as usize],
        }
    }

    /// Sends a frame; says what arrives of it.
    pub(crate) fn send(
        &mut self,
        plan: &FaultPlan,
        now_ns: u64,
        from: u32,
        to: u32,
        frame: &[u8],
    ) -> Arrivals {
        let quality = plan.quality(now_ns);
        if from == to {
            return [
                Some((now_ns + quality.delay_ns / 10 + 1, frame.to_vec())),
                None,
            ];
        }
        let busy = &mut self.busy_until_ns[from as usize];
        let starts_ns = now_ns.max(*busy);
        if starts_ns - now_ns > quality.queue_ns {
            return [None, None];
        }
        let leaves_ns = starts_ns + (frame.len() as u64 * quality.byte_ps).div_ceil(1000);
        *busy = leaves_ns;
        let random = &mut self.random;
        if plan.is_cut(from, to, now_ns) || random.chance(quality.loss_ppm) {
            return [None, None];
        }
        let copies = 1 + usize::from(random.chance(quality.duplicate_ppm));
        let mut arrivals = [None, None];
        for arrival in &mut arrivals[..copies] {
            let mut at_ns = leaves_ns + quality.delay_ns;
            if quality.jitter_ns > 0 {
                at_ns += random.around(quality.jitter_ns);
            }
            if random.chance(quality.hold_ppm) {
                at_ns += random.around(quality.hold_ns);
            }
            let mut frame = frame.to_vec();
            if random.chance(quality.damage_ppm) {
                let bit = random.index(frame.len() * 8);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            *arrival = Some((at_ns, frame));
        }
        arrivals
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::Quality;
    use super::*;

    #[test]
    fn chances_are_as_told_and_a_byte_takes_its_time() {
        let mut plan = FaultPlan::none();
        plan.healed = Quality {
            loss_ppm: 100_000,
            duplicate_ppm: 200_000,
            ..Quality::CLEAN
        };
        let mut net = Net::new(1, 2);
        let (mut none, mut twice) = (0, 0);
        for i in 0..10_000 {
            match net.send(&plan, i * 1_000_000, 0, 1, &[0; 100]) {
                [None, _] => none += 1,
                [Some(_), Some(_)] => twice += 1,
                [Some((at, _)), None] => assert_eq!(at, i * 1_000_000 + 2_000 + 10),
            }
        }
        assert!((900..1100).contains(&none), "{none} lost");
        assert!((1650..1950).contains(&twice), "{twice} twice");
    }
}
