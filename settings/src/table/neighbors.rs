//! Settings of systems beside argonet, which users of the same networks know.

use super::OF_OTHERS;
use crate::kind::Kind;
use crate::row::{Row, Scope};

const fn other(name: &'static str, about: &'static str) -> Row {
    Row::idle(name, Kind::Text, "", Scope::Job, about, OF_OTHERS)
}

const OPEN_MPI: &str = "Open MPI's, for usNIC.";
const OPEN_MPI_TCP: &str = "Open MPI's, for TCP.";
const REFERENCE: &str = "Of the reference implementation of Portals 4.";

pub(crate) const IDLE: &[Row] = &[
    other("OMPI_MCA_btl_usnic_if_include", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_if_exclude", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_stats", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_stats_relative", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_sd_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_rd_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_prio_sd_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_prio_rd_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_cq_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_av_eq_num", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_base_udp_port", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_retrans_timeout", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_max_resends_per_iteration", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_ack_iteration_delay", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_eager_limit", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_rndv_eager_limit", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_pack_lazy_threshold", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_max_short_packets", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_show_route_failures", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_connectivity_check", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_connectivity_ack_timeout", OPEN_MPI),
    other(
        "OMPI_MCA_btl_usnic_connectivity_error_num_retries",
        OPEN_MPI,
    ),
    other("OMPI_MCA_btl_usnic_connectivity_map", OPEN_MPI),
    other("OMPI_MCA_btl_usnic_*", OPEN_MPI),
    other("OMPI_MCA_btl_tcp_if_include", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_if_exclude", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_links", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_port_min", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_port_range", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_recv_timeout", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_handshake_timeout", OPEN_MPI_TCP),
    other("OMPI_MCA_btl_tcp_use_nagle", OPEN_MPI_TCP),
    other("PTL_LOG_LEVEL", REFERENCE),
    other("PTL_DEBUG", REFERENCE),
    other("PTL_ENABLE_MEM", REFERENCE),
    other("PTL_IFACE_NAME", REFERENCE),
    other("PTL_PROGRESS_NOSLEEP", REFERENCE),
    other("PTL_RDMA_TIMEOUT", REFERENCE),
    other("PTL_NUM_SBUF", REFERENCE),
    other("PTL_DISABLE_MEM_REG_CACHE", REFERENCE),
    other("PTL_LIM_MAX_*", REFERENCE),
    other("PTL_BOUNCE_*", REFERENCE),
    other("CHPL_RT_MASTERIP", "Chapel's."),
    other("CHPL_RT_WORKERIP", "Chapel's."),
    other("CHPL_RT_OVERSUBSCRIBED", "Chapel's."),
    other("LAMELLAR_THREADS", "Lamellar's."),
    other("LAMELLAR_BACKEND", "Lamellar's."),
    other("LAMELLAR_DEADLOCK_TIMEOUT", "Lamellar's."),
];
