//! Expected outcomes of the cases of the programs in `tests/c/bad`.

use crate::bad::Expected::{self, Ends, Refused, Returns};

/// Whether a case is found out in every build or only in one that looks for errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    Any,
    Debug,
}
use Build::{Any, Debug};

pub(crate) type Case = (&'static str, Build, Expected);

pub(crate) const START: [Case; 47] = [
    ("rank-before-start", Any, Ends(&["gex_System_QueryJobRank"])),
    ("poll-before-start", Any, Ends(&["gasnet_AMPoll"])),
    (
        "limit-before-start",
        Any,
        Ends(&["gasnet_getMaxLocalSegmentSize"]),
    ),
    (
        "barrier-before-start",
        Any,
        Ends(&["gasnet_barrier_notify"]),
    ),
    ("put-before-start", Debug, Ends(&["gex_RMA_PutBlocking"])),
    ("request-before-start", Any, Ends(&["gex_AM_RequestShort"])),
    (
        "losses-before-start",
        Any,
        Ends(&["argonet_QueryLostPeers"]),
    ),
    (
        "losses-no-handler",
        Any,
        Refused(&["argonet_SetPeerLostHandler", "handler"]),
    ),
    (
        "losses-late",
        Any,
        Refused(&["argonet_SetPeerLostHandler", "before gex_Client_Init"]),
    ),
    (
        "losses-nowhere",
        Any,
        Ends(&["argonet_QueryLostPeers", "room for 1"]),
    ),
    (
        "region-before-start",
        Any,
        Ends(&["gex_NBI_BeginAccessRegion"]),
    ),
    (
        "start-no-name",
        Any,
        Refused(&["gex_Client_Init", "clientName"]),
    ),
    (
        "start-no-client",
        Any,
        Refused(&["gex_Client_Init", "client_p"]),
    ),
    ("start-no-team", Any, Refused(&["gex_Client_Init", "tm_p"])),
    (
        "start-unknown-flags",
        Any,
        Refused(&["gex_Client_Init", "flags"]),
    ),
    ("start-twice", Any, Refused(&["gex_Client_Init"])),
    (
        "attach-unaligned",
        Any,
        Refused(&["gex_Segment_Attach", "size"]),
    ),
    (
        "attach-nothing",
        Any,
        Refused(&["gex_Segment_Attach", "size"]),
    ),
    (
        "attach-too-much",
        Any,
        Refused(&["gex_Segment_Attach", "size"]),
    ),
    (
        "attach-nowhere",
        Any,
        Refused(&["gex_Segment_Attach", "segment_p"]),
    ),
    (
        "attach-no-team",
        Any,
        Refused(&["gex_Segment_Attach", "tm"]),
    ),
    ("attach-pair", Any, Refused(&["gex_Segment_Attach", "tm"])),
    ("attach-twice", Any, Refused(&["gex_Segment_Attach"])),
    ("create-nothing", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("create-too-much", Any, Refused(&["gex_Segment_Create"])),
    ("create-wrapping", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("create-flags", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("create-no-kind", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("destroy-attached", Any, Ends(&["gex_Segment_Destroy"])),
    ("bind-flags", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("threads-no-count", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("threads-no-info", Any, Returns("GASNET_ERR_BAD_ARG")),
    ("threads-flags", Any, Returns("GASNET_ERR_BAD_ARG")),
    (
        "invalid-team-size",
        Debug,
        Ends(&["gex_TM_QuerySize", "tm"]),
    ),
    (
        "invalid-endpoint-index",
        Debug,
        Ends(&["gex_EP_QueryIndex", "ep"]),
    ),
    (
        "invalid-segment-size",
        Debug,
        Ends(&["gex_Segment_QuerySize", "seg"]),
    ),
    (
        "too-many-handlers",
        Any,
        Refused(&["gex_EP_RegisterHandlers"]),
    ),
    (
        "one-handler-more",
        Any,
        Refused(&["gex_EP_RegisterHandlers"]),
    ),
    (
        "same-handler-twice",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "200"]),
    ),
    (
        "same-handler-later",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "200"]),
    ),
    (
        "handler-below-base",
        Any,
        Refused(&["gex_EP_RegisterHandlers"]),
    ),
    (
        "handler-without-function",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "gex_fnptr"]),
    ),
    (
        "handler-without-category",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "gex_flags"]),
    ),
    (
        "handler-without-direction",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "gex_flags"]),
    ),
    (
        "handler-too-many-arguments",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "gex_nargs"]),
    ),
    (
        "handlers-no-table",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "table"]),
    ),
    (
        "handlers-no-endpoint",
        Any,
        Refused(&["gex_EP_RegisterHandlers", "ep"]),
    ),
];
pub(crate) const MESSAGES: [Case; 60] = [
    ("put-in-handler", Debug, Ends(&["gex_RMA_PutBlocking"])),
    ("get-in-handler", Debug, Ends(&["gex_RMA_GetBlocking"])),
    ("request-in-handler", Any, Ends(&["gex_AM_RequestShort"])),
    ("poll-in-handler", Any, Ends(&["gasnet_AMPoll"])),
    ("wait-in-handler", Debug, Ends(&["gex_NBI_Wait"])),
    ("barrier-in-handler", Any, Ends(&["gex_Coll_BarrierNB"])),
    (
        "named-barrier-in-handler",
        Any,
        Ends(&["gasnet_barrier_notify"]),
    ),
    ("attach-in-handler", Any, Ends(&["gex_Segment_Attach"])),
    (
        "translate-in-handler",
        Debug,
        Ends(&["gex_TM_TranslateRankToJobrank"]),
    ),
    ("two-replies", Any, Ends(&["gex_AM_ReplyShort"])),
    ("reply-in-reply", Any, Ends(&["gex_AM_ReplyShort"])),
    ("reply-unknown-handler", Any, Ends(&["250"])),
    (
        "reply-grouped",
        Any,
        Ends(&["gex_AM_ReplyMedium", "lc_opt"]),
    ),
    (
        "reply-too-long",
        Any,
        Ends(&["gex_AM_ReplyMedium", "nbytes"]),
    ),
    ("reply-locked", Debug, Ends(&["gex_AM_ReplyShort"])),
    ("handler-keeps-lock", Debug, Ends(&["gex_HSL"])),
    ("unknown-handler", Any, Ends(&["250"])),
    ("request-rank", Any, Ends(&["gex_AM_RequestShort", "rank"])),
    (
        "request-rank-invalid",
        Any,
        Ends(&["gex_AM_RequestMedium", "rank"]),
    ),
    ("request-no-team", Any, Ends(&["gex_AM_RequestShort", "tm"])),
    (
        "limit-rank",
        Any,
        Ends(&["gex_AM_MaxRequestMedium", "rank"]),
    ),
    (
        "limit-arguments",
        Any,
        Ends(&["gex_AM_MaxRequestMedium", "numargs"]),
    ),
    (
        "medium-too-long",
        Any,
        Ends(&["gex_AM_RequestMedium", "nbytes"]),
    ),
    (
        "medium-no-source",
        Any,
        Ends(&["gex_AM_RequestMedium", "source_addr"]),
    ),
    (
        "medium-no-completion",
        Any,
        Ends(&["gex_AM_RequestMedium", "lc_opt"]),
    ),
    (
        "medium-deferred",
        Any,
        Ends(&["gex_AM_RequestMedium", "lc_opt"]),
    ),
    (
        "long-too-long",
        Any,
        Ends(&["gex_AM_RequestLong", "nbytes"]),
    ),
    (
        "long-deferred",
        Any,
        Ends(&["gex_AM_RequestLong", "lc_opt"]),
    ),
    (
        "long-past-segment",
        Any,
        Ends(&["gex_AM_RequestLong", "dest_addr"]),
    ),
    (
        "long-before-segment",
        Any,
        Ends(&["gex_AM_RequestLong", "dest_addr"]),
    ),
    (
        "long-nowhere",
        Any,
        Ends(&["gex_AM_RequestLong", "dest_addr"]),
    ),
    ("short-to-medium", Debug, Ends(&["161"])),
    ("medium-to-long", Debug, Ends(&["162"])),
    ("request-to-reply", Debug, Ends(&["163"])),
    ("other-count", Debug, Ends(&["160"])),
    (
        "prepare-least-over-limit",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "least_payload"]),
    ),
    (
        "prepare-least-over-most",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "least_payload"]),
    ),
    (
        "prepare-null-completion",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "lc_opt"]),
    ),
    (
        "prepare-client-no-completion",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "lc_opt"]),
    ),
    (
        "prepare-arguments",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "numargs"]),
    ),
    (
        "prepare-rank",
        Any,
        Ends(&["gex_AM_PrepareRequestMedium", "rank"]),
    ),
    ("prepare-twice", Any, Ends(&["gex_AM_PrepareRequestMedium"])),
    (
        "commit-too-long",
        Any,
        Ends(&["gex_AM_CommitRequestMedium", "nbytes"]),
    ),
    (
        "commit-elsewhere",
        Any,
        Ends(&["gex_AM_CommitRequestLong", "dest_addr"]),
    ),
    (
        "commit-other-count",
        Any,
        Ends(&["gex_AM_CommitRequestMedium"]),
    ),
    (
        "commit-nothing",
        Any,
        Ends(&["gex_AM_CommitRequestMedium", "sd"]),
    ),
    (
        "commit-other-kind",
        Any,
        Ends(&["gex_AM_CommitRequestLong", "sd"]),
    ),
    (
        "commit-twice",
        Any,
        Ends(&["gex_AM_CommitRequestMedium", "sd"]),
    ),
    (
        "cancel-twice",
        Any,
        Ends(&["gex_AM_CancelRequestMedium", "sd"]),
    ),
    ("put-while-prepared", Debug, Ends(&["gex_RMA_PutBlocking"])),
    ("lock-twice", Debug, Ends(&["gex_HSL_Lock"])),
    ("try-twice", Debug, Ends(&["gex_HSL_Trylock"])),
    ("unlock-free", Debug, Ends(&["gex_HSL_Unlock"])),
    ("initialize-twice", Debug, Ends(&["gex_HSL_Init"])),
    ("destroy-twice", Debug, Ends(&["gex_HSL_Destroy"])),
    ("destroy-held", Debug, Ends(&["gex_HSL_Destroy"])),
    ("unlock-out-of-order", Debug, Ends(&["gex_HSL_Unlock"])),
    ("poll-locked", Debug, Ends(&["gasnet_AMPoll"])),
    ("request-locked", Debug, Ends(&["gex_AM_RequestShort"])),
    ("put-locked", Debug, Ends(&["gex_RMA_PutBlocking"])),
];
pub(crate) const TRANSFERS: [Case; 78] = [
    (
        "vis-rank",
        Any,
        Ends(&["gex_VIS_VectorPutBlocking", "rank"]),
    ),
    (
        "vis-no-team",
        Any,
        Ends(&["gex_VIS_IndexedGetBlocking", "tm"]),
    ),
    (
        "vis-totals",
        Any,
        Ends(&["gex_VIS_VectorPutNB", "32", "30"]),
    ),
    (
        "vis-no-list",
        Any,
        Ends(&["gex_VIS_VectorGetNBI", "srclist is null"]),
    ),
    (
        "vis-no-strides",
        Any,
        Ends(&["gex_VIS_StridedPutBlocking", "dststrides is null"]),
    ),
    (
        "vis-entry-outside",
        Any,
        Ends(&[
            "gex_VIS_VectorPutBlocking",
            "destination",
            "entry 1",
            "segment of rank 1",
        ]),
    ),
    (
        "vis-index-outside",
        Any,
        Ends(&[
            "gex_VIS_IndexedGetBlocking",
            "source",
            "entry 1",
            "segment of rank 1",
        ]),
    ),
    (
        "vis-dimension-outside",
        Any,
        Ends(&["gex_VIS_StridedPutBlocking", "dimension 1", "stride -64"]),
    ),
    (
        "vis-null-piece",
        Debug,
        Ends(&["gex_VIS_VectorPutBlocking", "srclist[1] is null"]),
    ),
    (
        "vis-overlap",
        Debug,
        Ends(&["gex_VIS_VectorPutBlocking", "dstlist overlap"]),
    ),
    (
        "vis-dimension-overlap",
        Debug,
        Ends(&["gex_VIS_StridedPutNBI", "dststrides[1] is 7"]),
    ),
    (
        "vis-flags",
        Debug,
        Ends(&["gex_VIS_VectorPutBlocking", "flags"]),
    ),
    (
        "vis-leaf-of-get",
        Debug,
        Ends(&["gex_VIS_IndexedGetNB", "GEX_FLAG_ENABLE_LEAF_LC"]),
    ),
    (
        "vis-leaf-of-blocking",
        Debug,
        Ends(&["gex_VIS_VectorPutBlocking", "GEX_FLAG_ENABLE_LEAF_LC"]),
    ),
    (
        "vis-not-bound",
        Any,
        Ends(&["non-contiguous put", "of rank 1", "bound no segment"]),
    ),
    (
        "vis-completion-too-long",
        Any,
        Ends(&[
            "gex_VIS_SetPeerCompletionHandler",
            "GEX_VIS_MAX_PEERCOMPLETION",
        ]),
    ),
    (
        "vis-completion-handler",
        Any,
        Ends(&["gex_VIS_SetPeerCompletionHandler", "handler is 100"]),
    ),
    (
        "vis-completion-nowhere",
        Any,
        Ends(&["gex_VIS_SetPeerCompletionHandler", "source_addr is null"]),
    ),
    (
        "vis-completion-immediate",
        Debug,
        Ends(&["gex_VIS_VectorPutNBI", "GEX_FLAG_IMMEDIATE"]),
    ),
    ("put-rank", Any, Ends(&["gex_RMA_PutBlocking", "rank"])),
    ("get-rank", Any, Ends(&["gex_RMA_GetBlocking", "rank"])),
    ("put-rank-invalid", Any, Ends(&["gex_RMA_PutNB", "rank"])),
    ("value-rank", Any, Ends(&["gex_RMA_GetBlockingVal", "rank"])),
    ("put-no-team", Debug, Ends(&["gex_RMA_PutBlocking", "tm"])),
    (
        "put-past-segment",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "dest"]),
    ),
    (
        "put-before-segment",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "dest"]),
    ),
    ("put-far-outside", Debug, Ends(&["gex_RMA_PutNBI", "dest"])),
    ("put-nowhere", Debug, Ends(&["gex_RMA_PutBlocking", "dest"])),
    ("put-wrapping", Debug, Ends(&["gex_RMA_PutBlocking"])),
    (
        "get-past-segment",
        Debug,
        Ends(&["gex_RMA_GetBlocking", "src"]),
    ),
    ("get-before-segment", Debug, Ends(&["gex_RMA_GetNB", "src"])),
    (
        "put-value-past-segment",
        Debug,
        Ends(&["gex_RMA_PutBlockingVal", "dest"]),
    ),
    (
        "get-value-past-segment",
        Debug,
        Ends(&["gex_RMA_GetBlockingVal", "src"]),
    ),
    (
        "put-no-source",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "src"]),
    ),
    (
        "get-no-destination",
        Debug,
        Ends(&["gex_RMA_GetBlocking", "dest"]),
    ),
    (
        "put-value-9-bytes",
        Any,
        Ends(&["gex_RMA_PutBlockingVal", "nbytes"]),
    ),
    (
        "put-value-0-bytes",
        Any,
        Ends(&["gex_RMA_PutBlockingVal", "nbytes"]),
    ),
    (
        "get-value-9-bytes",
        Any,
        Ends(&["gex_RMA_GetBlockingVal", "nbytes"]),
    ),
    (
        "get-value-0-bytes",
        Any,
        Ends(&["gex_RMA_GetBlockingVal", "nbytes"]),
    ),
    ("put-grouped", Debug, Ends(&["gex_RMA_PutNB", "lc_opt"])),
    (
        "put-no-completion",
        Debug,
        Ends(&["gex_RMA_PutNB", "lc_opt"]),
    ),
    (
        "implicit-put-event",
        Debug,
        Ends(&["gex_RMA_PutNBI", "lc_opt"]),
    ),
    ("put-overlap", Debug, Ends(&["gex_RMA_PutBlocking"])),
    (
        "never-self",
        Debug,
        Ends(&["gex_RMA_PutBlocking", "GEX_FLAG_PEER_NEVER_"]),
    ),
    ("signal-rank", Any, Ends(&["argonet_RMA_PutSignal", "rank"])),
    (
        "signal-past-segment",
        Any,
        Ends(&["argonet_RMA_PutSignal", "signal is", "not in the segment"]),
    ),
    (
        "signal-unaligned",
        Any,
        Ends(&["argonet_RMA_PutSignal", "multiple of 8"]),
    ),
    (
        "signal-operation",
        Any,
        Ends(&["argonet_RMA_PutSignal", "GEX_OP_SET or GEX_OP_ADD"]),
    ),
    (
        "signal-flags",
        Any,
        Ends(&["argonet_RMA_PutSignal", "they must be 0"]),
    ),
    (
        "signal-put-past-segment",
        Any,
        Ends(&["argonet_RMA_PutSignal", "dest is", "not in the segment"]),
    ),
    (
        "signal-wait-unaligned",
        Any,
        Ends(&["argonet_SignalWait", "multiple of 8"]),
    ),
    (
        "signal-wait-nowhere",
        Any,
        Ends(&["argonet_SignalWait", "signal is"]),
    ),
    (
        "signal-wait-comparison",
        Any,
        Ends(&["argonet_SignalWait", "ARGONET_CMP_"]),
    ),
    (
        "bound-rank",
        Any,
        Ends(&["gex_EP_QueryBoundSegmentNB", "rank"]),
    ),
    (
        "pair-endpoint",
        Any,
        Ends(&[
            "a put of 8 bytes at 0x",
            "of rank 1, endpoint 1",
            "rank 1 has bound no segment",
        ]),
    ),
    (
        "translate-rank",
        Any,
        Ends(&["gex_TM_TranslateRankToJobrank", "rank"]),
    ),
    (
        "wait-no-op",
        Any,
        Ends(&["gex_Event_Wait", "GEX_EVENT_NO_OP"]),
    ),
    (
        "test-no-op",
        Any,
        Ends(&["gex_Event_Test", "GEX_EVENT_NO_OP"]),
    ),
    ("wait-garbage", Any, Ends(&["gex_Event_Wait"])),
    ("leaf-of-no-op", Any, Ends(&["gex_Event_QueryLeaf"])),
    (
        "wait-all-nowhere",
        Any,
        Ends(&["gex_Event_WaitAll", "pevent"]),
    ),
    ("wait-flags", Any, Ends(&["gex_Event_WaitAll", "flags"])),
    (
        "leaf-of-all",
        Debug,
        Ends(&["gex_Event_QueryLeaf", "event_category"]),
    ),
    (
        "region-in-region",
        Any,
        Ends(&["gex_NBI_BeginAccessRegion"]),
    ),
    ("region-end-alone", Any, Ends(&["gex_NBI_EndAccessRegion"])),
    ("wait-in-region", Any, Ends(&["gex_NBI_Wait"])),
    ("test-in-region", Any, Ends(&["gex_NBI_Test"])),
    ("barrier-wait-alone", Any, Ends(&["gasnet_barrier_wait"])),
    ("barrier-try-alone", Any, Ends(&["gasnet_barrier_try"])),
    (
        "barrier-two-notifies",
        Any,
        Ends(&["gasnet_barrier_notify"]),
    ),
    ("wait-twice", Any, Ends(&["gex_Event_Wait"])),
    (
        "barrier-mismatch",
        Any,
        Returns("GASNET_ERR_BARRIER_MISMATCH"),
    ),
    ("barrier-pair", Any, Ends(&["gex_Coll_BarrierNB", "tm"])),
    ("barrier-no-team", Any, Ends(&["gex_Coll_BarrierNB", "tm"])),
    (
        "broadcast-root",
        Any,
        Ends(&["gex_Coll_BroadcastNB", "root"]),
    ),
    (
        "broadcast-nowhere",
        Any,
        Ends(&["gex_Coll_BroadcastNB", "dst"]),
    ),
    (
        "broadcast-no-root",
        Any,
        Ends(&[
            "root 1 and 8 bytes at rank 0",
            "root 0 and 8 bytes at rank 1",
        ]),
    ),
    ("waitmode", Any, Returns("GASNET_ERR_BAD_ARG")),
];

