//! Random shapes, and the place of each byte of them.

use crate::vis::{Piece, Pieces, Shape, Strided};
use proptest::prelude::*;

/// One side of a strided transfer.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    strides: Vec<isize>,
    /// Of the first element.
    at: usize,
    /// Bytes of memory that it needs.
    pub(super) len: usize,
}

impl Layout {
    /// Elements that do not overlap: dimensions lie in each other in an order, with gaps, and some
    /// run backwards.
    fn new(
        counts: &[usize],
        element: usize,
        order: &[usize],
        gaps: &[usize],
        backwards: &[bool],
    ) -> Self {
        let mut strides = vec![0; counts.len()];
        let (mut at, mut len) = (0, element);
        for (place, &dim) in order.iter().enumerate() {
            let stride = len + gaps[place];
            let steps = counts[dim].max(1) - 1;
            strides[dim] = stride as isize;
            if backwards[dim] {
                strides[dim] = -(stride as isize);
                at += stride * steps;
            }
            len += stride * steps;
        }
        Self { strides, at, len }
    }

    fn address(&self, index: &[usize]) -> usize {
        let steps = index.iter().zip(&self.strides);
        let way: isize = steps.map(|(i, stride)| *i as isize * stride).sum();
        self.at.wrapping_add_signed(way)
    }
}

/// A transfer whose addresses begin at 0 on both sides.
#[derive(Clone, Debug)]
pub(super) enum Case {
    Strided {
        counts: Vec<usize>,
        element: usize,
        to: Layout,
        from: Layout,
    },
    Pieces {
        to: List,
        from: List,
    },
}

#[derive(Clone, Debug)]
pub(super) struct List {
    /// Where pieces begin, and their lengths.
    pieces: Vec<(usize, usize)>,
    /// Of all pieces, if it is an indexed one.
    len: Option<usize>,
    needs: usize,
}

impl List {
    fn bytes(&self) -> impl Iterator<Item = usize> + '_ {
        self.pieces.iter().flat_map(|(at, len)| *at..*at + *len)
    }

    fn with<R>(&self, base: usize, f: impl FnOnce(Pieces<'_>) -> R) -> R {
        let addresses: Vec<usize> = self.pieces.iter().map(|(at, _)| base + at).collect();
        if let Some(len) = self.len {
            return f(Pieces::Indexed {
                addresses: &addresses,
                len,
            });
        }
        let pieces = addresses.iter().zip(&self.pieces);
        let pieces: Vec<Piece> = pieces
            .map(|(&address, &(_, len))| Piece { address, len })
            .collect();
        f(Pieces::Vector(&pieces))
    }
}

impl Case {
    /// Bytes of memory at destination and source.
    pub(super) fn needs(&self) -> (usize, usize) {
        match self {
            Self::Strided { to, from, .. } => (to.len, from.len),
            Self::Pieces { to, from } => (to.needs, from.needs),
        }
    }

    /// Each byte's place at the destination and at the source, one by one.
    pub(super) fn pairs(&self) -> Vec<(usize, usize)> {
        match self {
            Self::Pieces { to, from } => to.bytes().zip(from.bytes()).collect(),
            Self::Strided {
                counts,
                element,
                to,
                from,
            } => {
                let mut pairs = Vec::new();
                let all = counts.iter().product();
                for number in 0..all {
                    let mut rest = number;
                    let index: Vec<usize> = { counts.iter() }
                        .map(|count| {
                            let at = rest % count;
                            rest /= count;
                            at
                        })
                        .collect();
                    let (to, from) = (to.address(&index), from.address(&index));
                    pairs.extend((0..*element).map(|byte| (to + byte, from + byte)));
                }
                pairs
            }
        }
    }

    /// The destination's memory afterwards.
    pub(super) fn applied(&self, to: &[u8], from: &[u8]) -> Vec<u8> {
        let mut after = to.to_vec();
        for (to_at, from_at) in self.pairs() {
            after[to_at] = from[from_at];
        }
        after
    }

