//! The items of the five protocol texts that argonet is built after, in our words.
//!
//! A letter each: P the Portals conduit, U usNIC, G the GNI provider, B failover of rails, T the
//! TCP path.

use super::Item;
use super::State::{Built, Partly, Waits};

const fn item(id: &'static str, title: &'static str, state: super::State) -> Item {
    Item { id, title, state }
}

/// All of them, in their order.
///
/// An item that is built needs a mark in the code and one in a test; the text of one that is in
/// part names tests of what there is.
pub(super) const ITEMS: [Item; 64] = [
    item(
        "P1",
        "Memory descriptors by role: segment, send and receive chunks, catch-basin, temporary",
        Built,
    ),
    item(
        "P2",
        "Three event queues (completions, requests, system) with limits a poll, polled in an order that cannot starve",
        Built,
    ),
    item(
        "P3",
        "Put and get with a 24-bit handle that the network carries; blocking is non-blocking and poll",
        Built,
    ),
    item(
        "P4",
        "Tickets bound operations in flight: sends, and temporary descriptors",
        Built,
    ),
    item(
        "P5",
        "Messages short, medium and long; a long that fits travels packed with its header",
        Built,
    ),
    item(
        "P6",
        "A reply goes into room kept since its request; for a handler that does not reply an empty one is sent",
        Built,
    ),
    item(
        "P7",
        "A cache that matches header and data of a long in two messages, in either order",
        Built,
    ),
    item(
        "P8",
        "Receive buffers are chained, unlinked when nearly full, linked again when all handlers have run",
        Built,
    ),
    item(
        "P9",
        "Credits of 256 bytes a peer, from the receive space, by a table of job sizes",
        Built,
    ),
    item(
        "P10",
        "Credits move to where they are needed: loans asked for and given in one byte, decayed by epochs",
        Built,
    ),
    item(
        "P11",
        "When the bank runs low, idle credits are called back, fairly and without repeating it",
        Built,
    ),
    item(
        "P12",
        "A system queue of short messages, one outstanding a peer, each answered",
        Built,
    ),
    item(
        "P13",
        "Any rank may end the job at any time; the exit is forwarded to the others, and forced after a bounded time",
        Built,
    ),
    item(
        "P14",
        "A barrier at start before the first operation; addresses of ranks from the job manager",
        Built,
    ),
    item(
        "P15",
        "Every GASNET_PORTAL_* setting, checked; credit statistics to a file",
        Built,
    ),
    item(
        "P16",
        "Memory goals: at most 40 bytes a peer, 15 MiB for 4 credits a peer at 10,000 ranks",
        Partly(
            "credits (`ten_thousand_ranks_need_the_memory_of_the_text`) and system queue keep to it; the rest of the state is that of the conduit",
        ),
    ),
    item(
        "U1",
        "Fragments, segments (packets) and chunks; a small fragment holds its segment",
        Partly(
            "rails cut long payloads into records, each a datagram with its buffer, as far as the window has room (`long_payloads_and_the_stream_arrive_in_their_order_over_a_bad_wire`); the layer cuts a record into chunks where the path has become shorter (`where_the_path_takes_less_records_in_flight_go_in_chunks`), and has no fragments of any size",
        ),
    ),
    item(
        "U2",
        "Two channels with queues of their own: commands with priority, and data",
        Partly(
            "two channels, each with numbers and a window (`tiny_sends_overtake_a_long_one_without_a_resend`, `seeds_of_datagrams`), and the queue that a datagram leaves by; sockets have one queue for both",
        ),
    ),
    item(
        "U3",
        "Conditions of sending: fragments, credits and an open window; ready endpoints in turn; resends first",
        Built,
    ),
    item(
        "U4",
        "A sequence number a packet, a window, cumulative acknowledgements, on other packets where possible",
        Partly(
            "numbers, a window of 4,096, cumulative and selective acknowledgements that ride on data (`losses_of_a_full_window_are_named_one_by_one_over_the_end_of_numbers`); an acknowledgement alone waits 2 ms",
        ),
    ),
    item(
        "U5",
        "Resend timers by check-in and check-out; a repeated acknowledgement resends at once",
        Partly(
            "timers after measured round trips, one a peer, and losses found by later arrivals (`an_overtaken_record_is_sent_again_before_its_timer`); no check-in a segment",
        ),
    ),
    item(
        "U6",
        "A short way for tiny sends, and one for receives that does its bookkeeping later",
        Partly(
            "a poll delivers and leaves acknowledging to what the rank sends next, or to the next poll (`acknowledgements_ride_on_answers_or_leave_with_the_next_poll`); no short way for tiny sends",
        ),
    ),
    item(
        "U7",
        "Chunks put together by fragment; puts straight to their target; put and get over datagrams",
        Partly(
            "payloads go from the datagram to their place where the rank reads (`what_comes_for_a_read_goes_to_its_place`), puts and gets by the channel; no chunks of several fragments at once",
        ),
    ),
    item(
        "U8",
        "Fabric, domain and datagram endpoint of libfabric",
        Built,
    ),
    item(
        "U9",
        "Several threads; a callback may send again",
        Waits("a lock a peer in the reliable layer"),
    ),
    item(
        "U10",
        "Peers are checked at start, with a clear error for a one-way path or a wrong MTU",
        Built,
    ),
    item(
        "U11",
        "Channels overtake each other: loss is judged in each, and causes no resend in the other",
        Built,
    ),
    item(
        "U12",
        "A segment is free, queued, sent or waiting to be resent, and in one of them only",
        Built,
    ),
    item(
        "U13",
        "Inline sends only when small, whole and few are under way; at most one deferred receive",
        Partly(
            "at most eight batches of arrivals wait for an acknowledgement that rides on nothing (`acknowledgements_that_wait_are_due`); sockets have no inline sends",
        ),
    ),
    item(
        "U14",
        "Registration handles of a fixed size; a message may ask for the command channel",
        Partly(
            "a record is submitted on the channel of commands where it has priority (`lost_records_are_sent_before_commands_and_these_before_data`); no registration handles",
        ),
    ),
    item(
        "G1",
        "Endpoints share a NIC; a bounded list of descriptors keeps the completion queue from overflowing",
        Waits("interfaces that endpoints share"),
    ),
    item(
        "G2",
        "Datagrams to one peer or to any, for setting up connections",
        Partly(
            "bound and wildcard datagrams, by which mailboxes are exchanged (`lost_datagrams_are_posted_again`); no control interface for several endpoints",
        ),
    ),
    item(
        "G3",
        "Virtual connections: mailboxes exchanged, crossing requests become one connection",
        Partly(
            "a vector of virtual connections by peer; each rank sends its mailbox once, whichever asks first (`ranks_that_greet_each_other_have_one_connection`)",
        ),
    ),
    item(
        "G4",
        "Mailboxes with credits for small messages, eager and rendezvous above",
        Partly(
            "mailboxes with credits carry the stream (`bytes_arrive_in_order_and_a_full_mailbox_takes_none`); no rendezvous, long messages go in several short ones",
        ),
    ),
    item(
        "G5",
        "Short and long transfers by different engines, unaligned gets, the NIC's atomics, fences",
        Partly(
            "puts and gets up to 4 KiB by FMA, longer ones by BTE, unaligned gets by a buffer (`gets_of_any_place_and_length`); atomics and fences of the interface have no user yet",
        ),
    ),
    item(
        "G6",
        "Progress by a helper thread that sleeps in the queue, or by the caller",
        Partly(
            "by the caller, whose threads sleep in the queue (`a_sleep_ends_with_a_message_with_room_and_when_it_is_woken`); no thread of the conduit's own",
        ),
    ),
    item(
        "G7",
        "Endpoints of one process share no lock between threads on different queues",
        Waits("several interfaces to a rank"),
    ),
    item(
        "G8",
        "Tag matching: queues of posted receives and of unexpected messages",
        Waits("tagged messages"),
    ),
    item(
        "G9",
        "Errors in a completion: retried if they may pass, else reported with their operation",
        Partly(
            "transactions that may pass are posted again, others go over the stream (`transient_failures_are_tried_again_and_others_refused`)",
        ),
    ),
    item(
        "G10",
        "Endpoints for connections beside datagram ones",
        Waits("endpoints between jobs"),
    ),
    item(
        "G11",
        "One control endpoint serves several others, found by address and id",
        Waits("a control interface of several endpoints"),
    ),
    item(
        "G12",
        "Helper threads for data and for control, on processors set aside",
        Waits("helper threads of interfaces"),
    ),
    item(
        "G13",
        "A completion queue knows its NICs and polls both directions, then pending operations",
        Waits("several interfaces to a queue"),
    ),
    item(
        "G14",
        "Errors of the NIC reach the client; counters and wait objects",
        Waits("errors of interfaces that reach clients"),
    ),
    item(
        "G15",
        "Collectives and counters of the NIC behind capabilities",
        Waits("collectives of interfaces"),
    ),
    item(
        "G16",
        "Connections are closed and reopened around a checkpoint without loss",
        Waits("a checkpoint"),
    ),
    item(
        "B1",
        "Traffic over several rails; a failed one is left out, for a peer or for all",
        Partly(
            "further connections of tcp, each for its peer (`connections_that_break_lose_nothing`, `without_further_connections_all_goes_over_the_first`); one of several rails of tcp and usnic carries the stream to a peer, and the next one where it fails (`hosts_failover_between_two_kinds`); with an address of this host that stops working, rails to all peers are left, and a kind that can make none is left out for the job; rails of other conduits have no substitute",
        ),
    ),
    item(
        "B2",
        "Every kind of message recovers: small ones are resent, long ones start again",
        Partly(
            "frames of the stream, from the position that the peer names (`a_connection_that_breaks_anywhere_is_replayed`), also over a rail of another kind (`hosts_failover_between_two_kinds`); there are no operations of hardware to wait for",
        ),
    ),
    item(
        "B3",
        "Duplicates are recognized, also of messages that had not failed",
        Partly(
            "positions of the stream, over rails of tcp and usnic, and of payloads beside it (`puts_are_there_once_after_any_breaks`); ofi has no other rail to go to, and portals no positions",
        ),
    ),
    item(
        "B4",
        "Messages that agree on a restart, or that none is needed",
        Partly(
            "offers say up to where the stream was taken (`hosts_failover_between_connections`); there are no operations of hardware for which none is needed",
        ),
    ),
    item(
        "B5",
        "An error is reported over a working rail to a peer that sees none",
        Built,
    ),
    item(
        "B6",
        "No packet more, 8 bytes a message and 3 % of a round trip at most",
        Partly(
            "without a list of rails nothing is there; with one, runs of the stream have 8 bytes over usnic and none over tcp (`what_is_written_is_read`), and a round trip over tcp takes 1.01 times as long; that over usnic was not compared",
        ),
    ),
    item(
        "B7",
        "Messages queued in a failed rail are taken out and go over another",
        Partly(
            "payloads of puts and gets of tcp (`connections_that_break_lose_nothing`); messages queued in a rail go over the next from where the peer has taken them (`hosts_failover_between_datagrams`); there are no rails of hardware",
        ),
    ),
    item(
        "B8",
        "A place in a ring that will never be filled is skipped by both sides",
        Waits("rails with rings in hardware"),
    ),
    item(
        "B9",
        "Late completions are waited for, and a rail is fenced before its lost messages are replayed",
        Partly(
            "tcp fences a connection for its peer (`nothing_old_is_written_after_the_put_is_complete`, `a_rail_of_an_old_incarnation_is_not_read`) and waits for what is being written; runs of generations of the past are thrown away over usnic (`other_heads_are_refused`); no other conduit drains its rails",
        ),
    ),
    item(
        "B10",
        "Only the peer's acknowledgement counts as delivery",
        Partly("all that tcp completes (`bytes_acknowledged_only_by_the_host_are_not_delivered`)"),
    ),
    item(
        "T1",
        "Connections on demand over several interfaces; crossing ones settled by rank; bounded retries",
        Built,
    ),
    item(
        "T2",
        "Sockets that do not block, a reactor, writes resumed where they stopped",
        Built,
    ),
    item(
        "T3",
        "Fragments over several connections; the rest of a long message waits until the first is acknowledged",
        Partly(
            "puts and gets go over several (`a_large_transfer_asks_for_further_connections_and_uses_them`), and wait after 32 fragments (`a_long_put_goes_on_when_the_peer_acknowledges`); payloads of long active messages go over one",
        ),
    ),
    item("T4", "Data is received into its destination", Built),
    item(
        "T5",
        "Settings: interfaces, sizes of fragments and eager messages, retries",
        Built,
    ),
    item(
        "T6",
        "Safe for threads, as fast as raw sockets",
        Partly(
            "threads share a rank (`threads_share_a_class`, `a_peer_that_is_held_holds_up_no_other`); a put of 64 KiB takes 1.21 times what raw sockets take",
        ),
    ),
    item(
        "T7",
        "Fragments in any order are put together in place; further connections only when they pay",
        Built,
    ),
    item(
        "T8",
        "Data with holes is packed once; the rest of a long waits for its destination",
        Partly(
            "data is packed once (`data_with_holes_travels_in_one_message`), the rest waits for receive space (`a_medium_waits_for_receive_space`); there are no tagged messages yet",
        ),
    ),
];
