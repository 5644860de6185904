//! The longest segment that a rank may attach: the value of `GASNET_MAX_SEGSIZE`.

use std::fmt;

use argonet_base::size::{HumanSize, parse_size};

pub(crate) const ALLOWED: &str = "a size (64.5MB, 4GB, 67108864) or a fraction of the host's memory (0.85), followed by /P (for each \
                       process) or /H (shared by the processes of a host)";

/// A fraction is kept in parts of this.
const FRACTION_UNIT: u64 = 1_000_000_000;

/// How much memory a limit names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Bytes(u64),
    /// In parts of [`FRACTION_UNIT`], of the host's memory.
    Fraction(u64),
}

/// For each process, or for those of a host together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Process,
    Host,
}

/// Why a text is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitError(String);

/// An upper limit for segments, as `GASNET_MAX_SEGSIZE` gives it.
///
/// | written | meaning |
/// | --- | --- |
/// | `64.0MB/P` | 64 MiB for each process |
/// | `4GB/H` | 4 GiB, divided evenly between the processes of a host |
/// | `0.85/H` | 85 % of the host's memory, divided likewise: the default |
/// | `0.1/P` | 10 % of the host's memory for each process |
/// | `67108864`, `1GB` | without a suffix a size is for each process |
/// | `0.85` | without a suffix a fraction is of the host, divided evenly |
///
/// A number above 0 and up to 1 without a unit is a fraction, everything else a size. GASNet
/// reads a size without suffix per process too (scripts that set `GASNET_MAX_SEGSIZE=4G` for
/// 32 ranks on 128 GB rely on it); a bare fraction for each of several processes would promise
/// memory several times over, so it is read as the default is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLimit {
    amount: Amount,
    scope: Scope,
}

impl Default for SegmentLimit {
    /// `0.85/H`, GASNet's default.
    fn default() -> Self {
        Self {
            amount: Amount::Fraction(FRACTION_UNIT / 100 * 85),
            scope: Scope::Host,
        }
    }
}

impl SegmentLimit {
    /// Reads a limit.
    ///
    /// # Errors
    /// The value has another form, is 0, or a fraction is above 1.
    pub fn parse(value: &str) -> Result<Self, LimitError> {
        let bad = LimitError;
        let (amount, scope) = match value.split_once('/') {
            None => (value.trim(), None),
            Some((amount, scope)) => {
                let scope = match scope.trim() {
                    "P" | "p" => Scope::Process,
                    "H" | "h" => Scope::Host,
                    other => return Err(bad(format!("the suffix is '{other}'"))),
                };
                (amount.trim(), Some(scope))
            }
        };
        let amount = match parse_fraction(amount) {
            Some(Ok(parts)) => Amount::Fraction(parts),
            Some(Err(reason)) => return Err(bad(reason)),
            None => Amount::Bytes(parse_size(amount).map_err(|_| bad("not a size".to_owned()))?),
        };
        if matches!(amount, Amount::Bytes(0) | Amount::Fraction(0)) {
            return Err(bad("a segment needs memory".to_owned()));
        }
        let scope = scope.unwrap_or(match amount {
            Amount::Bytes(_) => Scope::Process,
            Amount::Fraction(_) => Scope::Host,
        });
        Ok(Self { amount, scope })
    }

    /// The longest segment of each rank in bytes, on a host with `host_memory` bytes and
    /// `ranks_on_host` ranks: a whole number of pages of `page_bytes`, at least one.
    ///
    /// `host_memory` is all that the host has, so that the result does not depend on what else
    /// runs at the moment.
    #[must_use]
    pub fn per_rank(&self, host_memory: u64, ranks_on_host: u32, page_bytes: u64) -> u64 {
        let bytes = match self.amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Fraction(parts) => {
                let bytes = u128::from(host_memory) * u128::from(parts) / u128::from(FRACTION_UNIT);
                // At most host_memory, because `parse` refuses fractions above 1.
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        };
        let bytes = match self.scope {
            Scope::Process => bytes,
            Scope::Host => bytes / u64::from(ranks_on_host.max(1)),
        };
        (bytes / page_bytes).max(1) * page_bytes
    }
}

