//! argonet.
