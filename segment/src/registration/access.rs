//! Mapped memory of this process, as the kernel shows it in `/proc/self/maps`, behind a registrar,
//! so that a cache keeps the results within limits and forgets them on request.

use std::fs;

use super::{PageRange, Refused, Registrar};

/// Permitted access to pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// They can be read.
    Read,
    /// They can be read and written.
    ReadWrite,
}

/// Why pages cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotMapped {
    /// Nothing readable is there.
    #[error("nothing that can be read is mapped at {at:#x}")]
    Hole {
        /// The first such address.
        at: usize,
    },
    /// Some can be written and some cannot.
    #[error("memory before {at:#x} can be written, that behind cannot, or the other way round")]
    Mixed {
        /// Where it changes.
        at: usize,
    },
    /// The kernel does not show the mappings.
    #[error("/proc/self/maps cannot be read: {0}")]
    Unknown(String),
}

/// The mapped memory of this process.
#[derive(Clone, Copy, Default, Debug)]
pub struct MappedMemory;

impl MappedMemory {
    /// Permitted access to all of a range, as it is now.
    ///
    /// # Errors
    /// Some of it is not mapped, or the kernel does not show it.
    pub fn probe(self, range: PageRange) -> Result<Access, NotMapped> {
        match Self::uniform(range)? {
            (access, None) => Ok(access),
            (_, Some(_)) => Ok(Access::Read),
        }
    }

    /// Permitted access to the beginning of a range, and the address where it changes within the
    /// range.
    fn uniform(range: PageRange) -> Result<(Access, Option<usize>), NotMapped> {
        let maps = fs::read_to_string("/proc/self/maps");
        let maps = maps.map_err(|error| NotMapped::Unknown(error.to_string()))?;
        look(&maps, range)
    }
}

/// The same, by lines of that file.
fn look(maps: &str, range: PageRange) -> Result<(Access, Option<usize>), NotMapped> {
    let (mut at, mut access, mut change) = (range.start(), None, None);
    for line in maps.lines() {
        let Some((start, end, now)) = parse(line) else {
            return Err(NotMapped::Unknown(format!("`{line}` is no mapping")));
        };
        if end <= at {
            continue;
        }
        let (true, Some(now)) = (start <= at, now) else {
            break;
        };
        if *access.get_or_insert(now) != now {
            change.get_or_insert(at);
        }
        at = end;
        if at >= range.end() {
            return Ok((access.unwrap_or(now), change));
        }
    }
    Err(NotMapped::Hole { at })
}

/// Begin and end of a mapping, and the permitted access to it.
fn parse(line: &str) -> Option<(usize, usize, Option<Access>)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let access = match words.next()?.as_bytes() {
        [b'r', b'w', ..] => Some(Access::ReadWrite),
        [b'r', ..] => Some(Access::Read),
        [_, _, ..] => None,
        _ => return None,
    };
    let address = |text| usize::from_str_radix(text, 16).ok();
    // The page of virtual system calls lies above what a process can map.
    Some((address(start)?, address(end)?, access))
}

impl Registrar for MappedMemory {
    type Handle = Access;
    type Error = NotMapped;

    /// Takes ranges whose pages are all alike.
    fn register(&self, range: PageRange) -> Result<Access, Refused<NotMapped>> {
        match Self::uniform(range) {
            Ok((access, None)) => Ok(access),
            Ok((_, Some(at))) => Err(Refused::Failed(NotMapped::Mixed { at })),
            Err(why) => Err(Refused::Failed(why)),
        }
    }

    fn deregister(&self, _range: PageRange, _access: &Access) {}
}

#[cfg(test)]
mod tests {
    use super::{Access, MappedMemory, NotMapped, look};
    use crate::registration::PageRange;

    const MAPS: &str = "1000-3000 r--p 00000000 00:00 0 /a file\n\
                        3000-5000 rw-p 00000000 00:00 0\n\
                        6000-7000 ---p 00000000 00:00 0\n\
                        7000-8000 rw-s 00000000 00:00 0\n\
                        8000-9000 rw-p 00000000 00:00 0 [heap]\n";

    fn range(start: usize, end: usize) -> PageRange {
        PageRange::around(start, end - start, 0x1000).unwrap()
    }

    #[test]
    fn lines_are_read() {
        use Access::{Read, ReadWrite};
        let look = |start, end| look(MAPS, range(start, end));
        assert_eq!(look(0x1000, 0x3000), Ok((Read, None)));
        assert_eq!(look(0x3000, 0x4000), Ok((ReadWrite, None)));
        assert_eq!(look(0x7000, 0x9000), Ok((ReadWrite, None)));
        assert_eq!(look(0x2000, 0x4000), Ok((Read, Some(0x3000))));
        let hole = |at| Err(NotMapped::Hole { at });
        assert_eq!(look(0x4000, 0x6000), hole(0x5000));
        assert_eq!(look(0x6000, 0x8000), hole(0x6000));
        assert_eq!(look(0x8000, 0xa000), hole(0x9000));
        assert_eq!(look(0, 0x1000), hole(0));
        assert!(super::look("what", range(0, 1)).is_err());
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        static CONSTANT: [u8; 3] = [1, 2, 3];
        let own = vec![0u8; 1 << 20];
        let page = rustix::param::page_size();
        let probe =
            |address, len| MappedMemory.probe(PageRange::around(address, len, page).unwrap());
        assert_eq!(probe(own.as_ptr().addr(), own.len()), Ok(Access::ReadWrite));
        assert!(probe(CONSTANT.as_ptr().addr(), 3).is_ok());
        assert_eq!(probe(page, 8), Err(NotMapped::Hole { at: page }));
    }
}
