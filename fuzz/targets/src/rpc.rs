//! Arguments of remote procedure calls as they arrive.

use argonet::__private::RpcEntry;
use argonet::Rpc;
use serde::{Deserialize, Serialize};

type Plain = (u64, i16, bool, char, f64);
type Nested = (Vec<Option<String>>, Result<(u8, Vec<u8>), String>);
type Map = (std::collections::BTreeMap<String, Vec<u32>>,);
/// Elements that take no bytes, of which a message can claim any number.
type Nothings = (Vec<()>, Vec<[(); 3]>);

/// A type whose values are as deep as a message says, a byte each level.
#[derive(Serialize, Deserialize)]
enum Tree {
    Leaf,
    Stem(Box<Tree>),
    Fork(Vec<Tree>),
    Bud { rest: Option<Box<Tree>> },
}

// An `f64` is compared by its encoding, so that NaN is no exception.
static PLAIN: Rpc<Plain, Plain> = Rpc::new("plain", |args| args);
static NESTED: Rpc<Nested, Nested> = Rpc::new("nested", |args| args);
static MAP: Rpc<Map, Map> = Rpc::new("map", |args| args);
static NOTHINGS: Rpc<Nothings, Nothings> = Rpc::new("nothings", |args| args);
static TREE: Rpc<Tree, Tree> = Rpc::new("tree", |args| args);

pub(crate) fn run(data: &[u8]) {
    for function in [&PLAIN as &dyn RpcEntry, &NESTED, &MAP, &NOTHINGS, &TREE] {
        let run = function.runner();
        // An encoding is refused, or comes back as one that means the same.
        if let Ok(encoded) = run.on(data) {
            assert_eq!(run.on(&encoded), Ok(encoded), "{}", function.name());
        }
    }
}
