//! Lists that are short nearly always, and then take no memory of their own.

use core::ops::{Deref, DerefMut};

const INLINE: usize = 6;

/// A list whose first elements need no allocation.
#[derive(Clone, Debug)]
pub struct Few<T> {
    inline: [T; INLINE],
    len: usize,
    /// All elements, once there are more.
    rest: Vec<T>,
}

impl<T: Copy + Default> Few<T> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inline: [T::default(); INLINE],
            len: 0,
            rest: Vec::new(),
        }
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.rest.is_empty() && self.len < INLINE {
            self.inline[self.len] = value;
            self.len += 1;
            return;
        }
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&self.inline);
        }
        self.rest.push(value);
    }

    /// Takes out the value at `at`; those behind it move up.
    ///
    /// # Panics
    /// There is none.
    pub fn remove(&mut self, at: usize) {
        if !self.rest.is_empty() {
            self.rest.remove(at);
            if self.rest.is_empty() {
                self.len = 0;
            }
            return;
        }
        self.inline.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }
}

impl<T: Copy + Default> Default for Few<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        if self.rest.is_empty() {
            &self.inline[..self.len]
        } else {
            &self.rest
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.rest.is_empty() {
            &mut self.inline[..self.len]
        } else {
            &mut self.rest
        }
    }
}

impl<T: Copy + Default> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut few = Self::new();
        values.into_iter().for_each(|value| few.push(value));
        few
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_lists_are_the_same() {
        for len in 0..20 {
            let mut few: Few<usize> = (0..len).collect();
            let mut list: Vec<usize> = (0..len).collect();
            assert_eq!(*few, *list);
            while !list.is_empty() {
                let at = list.len() * 2 / 3;
                few.remove(at);
                list.remove(at);
                assert_eq!(*few, *list);
                few.iter_mut().for_each(|value| *value += 1);
                list.iter_mut().for_each(|value| *value += 1);
            }
            few.push(7);
            assert_eq!(*few, [7]);
        }
    }
}