pub(crate) const HEAP: [Case; 14] = [
    (
        "free-twice",
        Debug,
        Ends(&[
            "gasnett_debug_free at ",
            "heap.c:",
            "freed already at ",
            "of 24 bytes",
        ]),
    ),
    (
        "free-twice-kept",
        Debug,
        Ends(&["gasnett_debug_free at ", "freed already at "]),
    ),
    (
        "free-foreign",
        Debug,
        Ends(&["gasnett_debug_free at ", "ptr is ", "has allocated"]),
    ),
    (
        "free-inside",
        Debug,
        Ends(&["gasnett_debug_free at ", "8 bytes inside of"]),
    ),
    (
        "free-behind",
        Debug,
        Ends(&["gasnett_debug_free at ", "1 bytes behind its end"]),
    ),
    (
        "free-before",
        Debug,
        Ends(&["gasnett_debug_free at ", "3 bytes before its begin"]),
    ),
    (
        "realloc-behind",
        Debug,
        Ends(&["gasnett_debug_realloc at ", "16 bytes behind its end"]),
    ),
    (
        "realloc-freed",
        Debug,
        Ends(&["gasnett_debug_realloc at ", "freed already at "]),
    ),
    (
        "check-behind",
        Debug,
        Ends(&["gasnett_debug_memcheck at ", "1 bytes behind its end"]),
    ),
    (
        "check-one",
        Debug,
        Ends(&["gasnett_debug_memcheck_one at ", "2 bytes behind its end"]),
    ),
    (
        "check-all",
        Debug,
        Ends(&["gasnett_debug_memcheck_all at ", "1 bytes behind its end"]),
    ),
    (
        "write-freed",
        Debug,
        Ends(&[
            "gasnett_debug_memcheck_all at ",
            "offset 5 after it was freed",
        ]),
    ),
    (
        "extra-check",
        Debug,
        Ends(&["gasnett_debug_malloc at ", "1 bytes behind its end"]),
    ),
    (
        "calloc-wrapping",
        Debug,
        Ends(&["gasnett_debug_calloc at ", "more than there can be"]),
    ),
];
