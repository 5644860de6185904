//! Types of data and operations on them, of reductions and of remote atomic operations (GASNet-EX
//! 0.19, "Data types for atomics and reductions" and "Operation codes").
//!
//! The values are GASNet's.

mod fold;

pub use fold::{fold, fold_before};

use argonet_base::gasnet::number32;
use num_enum::{IntoPrimitive, TryFromPrimitive};

/// A type of data (`gex_DT_t`), one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u32)]
pub enum DataType {
    /// Signed, 32 bits.
    I32 = number32("GEX_DT_I32"),
    /// Unsigned, 32 bits.
    U32 = number32("GEX_DT_U32"),
    /// Signed, 64 bits.
    I64 = number32("GEX_DT_I64"),
    /// Unsigned, 64 bits.
    U64 = number32("GEX_DT_U64"),
    /// IEEE 754 binary32.
    F32 = number32("GEX_DT_FLT"),
    /// IEEE 754 binary64.
    F64 = number32("GEX_DT_DBL"),
    /// The client's own, of reductions alone.
    User = number32("GEX_DT_USER"),
}

/// An operation (`gex_OP_t`), one bit each.
///
/// `op0` is the value at the target of an atomic operation before it, or the left operand of a
/// reduction; `op1` and `op2` are operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, TryFromPrimitive, IntoPrimitive)]
#[repr(u32)]
pub enum Operation {
    /// `op0 & op1`.
    And = number32("GEX_OP_AND"),
    /// `op0 | op1`.
    Or = number32("GEX_OP_OR"),
    /// `op0 ^ op1`.
    Xor = number32("GEX_OP_XOR"),
    /// `op0 + op1`.
    Add = number32("GEX_OP_ADD"),
    /// `op0 - op1`.
    Sub = number32("GEX_OP_SUB"),
    /// `op0 * op1`.
    Mult = number32("GEX_OP_MULT"),
    /// `op0 < op1 ? op0 : op1`.
    Min = number32("GEX_OP_MIN"),
    /// `op0 > op1 ? op0 : op1`.
    Max = number32("GEX_OP_MAX"),
    /// `op0 + 1`.
    Inc = number32("GEX_OP_INC"),
    /// `op0 - 1`.
    Dec = number32("GEX_OP_DEC"),
    /// `op1`.
    Set = number32("GEX_OP_SET"),
    /// `op0 == op1 ? op2 : op0`.
    Cas = number32("GEX_OP_CAS"),
    /// [`And`](Self::And), and fetches `op0`.
    FetchAnd = number32("GEX_OP_FAND"),
    /// [`Or`](Self::Or), and fetches `op0`.
    FetchOr = number32("GEX_OP_FOR"),
    /// [`Xor`](Self::Xor), and fetches `op0`.
    FetchXor = number32("GEX_OP_FXOR"),
    /// [`Add`](Self::Add), and fetches `op0`.
    FetchAdd = number32("GEX_OP_FADD"),
    /// [`Sub`](Self::Sub), and fetches `op0`.
    FetchSub = number32("GEX_OP_FSUB"),
    /// [`Mult`](Self::Mult), and fetches `op0`.
    FetchMult = number32("GEX_OP_FMULT"),
    /// [`Min`](Self::Min), and fetches `op0`.
    FetchMin = number32("GEX_OP_FMIN"),
    /// [`Max`](Self::Max), and fetches `op0`.
    FetchMax = number32("GEX_OP_FMAX"),
    /// [`Inc`](Self::Inc), and fetches `op0`.
    FetchInc = number32("GEX_OP_FINC"),
    /// [`Dec`](Self::Dec), and fetches `op0`.
    FetchDec = number32("GEX_OP_FDEC"),
    /// [`Set`](Self::Set), and fetches `op0`.
    Swap = number32("GEX_OP_SWAP"),
    /// [`Cas`](Self::Cas), and fetches `op0`.
    FetchCas = number32("GEX_OP_FCAS"),
    /// Fetches `op0` and changes nothing.
    Get = number32("GEX_OP_GET"),
    /// The client's own, commutative.
    User = number32("GEX_OP_USER"),
    /// The client's own, in the order of ranks.
    UserNonCommutative = number32("GEX_OP_USER_NC"),
}

