//! Longs that travel in two messages: the header with its arguments, and the data that goes
//! straight to its place.
//!
//! The network may deliver either first; the handler runs when both are there.
//!
//! The sender gives both halves one number, the *LID* ([`Lids`]). The receiver keeps the half that
//! comes first in a [`LidCache`], by source and LID. The cache is bounded, in all and for each
//! source, so that a peer that sends halves alone cannot take all of it. When a peer is lost, its
//! halves are forgotten.
// spec P7: header and data halves of a long, whichever comes first.

use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The half that came first, as the receiver keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half<H, D> {
    Header(H),
    Data(D),
}

/// A half that cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LidError {
    /// The same half came before: the sender, or the network, repeats it.
    #[error("the {half} of long {lid:#x} from rank {source_rank} came twice")]
    Twice {
        /// Which half.
        half: &'static str,
        /// Its number.
        lid: u32,
        /// Its sender.
        source_rank: u32,
    },
    /// No room: the half is to be pushed back, and sent again later.
    #[error(
        "no room for the {half} of long {lid:#x} from rank {source_rank}: {kept} halves wait for their others, at most {most} may"
    )]
    Full {
        /// Which half.
        half: &'static str,
        /// Its number.
        lid: u32,
        /// Its sender.
        source_rank: u32,
        /// Halves that are kept, of this sender or in all.
        kept: usize,
        /// How many may be.
        most: usize,
    },
}

/// Halves that wait for the other one.
///
/// `H` is what is kept of a header, `D` of data.
#[derive(Debug)]
pub struct LidCache<H, D> {
    halves: BTreeMap<(u32, u32), Half<H, D>>,
    most: usize,
    most_per_source: usize,
    peak: usize,
}

impl<H, D> LidCache<H, D> {
    /// A cache of at most `most` halves, and `most_per_source` of each rank; of data twice as many,
    /// as it is in its place and cannot be pushed back.
    ///
    /// With credits a long costs 2 and both halves are paid for, so a source that holds at most `c`
    /// credits has at most `c / 2` halves here.
    #[must_use]
    pub fn new(most: usize, most_per_source: usize) -> Self {
        Self {
            halves: BTreeMap::new(),
            most,
            most_per_source,
            peak: 0,
        }
    }

    /// A header has come.
    ///
    /// Gives both halves back if the data is there.
    ///
    /// # Errors
    /// It came twice, or cannot be kept. Nothing has changed then.
    pub fn header(&mut self, source: u32, lid: u32, header: H) -> Result<Option<(H, D)>, LidError> {
        match self.halves.remove(&(source, lid)) {
            Some(Half::Data(data)) => Ok(Some((header, data))),
            Some(first @ Half::Header(_)) => self.twice(source, lid, first),
            None => self.keep(source, lid, Half::Header(header)),
        }
    }

    /// The data of a long has come to its place.
    ///
    /// Gives both halves back if the header is there.
    ///
    /// # Errors
    /// It came twice, or cannot be kept. Nothing has changed then.
    pub fn data(&mut self, source: u32, lid: u32, data: D) -> Result<Option<(H, D)>, LidError> {
        match self.halves.remove(&(source, lid)) {
            Some(Half::Header(header)) => Ok(Some((header, data))),
            Some(first @ Half::Data(_)) => self.twice(source, lid, first),
            None => self.keep(source, lid, Half::Data(data)),
        }
    }

    fn twice(
        &mut self,
        source: u32,
        lid: u32,
        first: Half<H, D>,
    ) -> Result<Option<(H, D)>, LidError> {
        let half = name(&first);
        self.halves.insert((source, lid), first);
        Err(LidError::Twice {
            half,
            lid,
            source_rank: source,
        })
    }

    fn keep(
        &mut self,
        source: u32,
        lid: u32,
        half: Half<H, D>,
    ) -> Result<Option<(H, D)>, LidError> {
        let full = |kept, most| LidError::Full {
            half: name(&half),
            lid,
            source_rank: source,
            kept,
            most,
        };
        let times = match half {
            Half::Header(_) => 1,
            Half::Data(_) => 2,
        };
        let (most, most_per_source) = (times * self.most, times * self.most_per_source);
        if self.halves.len() >= most {
            return Err(full(self.halves.len(), most));
        }
        let of_source = self.of(source);
        if of_source >= most_per_source {
            return Err(full(of_source, most_per_source));
        }
        self.halves.insert((source, lid), half);
        self.peak = self.peak.max(self.halves.len());
        Ok(None)
    }

    /// Whether a header could be kept, or finds its data.
    #[must_use]
    pub fn has_room(&self, source: u32, lid: u32) -> bool {
        let room = self.halves.len() < self.most && self.of(source) < self.most_per_source;
        room || self.halves.contains_key(&(source, lid))
    }

    /// Halves of one source.
    #[must_use]
    pub fn of(&self, source: u32) -> usize {
        self.halves.range((source, 0)..=(source, u32::MAX)).count()
    }

    /// Halves that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.halves.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.halves.is_empty()
    }

    /// Most that have waited at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak
    }

    /// A peer is lost: its halves go.
    ///
    /// Returns how many.
    pub fn forget(&mut self, source: u32) -> usize {
        let before = self.halves.len();
        self.halves.retain(|(from, _), _| *from != source);
        before - self.halves.len()
    }
}

fn name<H, D>(half: &Half<H, D>) -> &'static str {
    match half {
        Half::Header(_) => "header",
        Half::Data(_) => "data",
    }
}

/// Numbers for the longs of one sender: counted, and begun again when the field is full.
///
/// A number is used again after 2^`bits` longs. As a sender has at most some thousand under way,
/// none is in use then; 16 bits at least are asked for, so that this holds for every field.
#[derive(Clone, Debug)]
pub struct Lids {
    next: u32,
    mask: u32,
}

impl Lids {
    /// Numbers of a field of `bits`; `None` if it has less than 16 or more than 32.
    #[must_use]
    pub fn new(bits: u32) -> Option<Self> {
        (16..=32).contains(&bits).then(|| Self {
            next: 0,
            mask: u32::MAX >> (32 - bits),
        })
    }

    /// The number of the next long.
    pub fn draw(&mut self) -> u32 {
        let lid = self.next;
        self.next = lid.wrapping_add(1) & self.mask;
        lid
    }
}