impl fmt::Display for SegmentLimit {
    /// In a form that [`parse`](Self::parse) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Amount::Bytes(bytes) => {
                // The short form only where it is exact.
                let short = HumanSize(bytes).to_string();
                if parse_size(&short) == Ok(bytes) {
                    f.write_str(&short)?;
                } else {
                    write!(f, "{bytes}")?;
                }
            }
            Amount::Fraction(FRACTION_UNIT) => f.write_str("1.0")?,
            Amount::Fraction(parts) => {
                let digits = format!("{parts:09}");
                write!(f, "0.{}", digits.trim_end_matches('0'))?;
            }
        }
        f.write_str(match self.scope {
            Scope::Process => "/P",
            Scope::Host => "/H",
        })
    }
}

/// `None` when the text is not a number without unit in the range of fractions; then it may be a
/// size.
///
/// `Err` when it can be neither.
fn parse_fraction(text: &str) -> Option<Result<u64, String>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    match (whole.trim_start_matches('0'), fraction) {
        ("1", "") => Some(Ok(FRACTION_UNIT)),
        ("", _) => {
            let kept = &fraction[..fraction.len().min(9)];
            // Nine digits fit; none at all is 0.
            Some(Ok(format!("{kept:0<9}").parse().unwrap_or(0)))
        }
        (_, "") => None,
        _ => Some(Err(
            "a fraction of the host's memory cannot exceed 1, and a size needs a unit".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::SegmentLimit;

    const GIB: u64 = 1 << 30;
    const PAGE: u64 = 4096;

    fn limit(value: &str) -> SegmentLimit {
        SegmentLimit::parse(value).unwrap_or_else(|error| panic!("{value}: {error}"))
    }

    #[test]
    fn every_form_gives_its_share() {
        // 128 GiB, 32 ranks.
        for (value, bytes) in [
            ("64.0MB/P", 64 << 20),
            ("64.5mb/p", (64 << 20) + (1 << 19)),
            (" 1 GB / P ", GIB),
            ("4GB/H", GIB / 8),
            ("67108864", 64 << 20),
            ("67108864/H", 2 << 20),
            ("4G", 4 * GIB),
            ("0.5/H", 2 * GIB),
            ("0.5", 2 * GIB),
            (".5", 2 * GIB),
            ("1/H", 4 * GIB),
            ("1.0", 4 * GIB),
            ("0.25/P", 32 * GIB),
            ("1TB/P", 1024 * GIB),
            // Never less than one page, always whole pages.
            ("2/P", 4096),
            ("8191/P", 4096),
            ("4KB/H", 4096),
            ("0.000000001/H", 4096),
        ] {
            assert_eq!(limit(value).per_rank(128 * GIB, 32, PAGE), bytes, "{value}");
        }
    }

    #[test]
    fn the_default_is_gasnets() {
        assert_eq!(SegmentLimit::default(), limit("0.85/H"));
        let all = SegmentLimit::default().per_rank(100 * GIB, 1, PAGE);
        assert!(all <= 85 * GIB && all > 85 * GIB - 8192);
        assert!(SegmentLimit::default().per_rank(u64::MAX, 1, PAGE) < u64::MAX);
        assert_eq!(
            SegmentLimit::default().per_rank(GIB, 0, PAGE),
            SegmentLimit::default().per_rank(GIB, 1, PAGE)
        );
    }

    #[test]
    fn bad_values_are_refused_with_a_reason() {
        for value in [
            "",
            "/P",
            "/",
            "64MB/",
            "64MB/N",
            "64MB/P/H",
            "P",
            "-1/P",
            "-0.5/H",
            "1.5",
            "1.5/H",
            "0",
            "0.0",
            "0/H",
            "0MB/P",
            "nan",
            "NaN/H",
            "inf/P",
            "1e9",
            "85%",
            "64 XB/P",
            "0.0000000001",
            "99999999999TB/P",
            "one/H",
            "1.2.3",
            ".",
            "./H",
        ] {
            let error = SegmentLimit::parse(value).expect_err(value);
            assert!(!error.to_string().is_empty(), "{value}");
        }
    }

    #[test]
    fn display_reads_back() {
        for value in [
            "64.5 MiB/P",
            "4 GiB/H",
            "0.85/H",
            "1.0/H",
            "0.1/P",
            "0.000000001/P",
            "67108865/P",
        ] {
            assert_eq!(limit(&limit(value).to_string()), limit(value), "{value}");
        }
        assert_eq!(SegmentLimit::default().to_string(), "0.85/H");
    }
}
