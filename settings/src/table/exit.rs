//! How a job ends, and how long things may take.

use super::{NO_IBV, NO_UDP};
use crate::choice::OnRankLost;
use crate::kind::{DAY, Kind, SECONDS, TimeUnit, count};
use crate::row::{Preset, Row, Scope};
use crate::setting::settings;
use crate::signal::Signals;
use std::time::Duration;

/// A time-out of an exit that leaves a rank time to react at all.
const EXIT: Kind = Kind::Duration {
    unit: TimeUnit::Seconds,
    min: Duration::from_millis(100),
    max: DAY,
};

settings! {
    EXIT_TIMEOUT: Option<Duration> = "GASNET_EXITTIMEOUT", EXIT,
        Preset::Words("min(GASNET_EXITTIMEOUT_MAX, GASNET_EXITTIMEOUT_MIN + ranks * GASNET_EXITTIMEOUT_FACTOR)"), Scope::Job,
        "How long ranks may take to end after one of them has ended the job.";
    EXIT_TIMEOUT_MAX: Duration = "GASNET_EXITTIMEOUT_MAX", EXIT, Preset::Is("5"), Scope::Job,
        "The greatest time that is computed for GASNET_EXITTIMEOUT.";
    EXIT_TIMEOUT_MIN: Duration = "GASNET_EXITTIMEOUT_MIN", SECONDS, Preset::Is("1"), Scope::Job,
        "The fixed part of the time that is computed for GASNET_EXITTIMEOUT.";
    EXIT_TIMEOUT_FACTOR: Duration = "GASNET_EXITTIMEOUT_FACTOR", SECONDS, Preset::Is("0.1"), Scope::Job,
        "The part of the time that is computed for GASNET_EXITTIMEOUT that each rank adds.";
    CATCH_EXIT: bool = "GASNET_CATCH_EXIT", Kind::Boolean, Preset::Is("1"), Scope::Job,
        "A rank that calls exit or returns from main ends the job.";
    ON_RANK_LOST: OnRankLost = "ARGONET_ON_RANK_LOST", Kind::Choice(OnRankLost::WORDS), Preset::Is("end"), Scope::Rank,
        "What becomes of a job when a rank, or a host, dies: end, it ends; continue, it goes on without that rank, or those \
         of the host, if every rank has called Builder::on_peer_lost or argonet_SetPeerLostHandler. The value of the launcher counts, or of rank 0 where \
         the program was started alone. Jobs of other launchers refuse continue. `argonet run --on-rank-lost` wins over it.";
    NO_CATCH_SIGNAL: Option<Signals> = "GASNET_NO_CATCH_SIGNAL", Kind::Signals, Preset::Unset, Scope::Rank,
        "Signals that are left alone; `*` for all.";
    FS_SYNC: bool = "GASNET_FS_SYNC", Kind::Boolean, Preset::Is("0"), Scope::Rank,
        "Writes all file systems' buffers to disk when the job ends.";
}

const MICROSECONDS: Kind = Kind::Duration {
    unit: TimeUnit::Microseconds,
    min: Duration::ZERO,
    max: DAY,
};

pub(crate) const IDLE: &[Row] = &[
    Row::idle(
        "GASNET_REQUESTTIMEOUT_MAX",
        MICROSECONDS,
        "30000000",
        Scope::Job,
        "When a request counts as undeliverable; 0 for never (udp).",
        NO_UDP,
    ),
    Row::idle(
        "GASNET_REQUESTTIMEOUT_INITIAL",
        MICROSECONDS,
        "100000",
        Scope::Job,
        "When a request is sent again for the first time (udp).",
        NO_UDP,
    ),
    Row::idle(
        "GASNET_REQUESTTIMEOUT_BACKOFF",
        Kind::Number,
        "2",
        Scope::Job,
        "The factor by which the time until a request is sent again grows (udp).",
        NO_UDP,
    ),
    Row::idle(
        "AMUDP_REQUESTTIMEOUT_MAX",
        MICROSECONDS,
        "30000000",
        Scope::Job,
        "As GASNET_REQUESTTIMEOUT_MAX (udp).",
        NO_UDP,
    ),
    Row::idle(
        "AMUDP_REQUESTTIMEOUT_INITIAL",
        MICROSECONDS,
        "100000",
        Scope::Job,
        "As GASNET_REQUESTTIMEOUT_INITIAL (udp).",
        NO_UDP,
    ),
    Row::idle(
        "AMUDP_REQUESTTIMEOUT_BACKOFF",
        Kind::Number,
        "2",
        Scope::Job,
        "As GASNET_REQUESTTIMEOUT_BACKOFF (udp).",
        NO_UDP,
    ),
    Row::idle(
        "GASNET_QP_TIMEOUT",
        count("steps of 4.096 us * 2^n"),
        "18",
        Scope::Job,
        "When the adapter sends again (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_QP_RETRY_COUNT",
        count("times"),
        "7",
        Scope::Job,
        "How often the adapter sends again (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_CONNECT_RETRANS_MIN",
        MICROSECONDS,
        "1000",
        Scope::Job,
        "When a connection is asked for again for the first time (ibv).",
        NO_IBV,
    ),
    Row::idle(
        "GASNET_CONNECT_RETRANS_MAX",
        MICROSECONDS,
        "67108864",
        Scope::Job,
        "The longest time until a connection is asked for again; the time doubles up to it (ibv).",
        NO_IBV,
    ),
];
