//! Counting tests by what `cargo test` prints.

/// Counts of one stage or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Names of tests that were left out, with the reason where there is one.
    pub(crate) skipped: Vec<String>,
    /// Names of tests and steps that failed.
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// Takes one line of the output of a test program.
    pub(crate) fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result: ") {
            for part in rest.split([';', '.']) {
                let mut words = part.split_whitespace();
                let (Some(count), Some(what)) = (words.next(), words.next()) else {
                    continue;
                };
                let Ok(count) = count.parse::<usize>() else {
                    continue;
                };
                match what {
                    "passed" => self.passed += count,
                    "failed" => self.failed += count,
                    _ => {}
                }
            }
            return;
        }
        let Some((name, verdict)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return;
        };
        // Documentation examples marked `ignore` count too: an example that does not run is not
        // checked.
        if verdict == "ignored" {
            self.skipped.push(name.trim().to_owned());
        } else if let Some(reason) = verdict.strip_prefix("ignored, ") {
            self.skipped.push(format!("{} ({reason})", name.trim()));
        } else if verdict == "FAILED" {
            self.failures.push(name.trim().to_owned());
        }
    }

    /// A step that is no test program: counted as one test.
    pub(crate) fn step(&mut self, name: &str, ok: bool) {
        if ok {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.failures.push(name.to_owned());
        }
    }

    /// A step that could not be made here.
    pub(crate) fn skip(&mut self, name: &str, reason: &str) {
        self.skipped.push(format!("{name} ({reason})"));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend_from_slice(&other.skipped);
        self.failures.extend_from_slice(&other.failures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_programs_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test a::c ... FAILED",
            "test a::d ... ignored",
            "test a::e - should panic ... ok",
            "test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test kill rank 3    ... ignored, no cc",
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test of nothing",
        ] {
            tally.line(line);
        }
        assert_eq!((tally.passed, tally.failed), (7, 1));
        assert_eq!(tally.skipped, ["a::d", "kill rank 3 (no cc)"]);
        assert_eq!(tally.failures, ["a::c"]);
    }

    #[test]
    fn steps_count_as_tests() {
        let mut tally = Tally::default();
        tally.step("clippy", true);
        tally.step("rustfmt", false);
        tally.skip("headers", "no cc");
        let mut all = Tally::default();
        all.add(&tally);
        assert_eq!((all.passed, all.failed), (1, 1));
        assert_eq!(all.failures, ["rustfmt"]);
        assert_eq!(all.skipped, ["headers (no cc)"]);
    }
}
