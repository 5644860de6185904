//! The table, by section.

pub(crate) mod collectives;
pub(crate) mod cray;
pub(crate) mod credits;
pub(crate) mod debug;
pub(crate) mod exit;
pub(crate) mod ibv;
pub(crate) mod libfabric;
pub(crate) mod libraries;
pub(crate) mod memory;
pub(crate) mod messages;
pub(crate) mod neighbors;
pub(crate) mod ssh;
pub(crate) mod start;
pub(crate) mod trace;
pub(crate) mod vis;
pub(crate) mod waiting;

use std::collections::HashMap;

use crate::conduits::CONDUITS;
use crate::row::Row;
use crate::setting::TypedConstant;

/// A part of the table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The subject of its rows.
    pub title: &'static str,
    used: &'static [TypedConstant],
    idle: &'static [Row],
}

impl Section {
    /// Its rows, those with an effect first.
    pub fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.used
            .iter()
            .map(|constant| constant.row)
            .chain(self.idle)
    }
}

pub(crate) const fn section(
    title: &'static str,
    used: &'static [TypedConstant],
    idle: &'static [Row],
) -> Section {
    Section { title, used, idle }
}

const BEFORE_CONDUITS: [Section; 2] = [
    section("Start of jobs", start::USED, start::IDLE),
    section("Start on other hosts", ssh::USED, ssh::IDLE),
];

const AFTER_CONDUITS: [Section; 14] = [
    section("Flow control by credits", credits::USED, &[]),
    section("Exit and time-outs", exit::USED, exit::IDLE),
    section("Backtraces and debuggers", debug::USED, debug::IDLE),
    section("Segments, memory, threads", memory::USED, memory::IDLE),
    section("Waiting", waiting::USED, &[]),
    section("Buffers of active messages", &[], messages::IDLE),
    section(
        "Collectives and barriers",
        collectives::USED,
        collectives::IDLE,
    ),
    section("Non-contiguous transfers", vis::USED, vis::IDLE),
    section("Tracing and statistics", trace::USED, &[]),
    section("InfiniBand (ibv)", &[], ibv::IDLE),
    section("libfabric and UCX", &[], libfabric::IDLE),
    section("Libraries loaded at run time", libraries::USED, &[]),
    section("Cray: aries, gemini, portals", &[], cray::IDLE),
    section("Neighboring systems", &[], neighbors::IDLE),
];

/// Conduits with settings of their own.
const OF_CONDUITS: usize = {
    let (mut count, mut at) = (0, 0);
    while at < CONDUITS.len() {
        count += CONDUITS[at].settings.is_some() as usize;
        at += 1;
    }
    count
};

const SECTIONS: usize = BEFORE_CONDUITS.len() + OF_CONDUITS + AFTER_CONDUITS.len();

const TABLE: [Section; SECTIONS] = {
    let mut all = [BEFORE_CONDUITS[0]; SECTIONS];
    let (mut to, mut at) = (0, 0);
    while at < BEFORE_CONDUITS.len() {
        all[to] = BEFORE_CONDUITS[at];
        (to, at) = (to + 1, at + 1);
    }
    at = 0;
    while at < CONDUITS.len() {
        if let Some(section) = CONDUITS[at].settings {
            all[to] = section;
            to += 1;
        }
        at += 1;
    }
    at = 0;
    while at < AFTER_CONDUITS.len() {
        all[to] = AFTER_CONDUITS[at];
        (to, at) = (to + 1, at + 1);
    }
    all
};

/// All sections.
#[must_use]
pub fn table() -> &'static [Section] {
    &TABLE
}

/// All rows.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    table().iter().flat_map(Section::rows)
}

/// Finds the rows of variables.
///
/// An environment has many, so the table is not gone through for each.
#[derive(Debug)]
pub struct Index {
    names: HashMap<&'static str, &'static Row>,
    patterns: Vec<&'static Row>,
}

impl Index {
    /// An index of the whole table.
    #[must_use]
    pub fn new() -> Self {
        let (names, patterns): (Vec<&Row>, Vec<&Row>) = rows().partition(|row| row.is_one_name());
        let names = names.into_iter().map(|row| (row.name, row)).collect();
        Self { names, patterns }
    }

    /// The row of a variable: that of its very name, else that of a pattern.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Row> {
        let exact = self.names.get(name).copied();
        exact.or_else(|| self.patterns.iter().copied().find(|row| row.matches(name)))
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

/// All rows with an effect, with the constants through which they are read.
pub fn typed_constants() -> impl Iterator<Item = &'static TypedConstant> {
    table().iter().flat_map(|section| section.used)
}

// Why rows have no effect.
const NO_UDP: &str = "programs for udp run over tcp, which has no such setting";
const NO_IBV: &str = "there is no ibv conduit in this version";
const NO_OFI: &str = "argonet's ofi conduit has no such setting";
const NO_UCX: &str = "there is no ucx conduit in this version";
const NO_MPI: &str = "there is no mpi conduit in this version";
const NO_ARIES: &str = "there is no aries or gemini conduit in this version";
const NO_PORTALS: &str = "argonet's portals conduit has no such setting";
const NO_SSH: &str =
    "agents on other hosts talk through the remote shell that starts them; see `argonet run`";
const NO_SPAWNER: &str =
    "ranks are started by `argonet run`, by GASNET_PSHM_NODES or by GASNET_SPAWNFN";
const NO_TUNER: &str = "algorithms of collectives are chosen by lengths, GASNET_COLL_ROOTED_GEOM and the settings *_PER_THREAD alone in this version";
const NO_PINNING: &str = "no conduit of this version registers memory with a device";
const NO_DEVICES: &str = "there is no memory of devices in this version";
const OF_OTHERS: &str = "a setting of another system, which argonet does not read";

/// Whether a reason says that the subject of a setting does not exist, so that turning it off has
/// its effect.
pub(crate) fn is_absence(reason: &str) -> bool {
    let absent = [
        NO_UDP, NO_IBV, NO_UCX, NO_MPI, NO_ARIES, NO_PINNING, NO_DEVICES,
    ];
    absent.contains(&reason)
}
