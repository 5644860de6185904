//! Results as a tuning file: settings, and as comments the measurements of each.

use super::choice::{LEAST_GAIN, Timed, against_first};
use super::knobs::Load;
use super::rig::name_of;
use std::fmt::Write;

/// Result for a setting.
pub(super) struct Found {
    pub(super) name: &'static str,
    /// Values that were tried, the one in force before first.
    pub(super) values: Vec<String>,
    pub(super) loads: Vec<Load>,
    /// As many as loads.
    pub(super) timed: Vec<Timed>,
    pub(super) chosen: usize,
}

impl Found {
    fn differs(&self) -> bool {
        self.timed.iter().any(Timed::differs)
    }

    /// A table in comments, and the setting.
    fn section(&self, text: &mut String) -> std::fmt::Result {
        let Self { name, values, .. } = self;
        writeln!(text)?;
        if !self.differs() {
            writeln!(
                text,
                "# {name}: in this job all of its values come to the same, so it is not set"
            )?;
            return Ok(());
        }
        writeln!(text, "# {name}, microseconds of one operation:")?;
        write!(text, "#   {:30}", "")?;
        for value in values {
            write!(text, " {value:>14}")?;
        }
        writeln!(text)?;
        for (load, timed) in self.loads.iter().zip(&self.timed) {
            if !timed.differs() {
                continue;
            }
            let what = format!("{} of {} B", name_of(load.kind), load.block);
            write!(text, "#   {what:30}")?;
            for value in 0..values.len() {
                write!(text, " {:>14.2}", timed.quartile(value) / 1e3)?;
            }
            writeln!(text)?;
        }
        write!(text, "#   {:30}", "all, against the first")?;
        for value in 0..values.len() {
            write!(text, " {:>14.2}", against_first(&self.timed, value))?;
        }
        writeln!(text)?;
        writeln!(text, "{name}={}", values[self.chosen])
    }
}

/// The file; `heading` says where and how it was measured, in lines.
pub(super) fn text(heading: &[String], found: &[Found]) -> String {
    let mut text = String::from(
        "# Settings of collective operations, as `argonet perf --tune` has found them.\n",
    );
    let mut say = |line: &str| {
        text.push_str("# ");
        text.push_str(line);
        text.push('\n');
    };
    heading.iter().for_each(|line| say(line));
    say(&format!(
        "The first value of each table held before; another is taken if it is {:.0} % faster over all of the table.",
        LEAST_GAIN * 100.0
    ));
    say("Name this file in GASNET_COLL_TUNING_FILE; settings of the environment count more.");
    for found in found {
        // Writing to a String does not fail.
        let written = found.section(&mut text);
        debug_assert!(written.is_ok());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use argonet_engine::{Kind, Tuning};

    fn found(chosen: usize, way_of: &[usize], times: &[f64]) -> Found {
        Found {
            name: "GASNET_COLL_ROOTED_GEOM",
            values: vec!["KNOMIAL_TREE,2".into(), "FLAT_TREE".into()],
            loads: vec![Load {
                kind: Kind::Broadcast,
                block: 256,
            }],
            timed: vec![Timed {
                way_of: way_of.to_vec(),
                times: times.iter().map(|time| vec![*time]).collect(),
            }],
            chosen,
        }
    }

    #[test]
    fn the_library_reads_written_files() {
        let heading = ["2 ranks".to_owned()];
        let text = super::text(&heading, &[found(1, &[0, 1], &[3000.0, 1500.0])]);
        let mut tuning = Tuning::DEFAULT;
        tuning.read(&text).unwrap();
        assert_eq!(tuning.radix, u32::MAX);
        for part in [
            "# 2 ranks\n",
            "broadcast of 256 B",
            " 3.00",
            " 1.50",
            " 0.50\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let same = super::text(&heading, &[found(0, &[0, 0], &[3000.0])]);
        tuning.read(&same).unwrap();
        assert_eq!(tuning.radix, u32::MAX, "{same}");
        assert!(
            same.contains("GASNET_COLL_ROOTED_GEOM: in this job"),
            "{same}"
        );
    }
}
