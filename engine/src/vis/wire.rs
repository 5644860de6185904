//! How messages name runs of memory: by their addresses, those of one length together, or by a
//! lattice and a place in it.
//!
//! All numbers are little-endian.
//!
//! ```text
//! addresses   | len | count | count addresses | len | count | ...
//!             0     4       8
//! lattice     | first | run | index | within | count | stride | count | stride | ...
//!             0       8     16      24       32      40
//! ```

use super::lattice::Lattice;
use super::shape::Piece;
use super::walk::{Place, Runs, Walk};
use argonet_segment::SharedBytes;

/// Which of the two it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Naming {
    Addresses,
    Lattice,
}

impl Naming {
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Addresses => 0,
            Self::Lattice => 1,
        }
    }

    pub(super) fn of_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::Addresses),
            1 => Some(Self::Lattice),
            _ => None,
        }
    }
}

const GROUP: usize = 8;
const ADDRESS: usize = 8;
const LATTICE: usize = 32;
const AXIS: usize = 16;

/// Bytes of a lattice's name.
pub(super) fn lattice_bytes(lattice: &Lattice) -> usize {
    LATTICE + lattice.axes.len() * AXIS
}

/// Names a lattice, from a place on.
pub(super) fn name_lattice(name: &mut Vec<u8>, lattice: &Lattice, from: Place) {
    name.clear();
    for number in [lattice.first, lattice.run, from.index, from.within] {
        name.extend_from_slice(&(number as u64).to_le_bytes());
    }
    for axis in &*lattice.axes {
        name.extend_from_slice(&(axis.count as u64).to_le_bytes());
        name.extend_from_slice(&(axis.stride as i64).to_le_bytes());
    }
}

/// Limits of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageLimits {
    /// Name and, if they travel with it, the bytes.
    pub(super) message: usize,
    /// The bytes.
    pub(super) bytes: usize,
    /// Whether they travel with the name.
    pub(super) carries: bool,
}

/// Names the next runs of a side by their addresses, as many as there is room for, and passes them;
/// how many bytes they are.
pub(super) fn name_addresses(
    name: &mut Vec<u8>,
    walk: &mut Walk<'_>,
    limits: MessageLimits,
) -> usize {
    name.clear();
    let mut bytes = 0;
    // Where the last group begins, and its length and count.
    let mut group: Option<(usize, u32, u32)> = None;
    while let Some((address, together)) = walk.now() {
        let mut len = together.min(limits.bytes - bytes).min(u32::MAX as usize);
        let carried = if limits.carries { bytes } else { 0 };
        let left = limits.message - name.len() - carried;
        // The bytes of a piece beside its address.
        let needs = |len: usize| if limits.carries { len } else { 0 };
        let joins = group.is_some_and(|(_, other, _)| other as usize == len)
            && left >= ADDRESS + needs(len);
        if !joins {
            if len == 0 || left < GROUP + ADDRESS + needs(1) {
                break;
            }
            if limits.carries {
                len = len.min(left - GROUP - ADDRESS);
            }
            group = Some((name.len(), len as u32, 0));
            name.extend_from_slice(&(len as u32).to_le_bytes());
            name.extend_from_slice(&0u32.to_le_bytes());
        }
        if let Some((at, _, count)) = &mut group {
            *count += 1;
            name[*at + 4..*at + 8].copy_from_slice(&count.to_le_bytes());
        }
        name.extend_from_slice(&(address as u64).to_le_bytes());
        walk.skip(len);
        bytes += len;
    }
    bytes
}

/// Runs that a message names, copied from it.
pub(super) struct Named {
    pieces: Vec<Piece>,
    lattice: Option<Lattice>,
    from: Place,
}

impl Named {
    /// Reads a name of runs that have so many bytes, or have them from their place on.
    ///
    /// `None` if it is none: peers are not believed.
    pub(super) fn read(naming: Naming, name: &SharedBytes<'_>, bytes: usize) -> Option<Self> {
        match naming {
            Naming::Addresses => Self::addresses(name, bytes),
            Naming::Lattice => Self::lattice(name, bytes),
        }
    }

    fn addresses(name: &SharedBytes<'_>, bytes: usize) -> Option<Self> {
        let mut pieces = Vec::with_capacity(name.len() / ADDRESS);
        let (mut at, mut total) = (0, 0usize);
        while at < name.len() {
            let len = u32::from_le_bytes(name.read(at).ok()?) as usize;
            let count = u32::from_le_bytes(name.read(at + 4).ok()?) as usize;
            at += GROUP;
            if len == 0 || count == 0 || count > (name.len() - at) / ADDRESS {
                return None;
            }
            total = total.checked_add(len.checked_mul(count)?)?;
            for _ in 0..count {
                let address = u64::from_le_bytes(name.read(at).ok()?);
                let address = usize::try_from(address).ok()?;
                address.checked_add(len)?;
                pieces.push(Piece { address, len });
                at += ADDRESS;
            }
        }
        (total == bytes).then_some(Self {
            pieces,
            lattice: None,
            from: Place::default(),
        })
    }

    fn lattice(name: &SharedBytes<'_>, bytes: usize) -> Option<Self> {
        let rest = name.len().checked_sub(LATTICE)?;
        if rest % AXIS != 0 {
            return None;
        }
        let number = |at| {
            let number = name.read(at).ok().map(u64::from_le_bytes);
            number.and_then(|number| usize::try_from(number).ok())
        };
        let (first, run) = (number(0)?, number(8)?);
        let (index, within) = (number(16)?, number(24)?);
        let mut axes = Vec::new();
        for at in (LATTICE..name.len()).step_by(AXIS) {
            let stride = i64::from_le_bytes(name.read(at + 8).ok()?);
            let (count, stride) = (number(at)?, isize::try_from(stride).ok()?);
            if count < 2 {
                return None;
            }
            axes.push((count, stride));
        }
        let given = axes.len();
        let lattice = Lattice::new(first, run, axes);
        // Merged already, so that the place means the same on both sides.
        if lattice.axes.len() != given || lattice.run != run || within >= run {
            return None;
        }
        lattice.hull()?;
        let all = run.checked_mul(lattice.runs()?)?;
        let before = run.checked_mul(index)?.checked_add(within)?;
        let inside = before.checked_add(bytes)? <= all;
        inside.then_some(Self {
            pieces: Vec::new(),
            lattice: Some(lattice),
            from: Place { index, within },
        })
    }

    /// The runs, and the place in them from which on bytes are meant.
    pub(super) fn runs(&self) -> (Runs<'_>, Place) {
        let runs = match &self.lattice {
            Some(lattice) => Runs::Lattice(lattice.clone()),
            None => Runs::Vector(&self.pieces),
        };
        (runs, self.from)
    }
}
