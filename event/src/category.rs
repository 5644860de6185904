//! The categories that distinguish implicit operations and leaf events (GASNet's `GEX_EC_*`).

use core::ops::BitOr;

/// The kind of completion that an implicit operation or a leaf event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// A get is complete: its data lies in the local destination.
    Get = 0,
    /// A put is complete: its data lies in the remote memory and its source is reusable.
    Put = 1,
    /// The payload of an active message is reusable.
    Am = 2,
    /// The source of a put is reusable (local completion).
    Lc = 3,
    /// A remote atomic operation is complete.
    Rmw = 4,
}

impl Category {
    /// Every category, in the order of their discriminants.
    pub const ALL: [Self; 5] = [Self::Get, Self::Put, Self::Am, Self::Lc, Self::Rmw];

    /// The number of categories.
    pub const COUNT: usize = Self::ALL.len();

    /// The mask that holds this category alone.
    #[must_use]
    pub const fn mask(self) -> CategoryMask {
        CategoryMask(1 << self as u8)
    }
}

/// A set of categories, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CategoryMask(u8);

impl CategoryMask {
    /// No category; a test of it succeeds at once.
    pub const NONE: Self = Self(0);
    /// All categories (`GEX_EC_ALL`).
    pub const ALL: Self = Self((1 << Category::COUNT) - 1);

    /// The mask with these bits, bit `c as u8` standing for category `c`, or `None` if a bit names
    /// no category.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !Self::ALL.0 == 0 {
            Some(Self(bits))
        } else {
            None
        }
    }

    /// The bits, as [`CategoryMask::from_bits`] takes them.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether `category` is in the set.
    #[must_use]
    pub const fn contains(self, category: Category) -> bool {
        self.0 & category.mask().0 != 0
    }

    /// The categories in the set.
    pub(crate) fn iter(self) -> impl Iterator<Item = Category> {
        Category::ALL
            .into_iter()
            .filter(move |&category| self.contains(category))
    }
}

impl BitOr for CategoryMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Category {
    type Output = CategoryMask;

    fn bitor(self, other: Self) -> CategoryMask {
        self.mask() | other.mask()
    }
}

impl From<Category> for CategoryMask {
    fn from(category: Category) -> Self {
        category.mask()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_hold_what_was_put_in() {
        let mask = Category::Put | Category::Rmw;
        assert!(mask.iter().eq([Category::Put, Category::Rmw]));
        assert!(CategoryMask::ALL.iter().eq(Category::ALL));
        assert_eq!(CategoryMask::NONE.iter().count(), 0);
    }

    #[test]
    fn bits_without_a_category_are_refused() {
        assert_eq!(CategoryMask::from_bits(0x1f), Some(CategoryMask::ALL));
        assert_eq!(CategoryMask::from_bits(0x20), None);
    }
}
