//! Decodes values that a peer has sent: bounded in depth and in elements, for any bytes.
//!
//! The encoding's lengths are checked against the bytes that came, but elements of some types take
//! no bytes (`()`, empty structs), so ten bytes can claim 2^64 of them; and a type that contains
//! itself can be nested as deeply as there are bytes, while each level takes stack. The decoder
//! sees neither, so every decoder of a value is wrapped: every element and every level passes
//! through here.

use core::cell::Cell;
use core::fmt;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// Levels of the values that arguments or a result of a remote procedure call may have: an element,
/// a field, the content of an option, a variant or a new type is one level below the value that has
/// it.
///
/// Serde's formats for text have such a limit, too.
pub const MAX_RPC_DEPTH: u32 = 128;

/// Elements and fields that arguments or a result of a remote procedure call may have, of all
/// levels together; or 16 times as many as the bytes in which they are encoded, if that is more.
///
/// So only elements that take no bytes reach it, or values inside of more than 16 structs of one
/// field each. Elements take the memory that their type has: a field that serde skips counts for
/// nothing here.
pub const MAX_RPC_ELEMENTS: u64 = 1 << 20;

/// Elements that each byte allows, in long values.
const ELEMENTS_A_BYTE: u64 = 16;

/// Why bytes are no value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("{0}")]
    Bytes(postcard::Error),
    #[error("it is nested deeper than {MAX_RPC_DEPTH} levels")]
    TooDeep,
    #[error(
        "it has more than {MAX_RPC_ELEMENTS} elements, and more than {ELEMENTS_A_BYTE} for each of its bytes"
    )]
    TooMany,
}

/// Decodes a value; bytes behind it are ignored.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let bounds = Bounds {
        depth: Cell::new(0),
        elements: Cell::new(0),
        most_elements: MAX_RPC_ELEMENTS.max(bytes.len() as u64 * ELEMENTS_A_BYTE),
        beyond: Cell::new(None),
    };
    let mut decoder = postcard::Deserializer::from_bytes(bytes);
    let value = T::deserialize(Bounded {
        inner: &mut decoder,
        bounds: &bounds,
    });
    // A client's implementation may have swallowed the error.
    match (bounds.beyond.into_inner(), value) {
        (Some(beyond), _) => Err(beyond),
        (None, Ok(value)) => Ok(value),
        (None, Err(error)) => Err(DecodeError::Bytes(error)),
    }
}

/// How far one value has gone.
struct Bounds {
    depth: Cell<u32>,
    elements: Cell<u64>,
    most_elements: u64,
    beyond: Cell<Option<DecodeError>>,
}

impl Bounds {
    /// One level further down, for as long as `f` takes.
    fn descend<R, E: Error>(&self, f: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let depth = self.depth.get();
        if depth >= MAX_RPC_DEPTH {
            return Err(self.exceed(DecodeError::TooDeep));
        }
        self.depth.set(depth + 1);
        let result = f();
        self.depth.set(depth);
        result
    }

    /// Another element, unless it is the end of them.
    fn count<T, E: Error>(&self, element: Option<T>) -> Result<Option<T>, E> {
        let elements = self.elements.get() + u64::from(element.is_some());
        if elements > self.most_elements {
            return Err(self.exceed(DecodeError::TooMany));
        }
        self.elements.set(elements);
        Ok(element)
    }

    fn exceed<E: Error>(&self, beyond: DecodeError) -> E {
        let error = E::custom(&beyond);
        self.beyond.set(Some(beyond));
        error
    }
}

/// A decoder, visitor, seed, or access to elements, all of whose parts pass through the bounds.
struct Bounded<'b, T> {
    inner: T,
    bounds: &'b Bounds,
}

