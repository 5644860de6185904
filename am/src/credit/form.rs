//! Fields about credits in requests and replies.
//!
//! ```text
//!   Portals:  bit 7   6..4   3..0         wide:  bit 32   31..16   15..0
//!               E     xxx    nnnn                  E       need    count
//! ```

use super::error::CreditError;

/// The fields of a request or a reply about credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tag {
    /// The sender has ended an epoch since it last reported one: its peer's counts of sending to it
    /// decay.
    pub epoch: bool,
    /// In a request: the credits that its sender was waiting for.
    ///
    /// In a reply: credits that are lent in addition.
    pub extra: u16,
    /// The cost of the request; the reply gives it back.
    pub count: u16,
}

/// How wide the fields of a tag are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Bits of [`Tag::extra`], 1 to 16.
    extra_bits: u32,
    /// Bits of [`Tag::count`], 1 to 16.
    count_bits: u32,
}

impl Form {
    /// `EXXXNNNN`, the byte of the Portals text: `extra` up to 7, `count` up to 15.
    pub const BYTE: Form = Form {
        extra_bits: 3,
        count_bits: 4,
    };

    /// 16 bits for either count, for conduits with headers of their own.
    pub const WIDE: Form = Form {
        extra_bits: 16,
        count_bits: 16,
    };

    /// Fields of other widths; `None` if one is not 1 to 16 bits wide.
    #[must_use]
    pub const fn new(extra_bits: u32, count_bits: u32) -> Option<Form> {
        let fits = extra_bits >= 1 && extra_bits <= 16 && count_bits >= 1 && count_bits <= 16;
        if fits {
            Some(Form {
                extra_bits,
                count_bits,
            })
        } else {
            None
        }
    }

    /// Largest [`Tag::extra`]: more is asked for with the next message.
    #[inline]
    #[must_use]
    pub const fn most_extra(&self) -> u16 {
        ((1u32 << self.extra_bits) - 1) as u16
    }

    /// Largest [`Tag::count`]: no request may cost more.
    #[inline]
    #[must_use]
    pub const fn most_count(&self) -> u16 {
        ((1u32 << self.count_bits) - 1) as u16
    }

    /// Bits of all fields.
    #[must_use]
    pub const fn width(&self) -> u32 {
        1 + self.extra_bits + self.count_bits
    }

    /// The tag in the low bits.
    ///
    /// `extra` that is too large is cut to what the field holds.
    ///
    /// # Panics
    /// If `count` does not fit: [`Rules::check`](super::Rules::check) excludes requests that cost
    /// so much.
    #[inline]
    #[must_use]
    pub fn pack(&self, tag: Tag) -> u64 {
        assert!(
            tag.count <= self.most_count(),
            "a request of {} credits",
            tag.count
        );
        let extra = u64::from(tag.extra.min(self.most_extra()));
        u64::from(tag.epoch) << (self.extra_bits + self.count_bits)
            | extra << self.count_bits
            | u64::from(tag.count)
    }

    /// The tag that bits from the wire are.
    ///
    /// # Errors
    /// [`CreditError::Form`] for bits beyond the fields.
    #[inline]
    pub fn unpack(&self, bits: u64) -> Result<Tag, CreditError> {
        let width = self.width();
        if bits >> width != 0 {
            return Err(CreditError::Form { bits, width });
        }
        let rest = bits & ((1 << (width - 1)) - 1);
        Ok(Tag {
            epoch: bits >> (width - 1) != 0,
            extra: (rest >> self.count_bits) as u16,
            count: (rest & u64::from(self.most_count())) as u16,
        })
    }
}
