//! The value of `ARGONET_TCP_PORTS`.

use core::ops::RangeInclusive;

/// A text is no range of ports.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "ARGONET_TCP_PORTS is \"{0}\"; it must be a port or a range of ports, such as 40000-40999, each from 1 to 65535, the \
     smaller one first"
)]
pub struct PortsError(pub String);

/// Reads a port or a range of ports.
///
/// An empty text is 0 to 0: any port.
///
/// # Errors
/// [`PortsError`].
pub fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, PortsError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(0..=0);
    }
    let (first, last) = trimmed.split_once('-').unwrap_or((trimmed, trimmed));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(PortsError(text.to_owned())),
    }
}

fn port(text: &str) -> Option<u16> {
    let text = text.trim();
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| plain && *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_or_refused_by_name() {
        assert_eq!(parse_ports(" "), Ok(0..=0));
        assert_eq!(parse_ports("4000"), Ok(4000..=4000));
        assert_eq!(parse_ports(" 4000 - 65535 "), Ok(4000..=65535));
        for bad in ["0", "65536", "5-4", "-5", "5-", "+5", "a", "1-2-3", "0-10"] {
            let text = parse_ports(bad).unwrap_err().to_string();
            let named = format!("ARGONET_TCP_PORTS is \"{bad}\"");
            assert!(
                text.contains(&named) && text.contains("40000-40999"),
                "{text}"
            );
        }
    }
}
