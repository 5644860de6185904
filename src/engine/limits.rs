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
}
