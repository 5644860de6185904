//! Settings by environment variables: one [`table()`] that parses, checks, documents and prints.
//!
//! Each [`Row`] has the values of a variable ([`Kind`]), the one that holds where it is not given
//! ([`Preset`]), whether it must be the same on all ranks ([`Scope`]) and its effect here
//! ([`Effect`]). A row with an effect has a typed constant beside it, and that is the only way to
//! read it:
//!
//! ```
//! use argonet_settings::{EXIT_TIMEOUT_MAX, Settings};
//! use std::time::Duration;
//! let given = [("GASNET_EXITTIMEOUT_MAX".into(), "7.5".into())];
//! let settings = Settings::from_pairs(given).unwrap();
//! assert_eq!(settings.get(&EXIT_TIMEOUT_MAX), Duration::from_millis(7500));
//! assert_eq!(settings.given(&EXIT_TIMEOUT_MAX), Some("7.5"));
//! ```
//!
//! [`Settings::from_pairs`] is pure; [`Settings::from_environment`] is the one place where the
//! environment is read. A value that is empty or blank counts as not given, as GASNet has it. A bad
//! value is an error that names the variable, its value and the allowed ones, and all bad ones are
//! in it. A name that is unknown or has no mechanism here is not wrong, but has not the effect that
//! its author may expect: it is a [`Warning`].
//!
//! Single-valued settings are compared at start by [`Settings::card`] and [`Settings::difference`].
#![forbid(unsafe_code)]

mod card;
mod choice;
mod conduits;
pub mod environment;
mod error;
mod kind;
mod letters;
mod limit;
mod log;
mod nodes;
pub mod page;
mod reach;
mod row;
mod setting;
mod settings;
mod signal;
mod table;
mod value;
mod warning;

pub use card::{CARD_BYTES, Difference, OtherValue};
pub use choice::{BacktraceType, HugePages, OnRankLost, Sealing, TraceFormat, WaitMode};
pub use conduits::*;
pub use error::{BadValue, SettingsError};
pub use kind::{Kind, TimeUnit};
pub use letters::{Letter, Letters};
pub use limit::{LimitError, SegmentLimit};
pub use log::line;
pub use nodes::NodeSet;
pub use reach::Reach;
pub use row::{Effect, Preset, Row, Scope};
pub use setting::{Setting, TypedConstant};
pub use settings::Settings;
pub use signal::{SignalNumber, Signals};
pub use table::{Index, Section, table, typed_constants};
pub use table::{
    collectives::*, credits::*, debug::*, exit::*, libraries::*, memory::*, ssh::*, start::*,
    trace::*, vis::*, waiting::*,
};
pub use value::{Bytes, Plain, Typed, Value};
pub use warning::Warning;
