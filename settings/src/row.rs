//! A row of the table.

use crate::kind::Kind;
use crate::value::Value;

/// The value of a variable that is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// This value, in a form that the row's kind reads.
    Is(&'static str),
    /// No value.
    Unset,
    /// In words: computed where it is used, or that of the GASNet conduit that reads it.
    Words(&'static str),
}

/// The ranks for which a value holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Single-valued: the same on all ranks, which is checked at start for rows with an effect.
    Job,
    /// May differ from rank to rank.
    Rank,
}

impl Scope {
    /// One word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Rank => "rank",
        }
    }
}

/// The effect of a variable here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is code that reads it.
    Used,
    /// There is no mechanism for it, for this reason.
    NoEffect(&'static str),
    /// Set by argonet for its own processes, not by users.
    Internal,
}

/// One variable, or a family of variables whose names follow a pattern: `<n>` stands for digits and
/// underscores, a `*` at the end for anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The variable.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind,
    /// Its value where it is not given.
    pub preset: Preset,
    /// The ranks for which its value holds.
    pub scope: Scope,
    /// Its purpose, in a sentence.
    pub about: &'static str,
    /// Its effect here.
    pub effect: Effect,
}

impl Row {
    /// A row without a mechanism.
    ///
    /// `preset` is in words; none if empty.
    pub(crate) const fn idle(
        name: &'static str,
        kind: Kind,
        preset: &'static str,
        scope: Scope,
        about: &'static str,
        reason: &'static str,
    ) -> Self {
        let preset = if preset.is_empty() {
            Preset::Unset
        } else {
            Preset::Words(preset)
        };
        let effect = Effect::NoEffect(reason);
        Self {
            name,
            kind,
            preset,
            scope,
            about,
            effect,
        }
    }

    /// Whether this row is about the variable `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if let Some(start) = self.name.strip_suffix('*') {
            return name.len() > start.len() && name.starts_with(start);
        }
        match self.name.split_once("<n>") {
            None => self.name == name,
            Some((start, end)) => name
                .strip_prefix(start)
                .and_then(|rest| rest.strip_suffix(end))
                .is_some_and(|n| {
                    n.starts_with(|c: char| c.is_ascii_digit())
                        && n.bytes().all(|b| b.is_ascii_digit() || b == b'_')
                }),
        }
    }

    /// Whether it stands for one variable, not for a pattern.
    #[must_use]
    pub fn is_one_name(&self) -> bool {
        !self.name.contains(['*', '<'])
    }

    /// The value that holds when the variable is not given, if it is a constant.
    ///
    /// # Panics
    /// If the table holds a default that the kind does not read; a test goes through all.
    #[must_use]
    pub fn preset_value(&self) -> Option<Value> {
        match self.preset {
            Preset::Is(text) => match self.kind.parse(text) {
                Ok(value) => Some(value),
                Err(_) => panic!("the default of {} is not one of its values", self.name),
            },
            _ => None,
        }
    }
}
