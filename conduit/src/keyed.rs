//! Values that peers name by a number.

/// Bits of a key that are the place; the others say how often that was used before.
const PLACE_BITS: u32 = 16;

/// Values by keys of 16 and `TURN_BITS` bits, none of which is 0.
///
/// A place that is used again has another key, so a late answer to what was there before finds
/// nothing.
#[derive(Debug)]
pub(crate) struct Keyed<T, const TURN_BITS: u32> {
    places: Vec<(u16, Option<T>)>,
    free: Vec<u16>,
}

impl<T, const TURN_BITS: u32> Default for Keyed<T, TURN_BITS> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<T, const TURN_BITS: u32> Keyed<T, TURN_BITS> {
    /// Has memory for so many values.
    pub(crate) fn with_room(count: usize) -> Self {
        const { assert!(TURN_BITS > 0 && TURN_BITS <= u16::BITS) };
        Self {
            places: Vec::with_capacity(count),
            free: Vec::with_capacity(count),
        }
    }

    /// How many values there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Bytes of its memory.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.places.capacity() * size_of::<(u16, Option<T>)>()
            + self.free.capacity() * size_of::<u16>()
    }

    /// Keeps a value; its key.
    ///
    /// # Panics
    /// If there are 65,536.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            let place = u16::try_from(self.places.len()).expect("a place of 16 bits");
            self.places.push((0, None));
            place
        });
        let (turn, kept) = &mut self.places[usize::from(place)];
        // Never 0.
        *turn = (turn.wrapping_add(1) & (u16::MAX >> (u16::BITS - TURN_BITS))).max(1);
        *kept = Some(value);
        u32::from(*turn) << PLACE_BITS | u32::from(place)
    }

    /// The value with a key, if it is there.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let (turn, value) = self.places.get_mut(usize::from(key as u16))?;
        if u32::from(*turn) != key >> PLACE_BITS {
            return None;
        }
        value.as_mut()
    }

    /// Takes the value with a key out, if it is there.
    #[inline]
    pub(crate) fn remove(&mut self, key: u32) -> Option<T> {
        let (turn, value) = self.places.get_mut(usize::from(key as u16))?;
        if u32::from(*turn) != key >> PLACE_BITS {
            return None;
        }
        let value = value.take()?;
        self.free.push(key as u16);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_until_that_is_taken_out() {
        let mut keyed = Keyed::<_, 2>::default();
        let keys = ['a', 'b'].map(|value| keyed.insert(value));
        assert_eq!(keyed.get_mut(keys[1]), Some(&mut 'b'));
        assert_eq!((keyed.remove(keys[0]), keyed.len()), (Some('a'), 1));
        assert_eq!(keyed.remove(keys[0]), None);
        let next = keyed.insert('c');
        assert_ne!(next, keys[0]);
        // Taken out, never there, beyond the places.
        for none in [keys[0], 0, 1 << 16 | 2] {
            assert_eq!(keyed.get_mut(none), None, "{none:#x}");
        }
        assert_eq!(keyed.get_mut(next), Some(&mut 'c'));
    }

    #[test]
    fn no_key_is_0_and_all_fit_their_bits() {
        let mut keyed = Keyed::<_, 2>::default();
        for _ in 0..9 {
            let key = keyed.insert(());
            assert!((1..1 << 18).contains(&key), "{key:#x}");
            assert_eq!(keyed.remove(key), Some(()));
        }
        assert!(keyed.buffer_bytes() > 0);
    }
}
