//! Expected outcomes of the cases of `tests/c/bad/coll.c`.

use crate::bad::Expected::Ends;
use crate::cases::Build::Any;
use crate::cases::Case;

pub(crate) const COLL: [Case; 36] = [
    (
        "reduce-calls",
        Any,
        Ends(&[
            "gex_Coll_BarrierNB",
            "in a handler or the function of a reduction",
        ]),
    ),
    (
        "reduce-root",
        Any,
        Ends(&["gex_Coll_ReduceToOneNB", "root"]),
    ),
    (
        "reduce-flags",
        Any,
        Ends(&["gex_Coll_ReduceToOneNB", "flags"]),
    ),
    (
        "reduce-type",
        Any,
        Ends(&["gex_Coll_ReduceToAllNB", "dt is 0x30"]),
    ),
    (
        "reduce-no-type",
        Any,
        Ends(&["gex_Coll_ReduceToAllNB", "dt is 0x0"]),
    ),
    (
        "reduce-two-ops",
        Any,
        Ends(&["gex_Coll_ReduceToAllNB", "op is 0x48"]),
    ),
    (
        "reduce-float-bits",
        Any,
        Ends(&["GEX_OP_XOR", "GEX_DT_FLT"]),
    ),
    ("reduce-subtract", Any, Ends(&["GEX_OP_SUB", "GEX_DT_I32"])),
    ("reduce-fetching", Any, Ends(&["GEX_OP_FADD", "GEX_DT_I32"])),
    (
        "reduce-user-type",
        Any,
        Ends(&["GEX_OP_ADD", "GEX_DT_USER"]),
    ),
    ("reduce-size", Any, Ends(&["dt_sz is 8", "GEX_DT_I32"])),
    ("reduce-no-size", Any, Ends(&["dt_sz is 0"])),
    ("reduce-no-count", Any, Ends(&["dt_cnt is 0"])),
    ("reduce-too-much", Any, Ends(&["dt_sz", "dt_cnt", "memory"])),
    (
        "reduce-no-function",
        Any,
        Ends(&["user_op is null", "GEX_OP_USER_NC"]),
    ),
    ("reduce-no-source", Any, Ends(&["src is null"])),
    ("reduce-nowhere", Any, Ends(&["dst is null"])),
    (
        "reduce-pair",
        Any,
        Ends(&["gex_Coll_ReduceToAllNB", "pair"]),
    ),
    (
        "reduce-ops-differ",
        Any,
        Ends(&["reduce-to-all", "operation", "at rank 0", "at rank 1"]),
    ),
    (
        "reduce-counts-differ",
        Any,
        Ends(&["of 8 bytes", "of 16 bytes", "at rank 0", "at rank 1"]),
    ),
    (
        "reduce-and-broadcast",
        Any,
        Ends(&["reduce-to-all", "broadcast", "at rank 0", "at rank 1"]),
    ),
    (
        "legacy-image",
        Any,
        Ends(&["gasnet_coll_broadcast", "srcimage"]),
    ),
    (
        "legacy-no-flags",
        Any,
        Ends(&["gasnet_coll_broadcast", "GASNET_COLL_IN_NOSYNC"]),
    ),
    (
        "legacy-two-ins",
        Any,
        Ends(&["gasnet_coll_broadcast", "GASNET_COLL_IN_NOSYNC"]),
    ),
    (
        "legacy-no-out",
        Any,
        Ends(&["gasnet_coll_broadcast", "GASNET_COLL_OUT_NOSYNC"]),
    ),
    (
        "legacy-not-local",
        Any,
        Ends(&["gasnet_coll_broadcast", "GASNET_COLL_LOCAL"]),
    ),
    (
        "legacy-unknown",
        Any,
        Ends(&["gasnet_coll_broadcast", "0x100000"]),
    ),
    ("legacy-no-team", Any, Ends(&["gasnet_coll_exchange", "tm"])),
    (
        "legacy-gather-nowhere",
        Any,
        Ends(&["gasnet_coll_gather", "dst is null"]),
    ),
    (
        "legacy-no-file",
        Any,
        Ends(&["gasnet_coll_loadTuningState", "/nowhere/at/all"]),
    ),
    (
        "legacy-null-file",
        Any,
        Ends(&["gasnet_coll_loadTuningState", "null"]),
    ),
    (
        "legacy-barrier-twice",
        Any,
        Ends(&["gasnet_coll_barrier_notify", "notify before the wait"]),
    ),
    ("gather-root", Any, Ends(&["argonet_Coll_GatherNB", "root"])),
    (
        "scatter-flags",
        Any,
        Ends(&["argonet_Coll_ScatterNB", "flags"]),
    ),
    (
        "exchange-nowhere",
        Any,
        Ends(&["argonet_Coll_ExchangeNB", "dst is null"]),
    ),
    ("scan-op", Any, Ends(&["GEX_OP_AND", "GEX_DT_DBL"])),
];
