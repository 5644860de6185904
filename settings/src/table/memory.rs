//! Segments, huge pages, neighborhoods, threads.

use super::{NO_DEVICES, NO_IBV, NO_OFI, NO_PINNING};
use crate::choice::HugePages;
use crate::kind::{Kind, MAX_SIZE, SIZE, count};
use crate::limit::SegmentLimit;
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use crate::value::Bytes;

settings! {
    SUPERNODE_MAXSIZE: u64 = "GASNET_SUPERNODE_MAXSIZE", count("ranks"), Preset::Is("0"), Scope::Rank,
        "The most ranks that share memory; 1 for none, 0 for no limit. With the conduit smp all ranks do.";
    MAX_SEGSIZE: SegmentLimit = "GASNET_MAX_SEGSIZE", Kind::Limit, Preset::Is("0.85/H"), Scope::Job,
        "The size that a segment may grow to: a size or a fraction of the host's memory, for each process (/P) or for those of a host together (/H).";
    SEGMENT: Option<Bytes> = "ARGONET_SEGMENT", Kind::Size { min: 1, max: MAX_SIZE },
        Preset::Words("the size that the program asks for, else 16 MB"), Scope::Job,
        "Each rank's segment at the start; it grows.";
    HUGE_PAGES: Option<HugePages> = "ARGONET_HUGEPAGES", Kind::Choice(HugePages::WORDS), Preset::Unset, Scope::Job,
        "Puts the segments on huge pages of this size.";
    CROSS_MEMORY: bool = "ARGONET_CROSS_MEMORY", Kind::Boolean, Preset::Is("1"), Scope::Job,
        "Whether memory outside of segments (all of it with GASNET_SEGMENT_EVERYTHING, and long buffers of collective operations) is copied between the processes of a host by the kernel, where that permits it; else messages carry it.";
    MAX_THREADS: u64 = "GASNET_MAX_THREADS", count("threads"), Preset::Is("256"), Scope::Rank,
        "The most live threads of a C client that may call, in each rank, as gex_System_QueryMaxThreads returns it. One more ends the job.";
}

const FIXED_RINGS: &str = "the rings between two ranks have a fixed size in this version";
const ONE_HOST: &str = "all ranks of a host share memory in this version";
const NO_THREAD: &str = "argonet starts no threads that need a stack of another size";

pub(crate) const IDLE: &[Row] = &[
    Row::idle(
        "GASNET_DISABLE_MUNMAP",
        Kind::Boolean,
        "conduit",
        Scope::Rank,
        "Keeps malloc from giving memory back to the system.",
        NO_PINNING,
    ),
    Row::idle(
        "GASNET_USE_PSHM_SINGLETON",
        Kind::Boolean,
        "0",
        Scope::Job,
        "Uses shared memory where a rank is alone on its host.",
        ONE_HOST,
    ),
    Row::idle(
        "GASNET_PSHM_NETWORK_DEPTH",
        count("messages"),
        "32",
        Scope::Job,
        "How many messages between ranks of a host may be under way; at least 4.",
        FIXED_RINGS,
    ),
    Row::idle(
        "GASNET_AMPSHM_MEMORY_REPORT",
        Kind::Boolean,
        "0",
        Scope::Rank,
        "Prints the memory of messages between ranks of a host.",
        FIXED_RINGS,
    ),
    Row::idle(
        "GASNET_USE_HUGEPAGES",
        Kind::Boolean,
        "1 if HUGETLB_DEFAULT_PAGE_SIZE is set",
        Scope::Job,
        "Puts segments on huge pages.",
        "ARGONET_HUGEPAGES chooses huge pages and their size",
    ),
    Row::idle(
        "HUGETLB_DEFAULT_PAGE_SIZE",
        SIZE,
        "",
        Scope::Job,
        "The size of huge pages.",
        "ARGONET_HUGEPAGES chooses huge pages and their size",
    ),
    Row::idle(
        "GASNET_THREAD_STACK_MIN",
        SIZE,
        "0",
        Scope::Rank,
        "The least stack of internal threads.",
        NO_THREAD,
    ),
    Row::idle(
        "GASNET_THREAD_STACK_PAD",
        SIZE,
        "0",
        Scope::Rank,
        "Bytes that are added to the stacks of internal threads.",
        NO_THREAD,
    ),
    Row::idle(
        "GASNET_HWLOC_QUERY",
        Kind::Choice(&["thread", "process"]),
        "thread",
        Scope::Rank,
        "Whose processors decide which adapter is near.",
        "no conduit of this version chooses an adapter",
    ),
    Row::idle(
        "GASNET_IBV_PORTS_TYPE",
        Kind::Text,
        "Socket",
        Scope::Rank,
        "Which ports of adapters a rank uses, by its place in the host (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_OFI_DEVICE_TYPE",
        Kind::Text,
        "Socket",
        Scope::Rank,
        "Which adapter a rank uses, by its place in the host (ofi).",
        NO_OFI,
    ),
    Row::idle(
        "GASNET_PHYSMEM_MAX",
        Kind::Text,
        "2/3 (ibv), 0.8 (aries)",
        Scope::Job,
        "How much memory of a host may be registered: a size or a fraction.",
        NO_PINNING,
    ),
    Row::idle(
        "GASNET_PHYSMEM_PROBE",
        Kind::Boolean,
        "1 without GASNET_PHYSMEM_MAX",
        Scope::Job,
        "Tries how much memory can be registered.",
        NO_PINNING,
    ),
    Row::idle(
        "GASNET_PHYSMEM_WARN",
        Kind::Boolean,
        "1",
        Scope::Job,
        "Warns when that takes long.",
        NO_PINNING,
    ),
    Row::idle(
        "GASNET_MAXIMIZE_MEMLOCK",
        Kind::Boolean,
        "1",
        Scope::Rank,
        "Raises the limit of locked memory (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_PINNED_REGIONS_MAX",
        count("regions"),
        "as GASNET_PHYSMEM_MAX",
        Scope::Job,
        "How many regions of a host may be registered (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_USE_CUDA_SYNC_MEMOPS",
        Kind::Boolean,
        "1",
        Scope::Rank,
        "Orders operations on CUDA memory.",
        NO_DEVICES,
    ),
    Row::idle(
        "GASNET_USE_HIP_SYNC_MEMOPS",
        Kind::Boolean,
        "1",
        Scope::Rank,
        "Orders operations on HIP memory.",
        NO_DEVICES,
    ),
];
