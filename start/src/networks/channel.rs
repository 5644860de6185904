//! Sizes and times of a channel, over any rails.

use argonet_conduit::channel::{ChannelCredits, ChannelSizes};
use argonet_settings::{
    Settings, TCP_CONNECTIONS, TCP_EAGER_SIZE, TCP_FRAGMENT_SIZE, TCP_IDLE_BUFFERS,
    TCP_IDLE_CONNECTIONS, TCP_SILENCE_TIMEOUT,
};
use core::time::Duration;

/// How long gathered messages wait for a rank that makes no call: where the progress thread takes
/// the processor of a rank, and where there is a processor to spare.
pub(super) const GATHER_TIMES: [Duration; 2] =
    [Duration::from_micros(500), Duration::from_micros(50)];

/// Sizes of a channel as the settings of tcp have them.
pub(super) fn sizes(settings: &Settings) -> ChannelSizes {
    ChannelSizes {
        rails: settings.get(&TCP_CONNECTIONS) as u16,
        eager_bytes: settings.get(&TCP_EAGER_SIZE).0 as usize,
        fragment_bytes: settings.get(&TCP_FRAGMENT_SIZE).0 as usize,
        silent_time: settings.get(&TCP_SILENCE_TIMEOUT),
        idle_buffers: settings.get(&TCP_IDLE_BUFFERS),
        idle_rails: settings.get(&TCP_IDLE_CONNECTIONS),
        credits: ChannelCredits::from_settings(settings),
        ..ChannelSizes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> ChannelSizes {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        sizes(&Settings::from_pairs(pairs).expect("settings"))
    }

    #[test]
    fn without_settings_tcp_has_its_own_sizes() {
        assert_eq!(of(&[]), ChannelSizes::default());
    }

    #[test]
    fn times_are_those_of_the_settings() {
        let sizes = of(&[
            ("ARGONET_TCP_SILENCE_TIMEOUT", "3"),
            ("ARGONET_TCP_IDLE_BUFFERS", "0"),
            ("ARGONET_TCP_IDLE_CONNECTIONS", "60"),
        ]);
        assert_eq!(sizes.silent_time, Duration::from_secs(3));
        assert_eq!(sizes.idle_buffers, Duration::ZERO);
        assert_eq!(sizes.idle_rails, Duration::from_secs(60));
    }

    /// spec T5: sizes of eager messages and fragments.
    #[test]
    fn sizes_of_tcp_are_those_of_the_settings_and_possible() {
        for (eager, fragment, bytes) in [
            ("64", "4 KB", (64, 4 << 10)),
            ("8 KB", "65536", (8 << 10, 64 << 10)),
            ("64 KB", "1 MB", (64 << 10, 1 << 20)),
        ] {
            let sizes = of(&[
                ("ARGONET_TCP_EAGER_SIZE", eager),
                ("ARGONET_TCP_FRAGMENT_SIZE", fragment),
            ]);
            assert_eq!((sizes.eager_bytes, sizes.fragment_bytes), bytes);
            assert_eq!(sizes.check(), Ok(()));
        }
    }
}
