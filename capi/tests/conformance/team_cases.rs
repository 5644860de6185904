//! Expected outcomes of the cases of `tests/c/bad/teams.c`.

use crate::bad::Expected::{Ends, Returns};
use crate::cases::Build::{Any, Debug};
use crate::cases::Case;

pub(crate) const TEAMS: [Case; 50] = [
    (
        "survivors-nowhere",
        Any,
        Ends(&["argonet_TM_Survivors", "new_tm is null"]),
    ),
    (
        "survivors-flags",
        Any,
        Ends(&["argonet_TM_Survivors", "flags are 0x"]),
    ),
    (
        "split-no-parent",
        Any,
        Ends(&["gex_TM_Split", "tm is invalid"]),
    ),
    ("split-pair", Any, Ends(&["gex_TM_Split", "pair"])),
    ("split-color", Any, Ends(&["gex_TM_Split", "color is -1"])),
    (
        "split-size",
        Any,
        Ends(&["gex_TM_Split", "scratch_size is 0", "NO_SCRATCH"]),
    ),
    (
        "split-nowhere",
        Any,
        Ends(&["gex_TM_Split", "scratch_addr is 0x0"]),
    ),
    (
        "split-outside",
        Any,
        Ends(&["gex_TM_Split", "scratch_addr", "65536 bytes"]),
    ),
    (
        "split-past-end",
        Any,
        Ends(&["gex_TM_Split", "64 bytes there", "65536 bytes"]),
    ),
    ("split-flags", Any, Ends(&["gex_TM_Split", "flags are 0x8"])),
    (
        "split-two-queries",
        Any,
        Ends(&["gex_TM_Split", "exclude each other"]),
    ),
    (
        "split-sizes-differ",
        Any,
        Ends(&[
            "gex_TM_Split",
            "size of scratch memory is 0x4",
            "rank 0",
            "rank 1",
            "must be the same",
        ]),
    ),
    (
        "split-flags-differ",
        Any,
        Ends(&["gex_TM_Split", "flags", "0x20", "must be the same"]),
    ),
    (
        "split-and-create",
        Any,
        Ends(&["rank 0 of the parent team splits it while rank 1 creates"]),
    ),
    (
        "create-no-kind",
        Any,
        Ends(&["gex_TM_Create", "one of GEX_FLAG_TM_GLOBAL_SCRATCH"]),
    ),
    (
        "create-two-kinds",
        Any,
        Ends(&["gex_TM_Create", "flags are 0x28", "exclude each other"]),
    ),
    (
        "create-places",
        Any,
        Ends(&["gex_TM_Create", "num_new_tms is 2", "names 1 endpoints"]),
    ),
    (
        "create-no-place",
        Any,
        Ends(&["gex_TM_Create", "num_new_tms is 0", "names 1 endpoints"]),
    ),
    (
        "create-twice",
        Any,
        Ends(&["gex_TM_Create", "endpoint 0 of rank 0 of the job twice"]),
    ),
    (
        "create-no-rank",
        Any,
        Ends(&["gex_TM_Create", "gex_rank of args is 2"]),
    ),
    (
        "create-no-jobrank",
        Any,
        Ends(&["gex_TM_Create", "rank 2, and there are 2 ranks"]),
    ),
    (
        "create-lists-differ",
        Any,
        Ends(&["gex_TM_Create", "in another list"]),
    ),
    (
        "create-overlap",
        Any,
        Ends(&["gex_TM_Create", "rank 1 of the job", "in another list"]),
    ),
    (
        "create-absent",
        Any,
        Ends(&[
            "gex_TM_Create",
            "rank 1 of the job",
            "no caller gives the same list",
        ]),
    ),
    (
        "create-kinds-differ",
        Any,
        Ends(&["gex_TM_Create", "flags", "must be the same"]),
    ),
    (
        "create-no-list",
        Any,
        Ends(&["gex_TM_Create", "args is null, and numargs 2"]),
    ),
    (
        "create-no-scratch",
        Any,
        Ends(&["gex_TM_Create", "scratch_addrs is null"]),
    ),
    (
        "create-endpoint",
        Any,
        Ends(&[
            "gex_TM_Create",
            "endpoint 1 of this process",
            "which has 1 endpoints",
        ]),
    ),
    (
        "sub-put-rank",
        Any,
        Ends(&["gex_RMA_PutBlocking", "rank is 2; the team has 2 ranks"]),
    ),
    (
        "sub-get-rank",
        Any,
        Ends(&["gex_RMA_GetBlockingVal", "rank is 2"]),
    ),
    (
        "sub-short-rank",
        Any,
        Ends(&["gex_AM_RequestShort", "rank is 2"]),
    ),
    (
        "sub-medium-rank",
        Any,
        Ends(&["gex_AM_RequestMedium", "rank is 4294967295"]),
    ),
    (
        "sub-prepare-rank",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "rank is 2"]),
    ),
    (
        "sub-limit-rank",
        Any,
        Ends(&["gex_AM_MaxRequestMedium", "rank is 2"]),
    ),
    (
        "sub-bound-rank",
        Any,
        Ends(&["gex_Segment_QueryBound", "rank is 2"]),
    ),
    (
        "sub-translate-rank",
        Any,
        Ends(&["gex_TM_TranslateRankToJobrank", "rank is 2"]),
    ),
    (
        "sub-put-past-segment",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "not in the segment"]),
    ),
    (
        "sub-never-self",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "is this process"]),
    ),
    (
        "destroy-world",
        Any,
        Ends(&["gex_TM_Destroy", "tm is the primordial team"]),
    ),
    ("destroy-pair", Any, Ends(&["gex_TM_Destroy", "pair"])),
    (
        "destroy-nothing",
        Any,
        Ends(&["gex_TM_Destroy", "tm is invalid"]),
    ),
    (
        "destroy-flags",
        Any,
        Ends(&["gex_TM_Destroy", "flags are 0x1"]),
    ),
    (
        "destroy-twice",
        Debug,
        Ends(&["gex_TM_Destroy", "was destroyed"]),
    ),
    (
        "use-after-destroy",
        Debug,
        Ends(&["gex_RMA_GetBlockingVal", "was destroyed"]),
    ),
    (
        "send-after-destroy",
        Debug,
        Ends(&["gex_AM_RequestShort", "was destroyed"]),
    ),
    (
        "size-after-destroy",
        Debug,
        Ends(&["gex_TM_QuerySize", "was destroyed"]),
    ),
    (
        "destroy-in-barrier",
        Debug,
        Ends(&["gex_TM_Destroy", "1 collective operation(s) under way"]),
    ),
    (
        "destroy-in-broadcast",
        Debug,
        Ends(&["gex_TM_Destroy", "2 collective operation(s) under way"]),
    ),
    (
        "destroy-with-domains",
        Any,
        Ends(&["gex_TM_Destroy", "2 domain(s)", "gex_AD_Destroy"]),
    ),
    ("attach-part", Any, Returns("GASNET_ERR_BAD_ARG")),
];
