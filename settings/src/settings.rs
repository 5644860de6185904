//! The settings of one process.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};

use crate::error::{BadValue, SettingsError};
use crate::kind::Kind;
use crate::log::Log;
use crate::row::{Effect, Preset, Row};
use crate::setting::Setting;
use crate::table::{self, Index};
use crate::value::{Plain, Typed, Value};
use crate::warning::{self, Warning};

/// The values that the user gave, checked, and the defaults.
///
/// Any thread may read it. Reading takes a lock, so fast paths keep the values that they have read.
#[derive(Debug, Default)]
pub struct Settings {
    /// By name.
    ///
    /// Rows with an effect have their value here too.
    given: BTreeMap<&'static str, Given>,
    warnings: Vec<Warning>,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Given {
    text: String,
    value: Option<Value>,
}

impl Settings {
    /// The settings in `pairs`, which may hold anything else too.
    ///
    /// Of two pairs with one name the first counts, as with getenv. An empty or blank value counts
    /// as not given.
    ///
    /// # Errors
    /// Values that are not allowed or not UTF-8, of variables that have an effect: all of them.
    pub fn from_pairs(
        pairs: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let mut bad = Vec::new();
        let mut names = BTreeSet::new();
        // Sorting all names costs more than looking nothing up.
        let mut index = None;
        for (name, text) in pairs {
            let Ok(name) = name.into_string() else {
                continue;
            };
            if !names.insert(name.clone()) {
                continue;
            }
            let value = text.to_string_lossy();
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            match index.get_or_insert_with(Index::new).find(&name) {
                Some(row) => {
                    if let Err(error) = settings.take(row, &name, value, text.to_str().is_some()) {
                        bad.push(error);
                    }
                }
                None => settings.warnings.extend(warning::unknown(&name)),
            }
        }
        settings.warnings.sort();
        if bad.is_empty() {
            return Ok(settings);
        }
        bad.sort_by_key(|bad| bad.name);
        Err(SettingsError { bad })
    }

    fn take(
        &mut self,
        row: &'static Row,
        name: &str,
        text: &str,
        is_utf8: bool,
    ) -> Result<(), BadValue> {
        let value = match row.effect {
            Effect::Internal => return Ok(()),
            Effect::NoEffect(reason) => {
                // An impossible value is no error where it has no effect.
                let value = row.kind.parse(text).ok().filter(|_| is_utf8);
                // Turning off an absent feature has its effect. Realm sets three such itself.
                if !(table::is_absence(reason) && value == Some(Value::Boolean(false))) {
                    self.warnings.extend(warning::no_effect(name, reason));
                }
                value
            }
            Effect::Used => {
                let parsed = if is_utf8 {
                    row.kind.parse(text)
                } else {
                    Err(Some("not UTF-8".into()))
                };
                Some(parsed.map_err(|reason| BadValue {
                    name: row.name,
                    value: text.into(),
                    reason,
                    allowed: row.kind.allowed(),
                })?)
            }
        };
        let text = text.to_owned();
        // Of a pattern's names one is shown.
        self.given.entry(row.name).or_insert(Given { text, value });
        Ok(())
    }

    /// The value that holds: the one given, else the default.
    #[must_use]
    pub fn get<T: Typed>(&self, setting: &Setting<T>) -> T {
        let row = setting.row();
        self.typed(row, self.value(row).or_else(|| row.preset_value()))
    }

    /// As [`get`](Self::get), but does not count as reading: for a caller that asks on behalf of
    /// another process that reads it too.
    #[must_use]
    pub fn peek<T: Typed>(&self, setting: &Setting<T>) -> T {
        let row = setting.row();
        Self::as_type(row, self.value(row).or_else(|| row.preset_value()))
    }

    /// The value given, else `computed`.
    #[must_use]
    pub fn get_or<T: Plain>(&self, setting: &Setting<Option<T>>, computed: T) -> T {
        let row = setting.row();
        let value = self.value(row).unwrap_or_else(|| computed.into_value());
        self.typed(row, Some(value))
    }

    /// The text that the user gave, without blanks around it.
    #[must_use]
    pub fn given<T>(&self, setting: &Setting<T>) -> Option<&str> {
        self.given_text(setting.row())
    }

    /// As [`given`](Self::given), of any row.
    #[must_use]
    pub fn given_text(&self, row: &Row) -> Option<&str> {
        self.given.get(row.name).map(|given| given.text.as_str())
    }

    fn value(&self, row: &Row) -> Option<Value> {
        self.given.get(row.name)?.value.clone()
    }

    /// Logs a read, and makes its type.
    fn typed<T: Typed>(&self, row: &'static Row, value: Option<Value>) -> T {
        let shown = match &value {
            Some(value) => self.shown_as(row, value),
            None => "*not set*".into(),
        };
        let is_default = self.given_text(row).is_none();
        self.log().add(row.name, &shown, is_default);
        Self::as_type(row, value)
    }

    fn as_type<T: Typed>(row: &Row, value: Option<Value>) -> T {
        match T::from_value(value) {
            Some(value) => value,
            // A test reads every constant.
            None => panic!("the constant of {} has another type than its row", row.name),
        }
    }

    /// The text given, and its meaning where it may not be clear.
    fn shown_as(&self, row: &Row, value: &Value) -> String {
        let shown = row.kind.show(value);
        match (self.given_text(row), row.kind) {
            (None, _) | (_, Kind::Boolean) => shown,
            (Some(text), Kind::Size { .. } | Kind::Count { .. }) if text != shown => {
                format!("{text} ({shown})")
            }
            (Some(text), _) => text.into(),
        }
    }

    /// The value that holds for `row`, for people, and whether it is the default.
    ///
    /// Does not count as reading.
    #[must_use]
    pub fn shown(&self, row: &Row) -> (String, bool) {
        if let Some(text) = self.given_text(row) {
            let value = self.value(row).map(|value| self.shown_as(row, &value));
            return (value.unwrap_or_else(|| text.into()), false);
        }
        let shown = match row.preset {
            Preset::Unset => "*not set*".into(),
            Preset::Words(words) => words.into(),
            Preset::Is(text) => row
                .preset_value()
                .map_or(text.into(), |v| row.kind.show(&v)),
        };
        (shown, true)
    }

    /// Warnings of settings that are not wrong, but have not the effect that their author may
    /// expect; sorted.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Writes a line for every setting that has been read, and from now on for each that is read
    /// for the first time: `GASNET_VERBOSEENV=1` asks that of rank 0.
    ///
    /// `write` must not read settings.
    pub fn announce(&self, write: impl FnMut(&str) + Send + 'static) {
        self.log().open(Box::new(write));
    }

    /// Forgets which settings have been read, and keeps no further list of it: for a caller that
    /// does not [`announce`](Self::announce).
    pub fn keep_quiet(&self) {
        self.log().close();
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Settings {
    /// As if the user had given `text`, for any kind.
    pub(crate) fn give(&mut self, row: &'static Row, text: &str) {
        let text = text.to_owned();
        self.given.insert(row.name, Given { text, value: None });
    }
}
