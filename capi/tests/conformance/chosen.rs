//! Which combinations of a program, a way to build it and a number of ranks are run. All of them take long, so that
//! usually some are, in which all ways and all numbers occur as often; other ones with another base.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Chosen {
    All,
    /// Some, by this number.
    From(usize),
}

impl Chosen {
    /// What `C_CONFORMANCE` and `C_CONFORMANCE_BASE` say.
    pub(crate) fn of_environment() -> Self {
        let all = std::env::var_os("C_CONFORMANCE").map(|value| {
            assert_eq!(value, "all", "C_CONFORMANCE can be `all` only");
        });
        if all.is_some() {
            return Self::All;
        }
        let base = std::env::var("C_CONFORMANCE_BASE").map_or(0, |text| {
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => text.parse(),
            };
            number.unwrap_or_else(|error| panic!("C_CONFORMANCE_BASE is `{text}`: {error}"))
        });
        // Far fewer than this are different.
        Self::From((base % 10_000) as usize)
    }

    /// Whether a program, given by its place in the list, is run in this way of `ways` with this number of `numbers`.
    pub(crate) fn has(
        self,
        program: usize,
        (way, ways): (usize, usize),
        (number, numbers): (usize, usize),
    ) -> bool {
        let Self::From(base) = self else {
            return true;
        };
        let turn = base + program;
        way == turn % ways && number == (turn / ways + 2 * turn) % numbers
    }

    /// Which of `numbers` the end of a job is tried with.
    pub(crate) fn has_end(self, case: usize, (number, numbers): (usize, usize)) -> bool {
        match self {
            Self::All => true,
            Self::From(base) => number == (base + case) % numbers,
        }
    }
}
