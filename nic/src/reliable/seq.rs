//! Numbers of datagrams, which wrap.

/// A place in a stream of datagrams, modulo 2^32.
///
/// Two that are compared are less than 2^31 apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seq(pub(super) u32);

impl Seq {
    /// How far this one is behind another; negative if before.
    pub(super) fn distance(self, from: Self) -> i32 {
        self.0.wrapping_sub(from.0).cast_signed()
    }

    pub(super) fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Where the stream of a sender of this incarnation begins.
    ///
    /// Both sides know it.
    pub(super) const fn first_of(incarnation: u64) -> Self {
        Self((incarnation >> 32) as u32 ^ incarnation as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_pass_the_end() {
        let last = Seq(u32::MAX);
        assert_eq!(last.plus(2), Seq(1));
        assert_eq!(last.plus(2).distance(last), 2);
        assert_eq!(last.distance(last.plus(2)), -2);
    }
}