/// Bits of the operations that have a fetching partner, [`Operation::And`] to `Cas`, and how much
/// further on those stand.
const PLAIN: u32 = 2 * Operation::Cas as u32 - Operation::And as u32;
const TO_FETCHING: u32 =
    Operation::FetchAnd.bit().trailing_zeros() - Operation::And.bit().trailing_zeros();
const FETCHING: u32 = PLAIN << TO_FETCHING | Operation::Get as u32;

/// [`Operation::And`], `Or` and `Xor`, which floats have not.
const BITWISE: u32 = Operation::And as u32 | Operation::Or as u32 | Operation::Xor as u32;
const ATOMIC: u32 = PLAIN | FETCHING;
const REDUCING: u32 = BITWISE
    | Operation::Add as u32
    | Operation::Mult as u32
    | Operation::Min as u32
    | Operation::Max as u32;
const USERS: u32 = Operation::User as u32 | Operation::UserNonCommutative as u32;

impl DataType {
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::User,
    ];

    /// Bytes of a value; unknown here if it is the client's own.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> Option<usize> {
        match self {
            Self::I32 | Self::U32 | Self::F32 => Some(4),
            Self::I64 | Self::U64 | Self::F64 => Some(8),
            Self::User => None,
        }
    }

    /// Whether it is `f32` or `f64`.
    #[inline]
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Its name in C.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I32 => "GEX_DT_I32",
            Self::U32 => "GEX_DT_U32",
            Self::I64 => "GEX_DT_I64",
            Self::U64 => "GEX_DT_U64",
            Self::F32 => "GEX_DT_FLT",
            Self::F64 => "GEX_DT_DBL",
            Self::User => "GEX_DT_USER",
        }
    }

    /// The operations that atomics have on it, as bits.
    #[inline]
    #[must_use]
    pub const fn atomics(self) -> u32 {
        match self {
            Self::User => 0,
            Self::F32 | Self::F64 => ATOMIC & !(BITWISE | BITWISE << TO_FETCHING),
            _ => ATOMIC,
        }
    }

    /// The operations that reductions have on it, as bits.
    #[inline]
    #[must_use]
    pub const fn reductions(self) -> u32 {
        match self {
            Self::User => USERS,
            Self::F32 | Self::F64 => REDUCING & !BITWISE | USERS,
            _ => REDUCING | USERS,
        }
    }
}

impl Operation {
    /// Its bit.
    #[inline(always)]
    #[must_use]
    pub const fn bit(self) -> u32 {
        self as u32
    }

