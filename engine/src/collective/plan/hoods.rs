//! Which members of a team are neighbors.

/// The neighborhoods of a team, in the order of their lowest ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hoods {
    size: u32,
    /// By rank; empty if there is one neighborhood alone.
    of: Box<[u32]>,
    /// Ranks of each, ascending; empty if there is one neighborhood alone.
    members: Box<[Box<[u32]>]>,
    /// The ranks of each follow each other.
    contiguous: bool,
}

/// Some members of a team in an order.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group<'a> {
    /// Ranks `first..first + count`.
    Run { first: u32, count: u32 },
    /// Ascending ranks.
    List(&'a [u32]),
    /// Ranks in any order.
    Order(&'a [u32]),
    /// The lowest rank of each neighborhood.
    Leaders(&'a Hoods),
    /// The highest of each.
    Lasts(&'a Hoods),
}

impl Group<'_> {
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Run { count, .. } => *count,
            Self::List(ranks) | Self::Order(ranks) => ranks.len() as u32,
            Self::Leaders(hoods) | Self::Lasts(hoods) => hoods.count(),
        }
    }

    pub(super) fn rank(&self, at: u32) -> u32 {
        match self {
            Self::Run { first, .. } => first + at,
            Self::List(ranks) | Self::Order(ranks) => ranks[at as usize],
            Self::Leaders(hoods) => hoods.leader(at),
            Self::Lasts(hoods) => {
                let group = hoods.group(at);
                group.rank(group.len() - 1)
            }
        }
    }

    /// Where a member stands in it; it is one of them.
    pub(super) fn position(&self, rank: u32) -> u32 {
        match self {
            Self::Run { first, .. } => rank - first,
            Self::List(ranks) => ranks.partition_point(|&other| other < rank) as u32,
            Self::Order(ranks) => ranks.iter().take_while(|&&other| other != rank).count() as u32,
            Self::Leaders(hoods) | Self::Lasts(hoods) => hoods.of(rank),
        }
    }
}

impl Hoods {
    /// The neighborhoods of a team whose members are all neighbors.
    #[must_use]
    pub fn one(size: u32) -> Self {
        Self {
            size,
            of: Box::default(),
            members: Box::default(),
            contiguous: true,
        }
    }

    /// The neighborhoods of a team in which `place` gives the place of a rank.
    #[must_use]
    pub fn new(size: u32, place: impl Fn(u32) -> u32) -> Self {
        let mut names: Vec<u32> = Vec::new();
        let mut index = std::collections::HashMap::new();
        let of: Box<[u32]> = (0..size)
            .map(|rank| {
                *index.entry(place(rank)).or_insert_with(|| {
                    names.push(rank);
                    names.len() as u32 - 1
                })
            })
            .collect();
        if names.len() <= 1 {
            return Self::one(size);
        }
        let mut members = vec![Vec::new(); names.len()];
        for (rank, hood) in (0..).zip(&of) {
            members[*hood as usize].push(rank);
        }
        let contiguous = of.windows(2).all(|pair| pair[0] <= pair[1]);
        Self {
            size,
            of,
            members: members.into_iter().map(Vec::into_boxed_slice).collect(),
            contiguous,
        }
    }

    /// Members of the team.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Neighborhoods.
    #[must_use]
    pub fn count(&self) -> u32 {
        (self.members.len() as u32).max(1)
    }

    /// Members of the smallest and of the largest neighborhood.
    #[must_use]
    pub fn extent(&self) -> (u32, u32) {
        let sizes = || self.members.iter().map(|ranks| ranks.len() as u32);
        let all = |extreme: Option<u32>| extreme.unwrap_or(self.size);
        (all(sizes().min()), all(sizes().max()))
    }

    /// Whether neighbors have ranks that follow each other.
    #[must_use]
    pub fn are_contiguous(&self) -> bool {
        self.contiguous
    }

    /// The neighborhood of a rank.
    #[must_use]
    pub fn of(&self, rank: u32) -> u32 {
        self.of.get(rank as usize).copied().unwrap_or(0)
    }

    /// Its lowest rank.
    #[must_use]
    pub fn leader(&self, hood: u32) -> u32 {
        self.members.get(hood as usize).map_or(0, |ranks| ranks[0])
    }

    pub(super) fn group(&self, hood: u32) -> Group<'_> {
        match self.members.get(hood as usize) {
            Some(ranks) => Group::List(ranks),
            None => self.all_ranks(),
        }
    }

    /// All ranks, neighbors after each other.
    pub(super) fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.count()).flat_map(|hood| {
            let group = self.group(hood);
            (0..group.len()).map(move |at| group.rank(at))
        })
    }

    pub(super) fn leaders(&self) -> Group<'_> {
        Group::Leaders(self)
    }

    pub(super) fn all_ranks(&self) -> Group<'_> {
        let (first, count) = (0, self.size);
        Group::Run { first, count }
    }
}
