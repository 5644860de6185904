//! Credits as something that is moved, never copied.

/// Credits of a lender.
///
/// They are in the bank, in the pot of shares that no peer has touched yet, or lent to one peer.
///
/// Only [`Bank::new`](super::Bank::new) makes them, from receive space that exists; all else splits
/// and joins. There is no `Clone`, so the sum of all loans and the bank is always what the space
/// holds.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "credits that are dropped are lost to the job"]
pub struct Credits(u16);

impl Credits {
    /// None of them.
    pub const NONE: Credits = Credits(0);

    /// For the bank alone: credits that it has just taken off its own count.
    pub(super) const fn minted(count: u16) -> Self {
        Self(count)
    }

    /// How many.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.0
    }

    /// Takes `count` of them off; `None` and unchanged if there are fewer.
    pub fn split(&mut self, count: u16) -> Option<Credits> {
        self.0 = self.0.checked_sub(count)?;
        Some(Credits(count))
    }

    /// Adds others.
    ///
    /// # Errors
    /// The others, if the sum does not fit 16 bits.
    pub fn join(&mut self, others: Credits) -> Result<(), Credits> {
        match self.0.checked_add(others.0) {
            Some(sum) => {
                self.0 = sum;
                Ok(())
            }
            None => Err(others),
        }
    }
}
