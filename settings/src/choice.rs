//! Words that a setting chooses from, as types.

use num_enum::{IntoPrimitive, TryFromPrimitive};

use crate::value::{Plain, Typed, Value};

/// An enum whose variants are words of a setting.
macro_rules! choice {
    ($type:ident: $($variant:ident = $word:literal,)*) => {
        impl $type {
            /// The words, as users write them.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The variant that a word stands for, spelt as in [`WORDS`](Self::WORDS).
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl Typed for $type {
            fn from_value(value: Option<Value>) -> Option<Self> {
                match value {
                    Some(Value::Choice(word)) => Self::from_word(word),
                    _ => None,
                }
            }
        }

        impl Plain for $type {
            fn into_value(self) -> Value {
                Value::Choice(self.word())
            }
        }
    };
}

/// The size of the pages that the segments file is made of, when it is not the system's base page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoPrimitive, TryFromPrimitive)]
#[repr(u32)]
pub enum HugePages {
    /// 2 MiB.
    Size2MB = 1,
    /// 1 GiB.
    Size1GB = 2,
}

impl HugePages {
    /// The size of one page in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Size2MB => 2 << 20,
            Self::Size1GB => 1 << 30,
        }
    }
}

choice! { HugePages: Size2MB = "2MB", Size1GB = "1GB", }

/// The ways to wait that a client can choose between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WaitMode {
    /// Spin, yield and sleep as suits the number of ranks and processors.
    #[default]
    Auto,
    /// Poll forever and give nothing away: for ranks that have a processor each and share it with
    /// no other process.
    Spin,
    /// Give the processor to others between polls, but never sleep.
    Yield,
    /// Sleep as soon as there is nothing to do.
    Sleep,
}

choice! { WaitMode: Auto = "auto", Spin = "spin", Yield = "yield", Sleep = "sleep", }

/// The protection of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sealing {
    /// Each has a code by the job's key.
    #[default]
    Auth,
    /// Its record is encrypted by a key made from that, too.
    Encrypt,
    /// None has.
    Off,
}

choice! { Sealing: Auth = "auth", Encrypt = "encrypt", Off = "off", }

/// What becomes of a job that loses a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnRankLost {
    /// It ends.
    #[default]
    End,
    /// It goes on with the other ranks, if their clients accept that.
    Continue,
}

choice! { OnRankLost: End = "end", Continue = "continue", }

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceFormat {
    /// As the name of the file ends.
    #[default]
    Auto,
    /// One line for each record, as GASNet writes them.
    Text,
    /// Trace events in JSON, which Perfetto opens.
    Perfetto,
}

choice! { TraceFormat: Auto = "auto", Text = "text", Perfetto = "perfetto", }

/// Ways to print the stack of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BacktraceType {
    /// The library itself.
    Execinfo,
    /// gdb.
    Gdb,
    /// lldb.
    Lldb,
    /// gstack.
    Gstack,
    /// pstack.
    Pstack,
    /// dbx.
    Dbx,
    /// Solaris' function of that name.
    Printstack,
}

choice! {
    BacktraceType:
    Execinfo = "EXECINFO",
    Gdb = "GDB",
    Lldb = "LLDB",
    Gstack = "GSTACK",
    Pstack = "PSTACK",
    Dbx = "DBX",
    Printstack = "PRINTSTACK",
}

impl Typed for Vec<BacktraceType> {
    fn from_value(value: Option<Value>) -> Option<Self> {
        match value {
            Some(Value::Choices(words)) => {
                words.into_iter().map(BacktraceType::from_word).collect()
            }
            _ => None,
        }
    }
}

impl Plain for Vec<BacktraceType> {
    fn into_value(self) -> Value {
        Value::Choices(self.into_iter().map(BacktraceType::word).collect())
    }
}
