//! Sizes and times of a link.

/// Sizes and times of a link; the same at both ends, apart from what a test wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// Longest payload of a frame.
    pub part_bytes: usize,
    /// Longest message.
    pub message_bytes: usize,
    /// Messages that are queued or not yet acknowledged, at most.
    pub send_messages: usize,
    /// Parts that are sent and not yet acknowledged, at most.
    pub send_parts: u32,
    /// Parts that the receiver holds, in order or not, at most. At most 64: as many as a frame's
    /// selective acknowledgement can tell of, and the next.
    pub recv_parts: u32,
    /// Parts sent again in one pass, at most.
    pub resends_per_pass: u32,
    /// Retransmission timer before the first measurement.
    pub first_rto_ns: u64,
    /// Shortest retransmission timer.
    pub least_rto_ns: u64,
    /// Longest retransmission timer.
    pub most_rto_ns: u64,
    /// An idle link that has been used is probed this often.
    pub keepalive_ns: u64,
    /// A peer that has been silent so long, while it should have answered, is dead.
    pub dead_after_ns: u64,
}

/// What is wrong with a [`LinkConfig`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("link: {field} is {value}, allowed is {allowed}")]
pub struct LinkConfigError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// What is allowed.
    pub allowed: &'static str,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            part_bytes: 1024,
            message_bytes: 256 * 1024,
            send_messages: 32,
            send_parts: 64,
            recv_parts: 64,
            resends_per_pass: 16,
            first_rto_ns: 1_000_000,
            least_rto_ns: 20_000,
            most_rto_ns: 20_000_000,
            keepalive_ns: 50_000_000,
            dead_after_ns: 1_000_000_000,
        }
    }
}

impl LinkConfig {
    /// The smallest buffers with which everything still has to work.
    #[must_use]
    pub fn smallest() -> Self {
        Self {
            part_bytes: 64,
            send_messages: 1,
            send_parts: 1,
            recv_parts: 1,
            resends_per_pass: 1,
            ..Self::default()
        }
    }

    /// Checks that every value is possible.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), LinkConfigError> {
        let within = |field, value: u64, low: u64, high: u64, allowed| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(LinkConfigError {
                    field,
                    value,
                    allowed,
                })
            }
        };
        let most = u64::MAX / 4;
        within(
            "part_bytes",
            self.part_bytes as u64,
            1,
            1 << 20,
            "1 to 1 MiB",
        )?;
        let message = self.message_bytes as u64;
        within("message_bytes", message, 1, 1 << 30, "1 to 1 GiB")?;
        let messages = self.send_messages as u64;
        within("send_messages", messages, 1, 1 << 20, "1 to 2^20")?;
        within(
            "send_parts",
            self.send_parts.into(),
            1,
            1 << 20,
            "1 to 2^20",
        )?;
        within("recv_parts", self.recv_parts.into(), 1, 64, "1 to 64")?;
        let resends = self.resends_per_pass.into();
        within("resends_per_pass", resends, 1, 1 << 20, "1 to 2^20")?;
        within("least_rto_ns", self.least_rto_ns, 1, most, "at least 1")?;
        let allowed = "least_rto_ns to most_rto_ns";
        let (least, longest) = (self.least_rto_ns, self.most_rto_ns);
        within("first_rto_ns", self.first_rto_ns, least, longest, allowed)?;
        within("keepalive_ns", self.keepalive_ns, 1, most, "at least 1")?;
        let allowed = "more than keepalive_ns and most_rto_ns";
        let least = self.keepalive_ns.max(self.most_rto_ns) + 1;
        within("dead_after_ns", self.dead_after_ns, least, most, allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_named() {
        assert_eq!(LinkConfig::default().check(), Ok(()));
        assert_eq!(LinkConfig::smallest().check(), Ok(()));
        let wide = LinkConfig {
            recv_parts: 65,
            ..LinkConfig::default()
        };
        let said = wide.check().unwrap_err().to_string();
        assert_eq!(said, "link: recv_parts is 65, allowed is 1 to 64");
        let hasty = LinkConfig {
            dead_after_ns: 1,
            ..LinkConfig::default()
        };
        assert_eq!(hasty.check().unwrap_err().field, "dead_after_ns");
    }
}
