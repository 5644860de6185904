//! Statistics for people: a line for each kind that was seen, and totals.

use core::fmt::{self, Write};

use argonet_settings::{Letter, Letters};

use crate::counter::{Counters, Total};
use crate::form::{Micros, Seconds};
use crate::kind::{Kind, Unit};

const RULE: &str =
    "--------------------------------------------------------------------------------";

/// Totals over several kinds, in the order of the summary.
const TOTALS: [(&str, Letter, Unit); 7] = [
    ("Total gets:", Letter::Get, Unit::Bytes),
    ("Total puts:", Letter::Put, Unit::Bytes),
    ("Total atomics:", Letter::Atomic, Unit::Bytes),
    ("Total syncs:", Letter::Sync, Unit::None),
    ("Total collectives:", Letter::Collective, Unit::Bytes),
    ("Total barriers:", Letter::Barrier, Unit::None),
    ("Total AM's:", Letter::Message, Unit::Bytes),
];

/// Calls `line` with each line of the summary, without their ends.
///
/// Allocates nothing.
pub(crate) fn write(
    counters: &Counters,
    letters: Letters,
    run_ns: u64,
    mut line: impl FnMut(fmt::Arguments<'_>),
) {
    line(format_args!("{RULE}"));
    line(format_args!("Statistical summary:"));
    line(format_args!("{RULE}"));
    for &kind in Kind::ALL {
        let (values, times) = counters.totals(kind);
        if !letters.contains(kind.letter()) || values.count == 0 {
            continue;
        }
        let name = kind.name();
        let what = match kind.unit() {
            Unit::None => "",
            Unit::Bytes => "sz (bytes)",
            Unit::Success => "success",
            Unit::Count => "count",
        };
        line(format_args!(
            " {:<27}{}",
            Colon(name),
            Numbers {
                what,
                values,
                times
            }
        ));
    }
    line(format_args!(""));
    for (name, letter, unit) in TOTALS {
        if !letters.contains(letter) {
            continue;
        }
        let (mut values, mut times) = (Total::NONE, Total::NONE);
        // A message is counted where it is sent.
        let counted = |kind: &&Kind| kind.letter() == letter && !kind.name().ends_with("_HANDLER");
        for &kind in Kind::ALL.iter().filter(counted) {
            let (value, time) = counters.totals(kind);
            (values, times) = (values.with(value), times.with(time));
        }
        let what = if unit == Unit::Bytes {
            "sz (bytes)"
        } else {
            ""
        };
        line(format_args!(
            "{name:<28}{}",
            Numbers {
                what,
                values,
                times
            }
        ));
    }
    line(format_args!("{RULE}"));
    line(format_args!(
        "Total application run time: {}s",
        Seconds(run_ns)
    ));
}

/// A name and a colon, which can be padded together.
struct Colon<'a>(&'a str);

impl fmt::Display for Colon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.0)?;
        let width = f.width().unwrap_or(0);
        (self.0.len() + 1..width).try_for_each(|_| f.write_char(' '))
    }
}

struct Numbers<'a> {
    what: &'a str,
    values: Total,
    times: Total,
}

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            values,
            times,
        } = self;
        let count = values.count;
        write!(f, "{count:8}")?;
        if count == 0 {
            return Ok(());
        }
        if !what.is_empty() {
            // Thousandths, without a float.
            let average = u128::from(values.sum) * 1000 / u128::from(count);
            write!(
                f,
                "  avg/min/max/total {what} = {}.{:03}/{}/{}/{}",
                average / 1000,
                average % 1000,
                values.least,
                values.greatest,
                values.sum
            )?;
        }
        write!(
            f,
            "  avg/min/max/total time (us) = {}/{}/{}/{}",
            Micros(times.sum / count),
            Micros(times.least),
            Micros(times.greatest),
            Micros(times.sum)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(counters: &Counters, letters: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let letters = Letters::parse(letters).unwrap();
        write(counters, letters, 1_234_567_890, |line| {
            lines.push(line.to_string())
        });
        lines
    }

    #[test]
    fn kinds_and_totals() {
        let counters = Counters::new();
        counters.add(Kind::Put, 8, 1500);
        counters.add(Kind::PutNb, 24, 500);
        counters.add(Kind::PutNb, 1, 250);
        counters.add(Kind::RequestShort, 0, 70);
        counters.add(Kind::HandlerRequestShort, 0, 1);
        let lines = lines(&counters, "");
        for expected in [
            " PUT:                              1  avg/min/max/total sz (bytes) = 8.000/8/8/8  avg/min/max/total time (us) = 1.500/1.500/1.500/1.500",
            " PUT_NB:                           2  avg/min/max/total sz (bytes) = 12.500/1/24/25  avg/min/max/total time (us) = 0.375/0.250/0.500/0.750",
            " AMREQUEST_SHORT:                  1  avg/min/max/total time (us) = 0.070/0.070/0.070/0.070",
            "Total puts:                        3  avg/min/max/total sz (bytes) = 11.000/1/24/33  avg/min/max/total time (us) = 0.750/0.250/1.500/2.250",
            "Total AM's:                        1  avg/min/max/total sz (bytes) = 0.000/0/0/0  avg/min/max/total time (us) = 0.070/0.070/0.070/0.070",
            "Total gets:                        0",
            "Total application run time: 1.234567s",
        ] {
            assert!(
                lines.iter().any(|line| line == expected),
                "{expected}\n{lines:#?}"
            );
        }
    }

    #[test]
    fn letters_choose() {
        let counters = Counters::new();
        counters.add(Kind::Put, 8, 1500);
        counters.add(Kind::Get, 8, 1500);
        let text = lines(&counters, "^P").join("\n");
        assert!(
            text.contains(" GET:") && text.contains("Total gets:"),
            "{text}"
        );
        assert!(
            !text.contains(" PUT:") && !text.contains("Total puts:"),
            "{text}"
        );
    }
}
