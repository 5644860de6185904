//! Handler indices that the library keeps for itself.

/// The library's own handlers, below the client's range.
pub mod internal {
    use argonet_base::HandlerIndex;

    /// One round of a dissemination barrier.
    pub const BARRIER: HandlerIndex = HandlerIndex(1);
    /// A contribution going up the tree of a collective.
    pub const TREE_UP: HandlerIndex = HandlerIndex(2);
    /// A result going down the tree of a collective.
    pub const TREE_DOWN: HandlerIndex = HandlerIndex(3);
    /// A remote procedure call.
    pub const RPC_CALL: HandlerIndex = HandlerIndex(4);
    /// The result of a remote procedure call.
    pub const RPC_RESULT: HandlerIndex = HandlerIndex(5);
    /// Atomic operations on words that are not mapped where they begin.
    pub const RATOMIC_BATCH: HandlerIndex = HandlerIndex(6);
    /// One round of the barrier with names.
    pub const NAMED: HandlerIndex = HandlerIndex(7);
    /// They are done; brings the values before of those that fetch.
    pub const RATOMIC_BATCH_DONE: HandlerIndex = HandlerIndex(8);
    /// A message of a collective operation of a team.
    pub const COLLECTIVE: HandlerIndex = HandlerIndex(9);
    /// Questions and answers of ranks about collective calls that last.
    pub const MISMATCH: HandlerIndex = HandlerIndex(10);
    /// A part of a remote procedure call whose arguments are too long for one message.
    pub const RPC_CALL_PART: HandlerIndex = HandlerIndex(11);
    /// A client's message from or to a further endpoint, a request or a reply.
    pub const ENDPOINT_AM: HandlerIndex = HandlerIndex(12);
    /// Findings of ranks that look for a job that cannot end.
    pub const QUIESCENCE: HandlerIndex = HandlerIndex(13);
    /// A part of a result that is too long for one message.
    pub const RPC_RESULT_PART: HandlerIndex = HandlerIndex(14);
    /// Many one-way remote procedure calls.
    pub const RPC_BATCH: HandlerIndex = HandlerIndex(15);
    /// Bytes for memory that a client has bound.
    pub const BOUND_PUT: HandlerIndex = HandlerIndex(16);
    /// They lie there.
    pub const BOUND_PUT_DONE: HandlerIndex = HandlerIndex(17);
    /// Asks for bytes of such memory.
    pub const BOUND_GET: HandlerIndex = HandlerIndex(18);
    /// The bytes.
    pub const BOUND_GET_DATA: HandlerIndex = HandlerIndex(19);
    /// A client's long whose payload goes into such memory, a request or a reply.
    pub const BOUND_LONG: HandlerIndex = HandlerIndex(20);
    /// Asks for the memory that is bound.
    pub const BOUND_QUERY: HandlerIndex = HandlerIndex(21);
    /// The answer.
    pub const BOUND_ANSWER: HandlerIndex = HandlerIndex(22);
    /// The answer to a request for memory that is not bound.
    pub const BOUND_REFUSED: HandlerIndex = HandlerIndex(23);
    /// A part of a client's long that was a reply and too long for one message.
    pub const BOUND_LONG_PART: HandlerIndex = HandlerIndex(24);
    /// An atomic operation on a word that is not mapped where it begins.
    pub const RATOMIC: HandlerIndex = HandlerIndex(25);
    /// It is done; brings the value before if that was asked for.
    pub const RATOMIC_DONE: HandlerIndex = HandlerIndex(26);
    /// The bytes of a put lie at their target: an atomic operation on a word beside them.
    pub const SIGNAL: HandlerIndex = HandlerIndex(27);
    /// Bytes for many pieces of memory.
    pub const VIS_PUT: HandlerIndex = HandlerIndex(28);
    /// Asks for bytes of many pieces of memory.
    pub const VIS_GET: HandlerIndex = HandlerIndex(29);
    /// The bytes.
    pub const VIS_GET_DATA: HandlerIndex = HandlerIndex(30);
    /// A put of many pieces is complete.
    pub const VIS_NOTICE: HandlerIndex = HandlerIndex(31);
}
