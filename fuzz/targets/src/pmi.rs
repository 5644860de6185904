//! Answers of a launcher that speaks PMI-1.

pub(crate) fn run(data: &[u8]) {
    let whole = argonet_boot::check_pmi_bytes(data, data.len());
    // Pieces make no difference, but for what comes behind a bad byte.
    if whole.is_ok() {
        assert_eq!(argonet_boot::check_pmi_bytes(data, 1), whole);
    }
    if let Err(reason) = whole {
        assert!(!reason.is_empty());
    }
}
