//! Values that peers name by a number.

/// Bits of a key that are the place; the others are its generation, how often it was used.
const PLACE_BITS: u32 = 16;

/// Values by keys, each a place of 16 bits and a generation of `GENERATION_BITS` bits; no key is 0.
///
/// A place that is used again has the next generation, so that a late answer to an operation that
/// is over finds nothing, until the generations begin anew.
#[derive(Debug)]
pub(crate) struct Keyed<T, const GENERATION_BITS: u32> {
    places: Vec<(u16, Option<T>)>,
    free: Vec<u16>,
    /// The generation before the first one of a new place.
    begun: u16,
}

impl<T, const GENERATION_BITS: u32> Default for Keyed<T, GENERATION_BITS> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<T, const GENERATION_BITS: u32> Keyed<T, GENERATION_BITS> {
    /// Has memory for so many values.
    pub(crate) fn with_room(count: usize) -> Self {
        const { assert!(GENERATION_BITS > 0 && GENERATION_BITS <= u16::BITS) };
        Self {
            places: Vec::with_capacity(count),
            free: Vec::with_capacity(count),
            begun: 0,
        }
    }

    const GENERATIONS: u16 = u16::MAX >> (u16::BITS - GENERATION_BITS);

    /// Frees the memory if there is no value.
    ///
    /// New places begin behind the highest generation, so that a late answer still finds nothing.
    pub(crate) fn free_memory(&mut self) {
        if self.len() > 0 {
            return;
        }
        let since = |generation: u16| generation.wrapping_sub(self.begun) & Self::GENERATIONS;
        let passed = self
            .places
            .iter()
            .map(|(generation, _)| since(*generation))
            .max();
        *self = Self {
            begun: self.begun.wrapping_add(passed.unwrap_or(0)) & Self::GENERATIONS,
            ..Self::default()
        };
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
            self.places.push((self.begun, None));
            place
        });
        let (generation, kept) = &mut self.places[usize::from(place)];
        // Never 0.
        *generation = (generation.wrapping_add(1) & Self::GENERATIONS).max(1);
        *kept = Some(value);
        u32::from(*generation) << PLACE_BITS | u32::from(place)
    }

    /// The value with a key, if it is there.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        let (generation, value) = self.places.get_mut(usize::from(key as u16))?;
        if u32::from(*generation) != key >> PLACE_BITS {
            return None;
        }
        value.as_mut()
    }

    /// Takes the value with a key out, if it is there.
    #[inline]
    pub(crate) fn remove(&mut self, key: u32) -> Option<T> {
        let (generation, value) = self.places.get_mut(usize::from(key as u16))?;
        if u32::from(*generation) != key >> PLACE_BITS {
            return None;
        }
        let value = value.take()?;
        self.free.push(key as u16);
        Some(value)
    }

    /// Takes all values out.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(T)) {
        for (place, (_, value)) in self.places.iter_mut().enumerate() {
            if let Some(value) = value.take() {
                self.free.push(place as u16);
                take(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_from_before_the_memory_was_freed_find_nothing() {
        let mut keyed = Keyed::<_, 16>::default();
        let first = [keyed.insert(1), keyed.insert(2)];
        keyed.free_memory();
        assert_eq!(keyed.len(), 2, "values are kept");
        first.iter().for_each(|key| _ = keyed.remove(*key));
        let mut old = first.to_vec();
        // One place is used more often than the other.
        for value in 0..3 {
            let key = keyed.insert(value);
            old.push(key);
            keyed.remove(key);
        }
        keyed.free_memory();
        assert_eq!(keyed.buffer_bytes(), 0);
        for value in 0..3 {
            let key = keyed.insert(value);
            assert!(!old.contains(&key), "{key:#x}");
        }
        assert!(old.iter().all(|key| keyed.remove(*key).is_none()));
        assert_eq!(keyed.len(), 3);
    }

    #[test]
    fn drained_values_are_gone_and_their_places_free() {
        let mut keyed = Keyed::<_, 16>::default();
        let keys = [1, 2, 3].map(|value| keyed.insert(value));
        assert_eq!(keyed.remove(keys[1]), Some(2));
        let mut drained = Vec::new();
        keyed.drain(|value| drained.push(value));
        assert_eq!((drained, keyed.len()), (vec![1, 3], 0));
        assert!(keys.iter().all(|key| keyed.get_mut(*key).is_none()));
        let again = [4, 5, 6].map(|value| keyed.insert(value));
        assert!(again.iter().all(|key| !keys.contains(key)));
        assert_eq!((keyed.len(), keyed.places.len()), (3, 3));
    }

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
