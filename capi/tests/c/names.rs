//! The names of `names.txt` and `names_gasnet1.txt` are there and are what these say: a unit for
//! each that uses all of them, for C and C++.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use argonet_settings::Index;

use crate::compiler::root;

/// A file of names, and the headers that have them.
pub(crate) struct List {
    pub(crate) file: &'static str,
    headers: &'static [&'static str],
    /// The first number in the names of its unit's own symbols.
    first: usize,
}

pub(crate) const LISTS: [List; 2] = [
    List {
        file: "names.txt",
        headers: &[
            "gasnetex.h",
            "gasnet_tools.h",
            "gasnet_coll.h",
            "gasnet_mk.h",
            "gasnet_ratomic.h",
            "gasnet_vis.h",
        ],
        first: 0,
    },
    List {
        file: "names_gasnet1.txt",
        headers: &["gasnet.h"],
        first: 10_000,
    },
];

/// Code before the names.
///
/// Types are the same if the compiler says so, but for qualifiers of the whole.
const BEFORE: &str = "\
#ifdef __cplusplus
#include <type_traits>
template <class A, class B> struct argonet_same { static const bool yes = std::is_same<typename std::decay<A>::type, B>::value; };
#define SAME(type, expression) argonet_same<decltype(expression), type>::yes
namespace all_names {
#else
#define SAME(type, expression) __builtin_types_compatible_p(__typeof__(expression), type)
#endif
static void *volatile unknown = 0;
";
const AFTER: &str = "\
#ifdef __cplusplus
}
#endif
";

/// The most arguments of a message.
const MOST_ARGUMENTS: usize = 16;

/// The table's lines as kind and the rest.
fn lines(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
}

/// The unit of a list, and how many names there are of each kind.
pub(crate) fn unit(list: &List) -> Result<(String, BTreeMap<String, usize>), String> {
    let path = root().join("capi/tests/c").join(list.file);
    let table = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    for header in list.headers {
        text += &format!("#include <{header}>\n");
    }
    text += BEFORE;
    let mut counts = BTreeMap::new();
    for (number, (kind, rest)) in lines(&table).enumerate() {
        let code = match kind {
            "setting" | "make" => outside(kind, rest)?,
            _ => used(kind, rest, list.first + number)
                .ok_or_else(|| format!("{}: {kind} {rest}", list.file))?,
        };
        text += &code;
        *counts.entry(kind.to_owned()).or_insert(0) += 1;
    }
    text += &format!(
        "void *used{}(void);\nvoid *used{0}(void) {{ return unknown; }}\n",
        list.first
    );
    text += AFTER;
    Ok((text, counts))
}

/// Names that are not for C: environment variables, and variables of the fragments for make, by
/// which a test of xtask's builds programs.
fn outside(kind: &str, name: &str) -> Result<String, String> {
    let found = match kind {
        "setting" => Index::new().find(name).is_some(),
        _ => mentions(&root().join("xtask/tests/install"), &format!("$({name})"))
            .map_err(|error| error.to_string())?,
    };
    let missing = || format!("{kind} {name} is not there");
    found.then(String::new).ok_or_else(missing)
}

/// Whether a file below a directory has these words.
fn mentions(directory: &Path, words: &str) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            mentions(&path, words)?
        } else {
            std::fs::read_to_string(&path).is_ok_and(|text| text.contains(words))
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lines of C and C++ that only compile if the name is what the table says.
fn used(kind: &str, rest: &str, number: usize) -> Option<String> {
    let unless = |condition: &str| format!("#if {condition}\n#error {rest}\n#endif\n");
    let typed = || rest.split_once(" : ");
    Some(match kind {
        "header" => format!("#if !__has_include(<{rest}>)\n#error {rest}\n#endif\n"),
        // There, and complete.
        "type" => format!("typedef char size{number}[sizeof({rest}) > 0 ? 1 : -1];\n"),
        // A member of a struct.
        "field" => {
            let (kind, place) = typed()?;
            let (whole, field) = place.split_once(' ')?;
            same(kind, &format!("(({whole} *)unknown)->{field}"), number)
        }
        // An integer for the preprocessor too, not 0.
        "number" => unless(&format!("!defined({rest}) || ({rest}) == 0")) + &constant(rest, number),
        // The same, and 0 is allowed.
        "maybe" => unless(&format!("!defined({rest}) || ({rest}) < 0")) + &constant(rest, number),
        "one" => unless(&format!("!defined({rest}) || {rest} != 1")),
        "none" => unless(&format!("defined({rest})")),
        "macro" => unless(&format!("!defined({rest})")),
        // An integer constant.
        "case" => {
            let code = format!(
                "int case{number}(int is) {{ switch (is) {{ case (int)({rest}): return 1; default: return 0; }} }}\n"
            );
            constant(rest, number) + &code
        }
        // A literal, beside others.
        "string" => format!(
            "extern const char text{number}[];\nconst char text{number}[] = \"<\" {rest} \">\";\n"
        ),
        // Something that becomes one.
        "word" => {
            let code = format!(
                "extern const char text{number}[];\nconst char text{number}[] = _STRINGIFY({rest});\n"
            );
            unless(&format!("!defined({rest})")) + &code
        }
        // An expression of a type; addresses are unknown to the compiler, which else warns of null.
        "value" => {
            let (kind, value) = typed()?;
            let value = value.replace("*)0", "*)unknown");
            let same = same(kind, &value, number);
            // Inside of a function, for its name.
            format!(
                "void value{number}(void)\n{{\n{same}(void)sizeof(same{number});\n(void)({value});\n}}\n"
            )
        }
        // The initial value of a variable of a type.
        "initial" => {
            let (kind, value) = typed()?;
            format!("extern {kind} initial{number};\n{kind} initial{number} = {value};\n")
        }
        "function" => (0..=MOST_ARGUMENTS)
            .take(if rest.contains('#') {
                MOST_ARGUMENTS + 1
            } else {
                1
            })
            .map(|arguments| function(rest, number, arguments))
            .collect::<Option<String>>()?,
        _ => return None,
    })
}

fn same(kind: &str, expression: &str, number: usize) -> String {
    let kind = kind
        .strip_prefix("const gex_Rank_t")
        .map_or(kind, |_| "gex_Rank_t");
    format!("typedef char same{number}[SAME({kind}, {expression}) ? 1 : -1];\n")
}

fn constant(name: &str, number: usize) -> String {
    format!("extern const long constant{number};\nconst long constant{number} = (long)({name});\n")
}

/// A pointer of the prototype's type to the function.
fn function(prototype: &str, number: usize, arguments: usize) -> Option<String> {
    let many = ", gex_AM_Arg_t".repeat(arguments);
    let prototype = prototype.replace("#)", &format!("{many})"));
    let prototype = prototype.replace('#', &arguments.to_string());
    let (before, parameters) = prototype.split_once('(')?;
    let start = before.rfind([' ', '*'])? + 1;
    let (result, name) = before.split_at(start);
    let pointer = format!("{result}(*function{number}_{arguments})({parameters}");
    let mut code = String::new();
    writeln!(code, "extern {pointer};\n{pointer} = {name};").ok()?;
    Some(code)
}
