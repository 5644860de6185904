//! Expected outcomes of the cases of `tests/c/bad/ratomic.c`.

use crate::bad::Expected::Ends;
use crate::cases::Build::{Any, Debug};
use crate::cases::Case;

const CREATE: &str = "gex_AD_Create";
const NBI: &str = "gex_AD_OpNBI_I64";
const NB: &str = "gex_AD_OpNB_I64";

pub(crate) const RATOMIC: [Case; 40] = [
    ("create-nowhere", Any, Ends(&[CREATE, "ad_p"])),
    ("create-no-team", Any, Ends(&[CREATE, "tm"])),
    ("create-pair", Any, Ends(&[CREATE, "pair"])),
    ("create-no-type", Any, Ends(&[CREATE, "dt is 0x0"])),
    ("create-two-types", Any, Ends(&[CREATE, "dt is 0xc"])),
    ("create-user-type", Any, Ends(&[CREATE, "dt is 0x40"])),
    ("create-no-operation", Any, Ends(&[CREATE, "ops are 0"])),
    (
        "create-bits-of-float",
        Any,
        Ends(&[CREATE, "GEX_OP_FXOR", "GEX_DT_FLT"]),
    ),
    ("create-user-operation", Any, Ends(&[CREATE, "GEX_OP_USER"])),
    (
        "create-unknown-operation",
        Any,
        Ends(&[CREATE, "0x1000 is no atomic operation"]),
    ),
    (
        "create-two-favors",
        Debug,
        Ends(&[CREATE, "GEX_FLAG_AD_FAVOR"]),
    ),
    ("create-type-differs", Debug, Ends(&[CREATE, "on rank"])),
    (
        "create-operations-differ",
        Debug,
        Ends(&[CREATE, "on rank"]),
    ),
    ("create-flags-differ", Debug, Ends(&[CREATE, "on rank"])),
    ("destroy-invalid", Any, Ends(&["gex_AD_Destroy", "ad"])),
    ("query-invalid", Any, Ends(&["gex_AD_QueryOps", "ad"])),
    ("op-no-domain", Any, Ends(&[NBI, "ad is invalid"])),
    ("op-rank", Any, Ends(&[NBI, "tgt_rank is 2"])),
    (
        "op-rank-of-job",
        Any,
        Ends(&[NBI, "tgt_rank is 2", "GEX_FLAG_RANK_IS_JOBRANK"]),
    ),
    (
        "op-not-asked-for",
        Debug,
        Ends(&[NBI, "opcode is GEX_OP_SUB", "gex_AD_Create"]),
    ),
    ("op-two", Any, Ends(&[NBI, "opcode is 0x408"])),
    ("op-none", Any, Ends(&[NB, "opcode is 0x0"])),
    ("op-user", Any, Ends(&[NBI, "opcode is GEX_OP_USER"])),
    (
        "op-wrong-type",
        Debug,
        Ends(&["gex_AD_OpNB_U32", "GEX_DT_I64", "GEX_DT_U32"]),
    ),
    (
        "op-unaligned",
        Debug,
        Ends(&[NBI, "tgt_addr", "multiple of 8"]),
    ),
    ("op-null", Debug, Ends(&[NBI, "tgt_addr"])),
    (
        "op-past-segment",
        Debug,
        Ends(&[NBI, "tgt_addr", "not in the segment of rank"]),
    ),
    (
        "op-before-segment",
        Debug,
        Ends(&[NB, "tgt_addr", "not in the segment of rank"]),
    ),
    ("op-no-result", Debug, Ends(&[NBI, "result_p is null"])),
    ("op-result-over-word", Debug, Ends(&[NBI, "result_p"])),
    (
        "op-not-my-rank",
        Debug,
        Ends(&[NBI, "flags", "GEX_FLAG_AD_MY_RANK"]),
    ),
    ("op-two-hints", Debug, Ends(&[NBI, "flags", "exclude"])),
    ("op-unknown-flag", Debug, Ends(&[NBI, "flags are 0x1000"])),
    (
        "op-offset-outside",
        Any,
        Ends(&[NBI, "tgt_addr is offset 0x10000", "not in the segment"]),
    ),
    (
        "op-offset-unaligned",
        Any,
        Ends(&[NBI, "tgt_addr", "multiple of 8"]),
    ),
    (
        "op-own-offset-outside",
        Any,
        Ends(&[NBI, "offset 65536 of the own segment"]),
    ),
    ("op-no-member", Any, Ends(&[NBI, "no member of ad's team"])),
    (
        "bound-outside",
        Any,
        Ends(&[
            "a remote atomic operation of 8 bytes",
            "has bound 4096 bytes",
        ]),
    ),
    ("bound-unaligned", Any, Ends(&[NB, "multiple of 8"])),
    (
        "bound-own-outside",
        Any,
        Ends(&[
            "a remote atomic operation of 8 bytes",
            "has bound 4096 bytes",
        ]),
    ),
];
