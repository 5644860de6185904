//! Values, and the types that programs see them as.

use std::path::PathBuf;
use std::time::Duration;

use crate::letters::Letters;
use crate::limit::SegmentLimit;
use crate::nodes::NodeSet;
use crate::signal::{SignalNumber, Signals};

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A value of one of the [kinds](crate::Kind).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Yes or no.
    Boolean(bool),
    /// A size.
    Size(Bytes),
    /// An upper limit of segments.
    Limit(SegmentLimit),
    /// A number of things.
    Count(u64),
    /// A decimal number.
    Number(f64),
    /// A time.
    Duration(Duration),
    /// One of several words, as the table spells it.
    Choice(&'static str),
    /// Several of several words, in the order given.
    Choices(Vec<&'static str>),
    /// A set of ranks.
    Nodes(NodeSet),
    /// A set of letters.
    Letters(Letters),
    /// A signal.
    Signal(SignalNumber),
    /// A set of signals.
    Signals(Signals),
    /// Any text.
    Text(String),
    /// A file or directory.
    Path(PathBuf),
}

/// A type that a setting's value can be read as.
pub trait Typed: Sized {
    /// The value, where there is one; `None` if the value has another type, or there must be one.
    fn from_value(value: Option<Value>) -> Option<Self>;
}

/// A type that one kind of value has.
pub trait Plain: Typed {
    /// The value.
    fn into_value(self) -> Value;
}

impl<T: Plain> Typed for Option<T> {
    fn from_value(value: Option<Value>) -> Option<Self> {
        match value {
            None => Some(None),
            some => T::from_value(some).map(Some),
        }
    }
}

macro_rules! plain {
    ($($type:ty => $variant:ident,)*) => {$(
        impl Typed for $type {
            fn from_value(value: Option<Value>) -> Option<Self> {
                match value {
                    Some(Value::$variant(value)) => Some(value),
                    _ => None,
                }
            }
        }
        impl Plain for $type {
            fn into_value(self) -> Value {
                Value::$variant(self)
            }
        }
    )*};
}

plain! {
    bool => Boolean,
    Bytes => Size,
    SegmentLimit => Limit,
    u64 => Count,
    f64 => Number,
    Duration => Duration,
    &'static str => Choice,
    NodeSet => Nodes,
    Letters => Letters,
    SignalNumber => Signal,
    Signals => Signals,
    String => Text,
    PathBuf => Path,
}