impl<'b, T> Bounded<'b, T> {
    /// The same bounds around something else.
    fn around<U>(&self, inner: U) -> Bounded<'b, U> {
        Bounded {
            inner,
            bounds: self.bounds,
        }
    }
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self $(, $arg: $type)*, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.around(visitor);
            self.inner.$method($($arg,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any() deserialize_ignored_any() deserialize_identifier()
        deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_char(char) visit_f32(f32) visit_f64(f64)
        visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
        visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, decoder: D) -> Result<V::Value, D::Error> {
        let decoder = self.around(decoder);
        self.bounds.descend(|| self.inner.visit_some(decoder))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, decoder: D) -> Result<V::Value, D::Error> {
        let decoder = self.around(decoder);
        self.bounds
            .descend(|| self.inner.visit_newtype_struct(decoder))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let elements = self.around(elements);
        self.inner.visit_seq(elements)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let entries = self.around(entries);
        self.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        let variant = self.around(variant);
        self.inner.visit_enum(variant)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, decoder: D) -> Result<S::Value, D::Error> {
        let decoder = self.around(decoder);
        self.bounds.descend(|| self.inner.deserialize(decoder))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.around(seed);
        let element = self.inner.next_element_seed(seed)?;
        self.bounds.count(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.around(seed);
        let key = self.inner.next_key_seed(seed)?;
        self.bounds.count(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'b, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'b, A> {
    type Error = A::Error;
    type Variant = Bounded<'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let seed = self.around(seed);
        let (value, variant) = self.inner.variant_seed(seed)?;
        let bounds = self.bounds;
        Ok((
            value,
            Bounded {
                inner: variant,
                bounds,
            },
        ))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.around(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.around(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.around(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    /// Every shape that serde knows.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    enum Shape {
        Unit,
        New(u8),
        Tuple(i16, Option<char>),
        Struct { a: (), b: Vec<Shape> },
    }

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Outer(Vec<Shape>);

    /// Nests with one byte a level.
    #[derive(Deserialize, PartialEq, Debug)]
    enum Link {
        End,
        Next(Box<Link>),
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Nested(Option<Box<Nested>>);

    type Map = BTreeMap<String, Vec<u32>>;

    fn claims(count: u64) -> Vec<u8> {
        postcard::to_stdvec(&count).unwrap()
    }

    #[test]
    fn encoded_values_decode_to_themselves() {
        let b = vec![Shape::Unit, Shape::New(3), Shape::Tuple(-4, Some('x'))];
        let outer = Outer(vec![Shape::Struct { a: (), b }, Shape::Tuple(1, None)]);
        let map = BTreeMap::from([("a".to_owned(), vec![1u32, 2]), (String::new(), vec![])]);
        let value = (outer, map, 1.5f32, [0u64; 3], "text".to_owned(), u128::MAX);
        let bytes = postcard::to_stdvec(&value).unwrap();
        let again: (Outer, Map, f32, [u64; 3], String, u128) = decode(&bytes).unwrap();
        assert_eq!(again, value);
        for len in 0..bytes.len() {
            let cut = decode::<(Outer, Map)>(&bytes[..len]);
            assert!(cut.is_ok() || matches!(cut, Err(DecodeError::Bytes(_))));
        }
    }

    #[test]
    fn elements_without_bytes_are_bounded() {
        let most = decode::<Vec<()>>(&claims(MAX_RPC_ELEMENTS)).unwrap();
        assert_eq!(most.len() as u64, MAX_RPC_ELEMENTS);
        for count in [MAX_RPC_ELEMENTS + 1, u64::MAX] {
            let bytes = claims(count);
            assert_eq!(decode::<Vec<()>>(&bytes), Err(DecodeError::TooMany));
            assert_eq!(decode::<Vec<[(); 3]>>(&bytes), Err(DecodeError::TooMany));
            assert_eq!(
                decode::<BTreeMap<(), ()>>(&bytes),
                Err(DecodeError::TooMany)
            );
        }
        // Longer values have more: here of empty lists, and one more list.
        let empty = 1 << 17;
        let and_one_of = |elements| {
            let lists = [claims(empty + 1), vec![0; empty as usize]];
            [lists.concat(), claims(elements)].concat()
        };
        let bytes = and_one_of(MAX_RPC_ELEMENTS).len() as u64;
        let most = ELEMENTS_A_BYTE * bytes - (empty + 1);
        assert_eq!(and_one_of(most).len() as u64, bytes);
        let decoded = decode::<Vec<Vec<()>>>(&and_one_of(most)).unwrap();
        assert_eq!(decoded.last().unwrap().len() as u64, most);
        let more = and_one_of(most + 1);
        assert_eq!(decode::<Vec<Vec<()>>>(&more), Err(DecodeError::TooMany));
        // Elements of several lists count together.
        let [many, two] = [claims(MAX_RPC_ELEMENTS / 2), claims(2)];
        let bytes = [two, many.clone(), many].concat();
        assert_eq!(decode::<Vec<Vec<()>>>(&bytes), Err(DecodeError::TooMany));
    }

    #[test]
    fn depth_is_bounded() {
        // Each level of these is one byte.
        let links = |len: usize| [vec![1; len], vec![0]].concat();
        let deepest = MAX_RPC_DEPTH as usize;
        // The end has no content, and the identifier of its variant is a level.
        assert!(decode::<Link>(&links(deepest - 1)).is_ok());
        for len in [deepest, 60_000] {
            assert_eq!(decode::<Link>(&links(len)), Err(DecodeError::TooDeep));
            assert_eq!(decode::<Nested>(&links(len)), Err(DecodeError::TooDeep));
        }
        assert!(decode::<Nested>(&links(deepest / 2 - 1)).is_ok());
        // Beside each other is not below each other.
        let flat = [claims(1000), vec![0; 1000]].concat();
        assert_eq!(decode::<Vec<Link>>(&flat).unwrap().len(), 1000);
    }

    #[test]
    fn the_decoder_takes_no_memory_ahead_of_the_bytes() {
        struct Hints;
        impl<'de> Visitor<'de> for Hints {
            type Value = usize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<usize, A::Error> {
                Ok(elements.size_hint().unwrap_or(0))
            }
        }
        struct Hint(usize);
        impl<'de> serde::Deserialize<'de> for Hint {
            fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
                decoder.deserialize_seq(Hints).map(Hint)
            }
        }
        assert_eq!(decode::<Hint>(&claims(u64::MAX)).unwrap().0, 0);
        let bytes = [claims(2), vec![0; 2]].concat();
        assert_eq!(decode::<Hint>(&bytes).unwrap().0, 2);
    }
}