    /// The shape with its addresses where memory is.
    pub(super) fn with<R>(&self, to: usize, from: usize, f: impl FnOnce(Shape<'_>) -> R) -> R {
        match self {
            Self::Strided {
                counts,
                element,
                to: to_layout,
                from: from_layout,
            } => f(Shape::Strided(Strided {
                to: to + to_layout.at,
                to_strides: &to_layout.strides,
                from: from + from_layout.at,
                from_strides: &from_layout.strides,
                element: *element,
                counts,
            })),
            Self::Pieces {
                to: to_list,
                from: from_list,
            } => to_list.with(to, |to| {
                from_list.with(from, |from| f(Shape::Pieces { to, from }))
            }),
        }
    }
}

fn strided() -> impl Strategy<Value = Case> {
    let sizes = prop_oneof![
        Just(1usize),
        Just(2),
        Just(4),
        Just(8),
        Just(16),
        0usize..40,
        Just(100)
    ];
    (0usize..=5, sizes).prop_flat_map(|(levels, element)| {
        let counts = prop::collection::vec(prop_oneof![8 => 1usize..4, 1 => Just(0)], levels);
        let order = Just((0..levels).collect::<Vec<_>>()).prop_shuffle();
        let gaps = || prop::collection::vec(prop_oneof![2 => Just(0usize), 1 => 1usize..6], levels);
        let flags = || prop::collection::vec(any::<bool>(), levels);
        let side = (order, gaps(), flags());
        let again = Just((0..levels).collect::<Vec<_>>()).prop_shuffle();
        let other = (again, gaps(), flags());
        let repeats = prop::option::weighted(0.2, 0..levels.max(1));
        (counts, side, other, repeats).prop_map(move |(counts, to, from, repeats)| {
            let to = Layout::new(&counts, element, &to.0, &to.1, &to.2);
            let mut from = Layout::new(&counts, element, &from.0, &from.1, &from.2);
            // Sources may repeat.
            if let Some(stride) = repeats.and_then(|dim| from.strides.get_mut(dim))
                && *stride > 0
            {
                *stride = 0;
            }
            Case::Strided {
                counts,
                element,
                to,
                from,
            }
        })
    })
}

/// Places for pieces that do not overlap, in any order.
fn spread(lens: Vec<usize>, gap: usize, len: Option<usize>, order: &[usize]) -> List {
    let mut pieces = vec![(0, 0); lens.len()];
    let mut at = 0;
    for &entry in order {
        pieces[entry] = (at, lens[entry]);
        at += lens[entry] + gap;
    }
    List {
        pieces,
        len,
        needs: at,
    }
}

/// The same bytes, cut at these places, with nothing between two that are the same.
fn cut(total: usize, mut cuts: Vec<usize>) -> Vec<usize> {
    cuts.iter_mut()
        .for_each(|at| *at = at.checked_rem(total).unwrap_or(0));
    cuts.extend([0, total]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn vector() -> impl Strategy<Value = Case> {
    let cuts = || prop::collection::vec(any::<usize>(), 0..40);
    let total = prop_oneof![1 => Just(0usize), 5 => 1usize..400, 5 => 400usize..6000];
    (total, cuts(), cuts(), 0usize..4, any::<bool>())
        .prop_flat_map(|(total, to, from, gap, overlap)| {
            let (to, from) = (cut(total, to), cut(total, from));
            let order =
                |lens: &Vec<usize>| Just((0..lens.len()).collect::<Vec<_>>()).prop_shuffle();
            let orders = (order(&to), order(&from));
            (Just((to, from, gap, overlap)), orders)
        })
        .prop_map(|((to, from, gap, overlap), (to_order, from_order))| {
            let to = spread(to, gap, None, &to_order);
            let mut from = spread(from, gap, None, &from_order);
            if overlap {
                from.pieces.iter_mut().for_each(|(at, _)| *at /= 2);
            }
            Case::Pieces { to, from }
        })
}

fn indexed() -> impl Strategy<Value = Case> {
    let factor = prop_oneof![3 => 1usize..10, 1 => Just(64), 1 => Just(0)];
    (factor, 1usize..5, 1usize..5, 0usize..30, 0usize..4)
        .prop_flat_map(|(factor, a, b, many, gap)| {
            let order = |count: usize| Just((0..count).collect::<Vec<_>>()).prop_shuffle();
            let orders = (order(b * many), order(a * many));
            (Just((factor, a, b, gap)), orders)
        })
        .prop_map(|((factor, a, b, gap), (to, from))| {
            let side =
                |len: usize, order: &[usize]| spread(vec![len; order.len()], gap, Some(len), order);
            Case::Pieces {
                to: side(factor * a, &to),
                from: side(factor * b, &from),
            }
        })
}

/// A vector on one side, pieces of one length on the other.
fn mixed() -> impl Strategy<Value = Case> {
    (indexed(), any::<bool>(), any::<bool>()).prop_map(|(case, to_is, from_is)| match case {
        Case::Pieces { mut to, mut from } => {
            to.len = to.len.filter(|_| to_is);
            from.len = from.len.filter(|_| from_is);
            Case::Pieces { to, from }
        }
        other => other,
    })
}

pub(super) fn any_case() -> impl Strategy<Value = Case> {
    prop_oneof![3 => strided(), 2 => vector(), 2 => indexed(), 1 => mixed()]
}

pub(super) fn any_strided() -> impl Strategy<Value = Case> {
    strided()
}