    /// All operations, from the lowest bit on.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..u32::BITS).filter_map(|bit| Self::try_from(1 << bit).ok())
    }

    /// Whether remote atomics have it on this type.
    #[inline]
    #[must_use]
    pub const fn is_atomic_on(self, dt: DataType) -> bool {
        dt.atomics() & self.bit() != 0
    }

    /// Whether reductions have it on this type.
    #[inline]
    #[must_use]
    pub const fn reduces(self, dt: DataType) -> bool {
        dt.reductions() & self.bit() != 0
    }

    /// Whether it gives the value before.
    #[inline]
    #[must_use]
    pub const fn is_fetching(self) -> bool {
        self.bit() & FETCHING != 0
    }

    /// Its partner that fetches, or itself if it does, or if there is none (`GEX_OP_TO_FETCHING`).
    #[must_use]
    pub fn fetching(self) -> Self {
        if self.bit() & PLAIN == 0 {
            return self;
        }
        Self::try_from(self.bit() << TO_FETCHING).unwrap_or(self)
    }

    /// Its partner that does not fetch, or itself if it does not, or if there is none
    /// (`GEX_OP_TO_NONFETCHING`).
    #[must_use]
    pub fn nonfetching(self) -> Self {
        if self.bit() & PLAIN << TO_FETCHING == 0 {
            return self;
        }
        Self::try_from(self.bit() >> TO_FETCHING).unwrap_or(self)
    }

    /// How many operands an atomic operation has besides `op0`.
    #[must_use]
    pub const fn operands(self) -> usize {
        match self {
            Self::Inc | Self::Dec | Self::FetchInc | Self::FetchDec | Self::Get => 0,
            Self::Cas | Self::FetchCas => 2,
            _ => 1,
        }
    }

    /// Its name in C.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::And => "GEX_OP_AND",
            Self::Or => "GEX_OP_OR",
            Self::Xor => "GEX_OP_XOR",
            Self::Add => "GEX_OP_ADD",
            Self::Sub => "GEX_OP_SUB",
            Self::Mult => "GEX_OP_MULT",
            Self::Min => "GEX_OP_MIN",
            Self::Max => "GEX_OP_MAX",
            Self::Inc => "GEX_OP_INC",
            Self::Dec => "GEX_OP_DEC",
            Self::Set => "GEX_OP_SET",
            Self::Cas => "GEX_OP_CAS",
            Self::FetchAnd => "GEX_OP_FAND",
            Self::FetchOr => "GEX_OP_FOR",
            Self::FetchXor => "GEX_OP_FXOR",
            Self::FetchAdd => "GEX_OP_FADD",
            Self::FetchSub => "GEX_OP_FSUB",
            Self::FetchMult => "GEX_OP_FMULT",
            Self::FetchMin => "GEX_OP_FMIN",
            Self::FetchMax => "GEX_OP_FMAX",
            Self::FetchInc => "GEX_OP_FINC",
            Self::FetchDec => "GEX_OP_FDEC",
            Self::Swap => "GEX_OP_SWAP",
            Self::FetchCas => "GEX_OP_FCAS",
            Self::Get => "GEX_OP_GET",
            Self::User => "GEX_OP_USER",
            Self::UserNonCommutative => "GEX_OP_USER_NC",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the specification, by names.
    #[test]
    fn pairs_are_valid_as_in_the_table_of_the_specification() {
        let arithmetic = ["ADD", "MULT", "MIN", "MAX"];
        let bitwise = ["AND", "OR", "XOR"];
        let atomics_alone = ["SUB", "INC", "DEC", "SET", "CAS"];
        let fetching = [
            "FADD", "FMULT", "FMIN", "FMAX", "FSUB", "FINC", "FDEC", "SWAP", "FCAS", "GET",
        ];
        let fetching_bitwise = ["FAND", "FOR", "FXOR"];
        let users = ["USER", "USER_NC"];
        for dt in DataType::ALL {
            let (user, float) = (dt == DataType::User, dt.is_float());
            for op in Operation::all() {
                let name = op.name().strip_prefix("GEX_OP_").unwrap();
                let is = |names: &[&str]| names.contains(&name);
                let bits = is(&bitwise) || is(&fetching_bitwise);
                let atomic = !(user || is(&users) || (float && bits));
                assert_eq!(op.is_atomic_on(dt), atomic, "{name} on {dt:?}");
                let reduces =
                    is(&users) || (!user && (is(&arithmetic) || (!float && is(&bitwise))));
                assert_eq!(op.reduces(dt), reduces, "{name} on {dt:?}");
                assert_eq!(op.is_fetching(), is(&fetching) || is(&fetching_bitwise));
                assert!(
                    is(&arithmetic) || bits || is(&atomics_alone) || is(&fetching) || is(&users)
                );
            }
        }
        assert_eq!(Operation::all().count(), 27);
    }

    #[test]
    fn partners_are_partners() {
        use Operation::{Cas, FetchCas, Get, Set, Swap, User};
        for op in Operation::all() {
            let (fetching, plain) = (op.fetching(), op.nonfetching());
            assert_eq!(fetching.nonfetching(), plain.fetching().nonfetching());
            assert_eq!(fetching.operands(), plain.operands());
            let alone = [Get, User, Operation::UserNonCommutative].contains(&op);
            assert_eq!(alone, fetching == plain, "{op:?}");
        }
        assert_eq!((Set.fetching(), Swap.nonfetching()), (Swap, Set));
        assert_eq!((Cas.fetching(), FetchCas.nonfetching()), (FetchCas, Cas));
        assert_eq!((Get.nonfetching(), User.fetching()), (Get, User));
    }

    #[test]
    fn numbers_of_other_than_one_bit_are_refused() {
        for wrong in [0, 3, 1 << 12, 1 << 28, u32::MAX] {
            assert!(Operation::try_from(wrong).is_err());
        }
        for wrong in [0, 3, 128] {
            assert!(DataType::try_from(wrong).is_err());
        }
        for dt in DataType::ALL {
            assert_eq!(DataType::try_from(u32::from(dt)), Ok(dt));
        }
    }
}
