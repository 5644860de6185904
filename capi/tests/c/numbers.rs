//! The table of GASNet-EX's numbers and types, compared by the compilers with the headers: row by
//! row, in all modes, as C and as C++, for every conduit.

use std::fmt::Write as _;
use std::path::PathBuf;

use argonet_base::gasnet::{Line, Row, TABLE, lines};
use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};

/// Options of a client for its mode.
///
/// Debug code is not optimized.
const MODES: [&[&str]; 8] = [
    &["-DGASNET_SEQ"],
    &["-DGASNET_PARSYNC", "-D_REENTRANT"],
    &["-DGASNET_PAR", "-D_REENTRANT", "-O2"],
    &["-DGASNET_SEQ", "-DGASNET_DEBUG"],
    &["-DGASNET_PARSYNC", "-DGASNET_DEBUG", "-D_REENTRANT"],
    &["-DGASNET_PAR", "-DGASNET_DEBUG", "-D_REENTRANT"],
    &["-DGASNET_SEQ", "-DGASNET_SEGMENT_LARGE"],
    &[
        "-DGASNET_PAR",
        "-D_REENTRANT",
        "-DGASNET_SEGMENT_EVERYTHING",
    ],
];

/// Constants that are not defined where ranks share no memory.
const SHARED_MEMORY: [&str; 1] = ["GASNET_PSHM"];

const CONDUITS: [&str; 7] = ["SMP", "TCP", "UDP", "PORTALS", "USNIC", "GNI", "OFI"];

/// A unit has lines for both languages: OF_C for checks that C can make, and OF_CPP.
const BEFORE: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
#include <gasnet_coll.h>
#include <gasnet_vis.h>
#include <gasnet_ratomic.h>
#include <gasnet_mk.h>
#include <argonet/variant.h>
#include <stddef.h>
#ifdef __cplusplus
#include <type_traits>
namespace rows {
enum { NUMBER, POINTER, CONST_POINTER, FUNCTION, STRUCT, CONST_STRUCT, UNION };
template <class T> struct shape
{
    typedef typename std::remove_pointer<T>::type To;
    static const int of = std::is_pointer<T>::value
        ? (std::is_function<To>::value ? FUNCTION : std::is_const<To>::value ? CONST_POINTER : POINTER)
        : std::is_union<T>::value ? UNION
        : std::is_class<T>::value ? (std::is_const<T>::value ? CONST_STRUCT : STRUCT) : NUMBER;
};
template <class T, bool is_enum> struct of_enum { typedef typename std::underlying_type<T>::type type; };
template <class T> struct of_enum<T, false> { typedef T type; };
template <class T> struct number
{
    typedef typename std::remove_cv<typename std::remove_reference<T>::type>::type U;
    typedef typename of_enum<U, std::is_enum<U>::value>::type type;
};
#define IS_NUMBER(T, said) (std::is_same<typename_of(T), said>::value)
#define typename_of(T) rows::number<T>::type
#define SHAPE_OF(T) (rows::shape<std::remove_reference<T>::type>::of)
#define ROW(number, condition) static_assert(condition, "row " #number);
#define OF_CPP(number, condition) ROW(number, condition)
#define OF_C(number, condition)
/* No constant expression of C++; the text is the same as for C. */
#define POINTER_IS(number, p, value)
#define ALIGN_OF(T) alignof(T)
#else
#define ROW(number, condition) typedef char row##number[(condition) ? 1 : -1];
#define OF_C(number, condition) ROW(number, condition)
#define OF_CPP(number, condition)
/* No constant expression, but one that compilers fold; clang wants that said. */
#define POINTER_IS(number, p, value)                                                                                   \
    _Static_assert(__builtin_constant_p((uintptr_t)(p)) ? (uintptr_t)(p) == (value) : (uintptr_t)(p) == (value), "row " #number);
#define IS(T, e) __builtin_types_compatible_p(__typeof__(e), T)
/* Of the type of a pointer to void, const as the pointer of the type is. */
#define LIKE_VOID(e) (1 ? (e) : *(void **)0)
#define ALIGN_OF(T) __alignof__(T)
#endif
"#;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for compiler in [Compiler::OWN, Compiler::CLANG] {
        for dialect in [Dialect::C11, Dialect::CPP17] {
            let name = format!(
                "numbers and types are GASNet-EX's, as {} with {}",
                dialect.standard, compiler.c
            );
            let test = move || compare(compiler, dialect);
            trials.push(Trial::test(name, test).with_ignored_flag(!compiler.exists()));
        }
    }
    trials
}

fn compare(compiler: Compiler, dialect: Dialect) -> Result<(), Failed> {
    let place = Workplace::new()?;
    for conduit in CONDUITS {
        let (text, rows) = unit(conduit)?;
        if rows < 250 {
            return Err(format!("the table has only {rows} rows").into());
        }
        let file: PathBuf = place.file(&format!("numbers_{conduit}.c"));
        std::fs::write(&file, text)?;
        let conduit_option = format!("-DARGONET_CONDUIT_{conduit}=1");
        // Numbers depend on the conduit, and on no mode: all modes for one of them are enough.
        let modes = match conduit {
            "SMP" | "UDP" => MODES.as_slice(),
            _ => &MODES[2..3],
        };
        for mode in modes {
            let options = [
                ["-fsyntax-only", "-D_GNU_SOURCE", &conduit_option].as_slice(),
                mode,
            ]
            .concat();
            compiler.compile(dialect, &options, std::slice::from_ref(&file), &[])?;
        }
    }
    Ok(())
}

/// A unit that compiles only if all rows are true of the headers, and how many there are.
fn unit(conduit: &str) -> Result<(String, usize), String> {
    let mut text = BEFORE.to_owned();
    let mut rows = 0;
    let mut is_in_header = false;
    for line in lines(TABLE) {
        match line {
            Line::Part(part) => is_in_header = part != "compared",
            Line::Row(row) if row.kind != "ignored" => {
                rows += 1;
                let code = code(&row, conduit, is_in_header, rows);
                let code = code.ok_or_else(|| format!("no such row: {row:?}"))?;
                text += &match SHARED_MEMORY.contains(&row.name) {
                    false => code,
                    true => format!(
                        "#if !GASNET_SEGMENT_EVERYTHING\n{code}\n#elif defined {0}\n#error {0}\n#endif\n",
                        row.name
                    ),
                };
            }
            _ => {}
        }
    }
    text += "#ifdef __cplusplus\n}\n#endif\nextern int unit;\n";
    Ok((text, rows))
}

/// Lines for a row.
fn code(row: &Row<'_>, conduit: &str, is_in_header: bool, number: usize) -> Option<String> {
    let name = row.name;
    let mut text = String::new();
    let Some(own) = row.own_value() else {
        writeln!(text, "#ifdef {name}\n#error {name} is there now\n#endif").ok()?;
        return Some(text);
    };
    match row.kind {
        "constant" | "own" => {
            let value = row.udp.filter(|_| conduit == "UDP").unwrap_or(own);
            let suffix = match row.shape {
                "int" => "",
                "unsigned int" => "U",
                "long" => "L",
                "unsigned long" => "UL",
                // A type by its name: a pointer, or an integer of few bits.
                shape => {
                    let pointer = !matches!(shape, "gex_MK_Class_t" | "gex_EP_Index_t");
                    let same = match pointer {
                        true => format!("POINTER_IS({number}, {name}, {value})"),
                        false => format!("ROW({number}, ({name}) == {value})"),
                    };
                    writeln!(text, "{same}").ok()?;
                    writeln!(
                        text,
                        "OF_CPP({number}, (std::is_same<decltype({name}), {shape}>::value))"
                    )
                    .ok()?;
                    // Enumerators of C are integers.
                    if shape != "gex_MK_Class_t" {
                        writeln!(text, "OF_C({number}0000, IS({shape}, {name}))").ok()?;
                    }
                    return Some(text);
                }
            };
            // The least int is no literal.
            let value = match value.strip_prefix('-') {
                Some(digits) => format!("(-{} - 1)", digits.parse::<u64>().ok()? - 1),
                None => format!("{value}{suffix}"),
            };
            writeln!(text, "ROW({number}, ({name}) == {value})").ok()?;
            writeln!(text, "OF_C({number}0000, IS({}, {name}))", row.shape).ok()?;
            writeln!(
                text,
                "OF_CPP({number}, IS_NUMBER(decltype({name}), {}))",
                row.shape
            )
            .ok()?;
            if is_in_header {
                writeln!(text, "#if ({name}) != {value}\n#error {name}\n#endif").ok()?;
            }
        }
        "type" => {
            let (size, align) = own.split_once('/')?;
            writeln!(
                text,
                "ROW({number}, sizeof({name}) == {size} && ALIGN_OF({name}) == {align})"
            )
            .ok()?;
            if row.ours.is_none() {
                text += &shape(row, name, &format!("*({name} *)0"), number)?;
            }
        }
        "field" => {
            let (size, offset) = own.split_once('@')?;
            let (whole, place) = name.split_once('.')?;
            let expression = format!("(({whole} *)0)->{place}");
            writeln!(text, "ROW({number}, sizeof({expression}) == {size} && offsetof({whole}, {place}) == {offset})").ok()?;
            text += &shape(row, &format!("decltype({expression})"), &expression, number)?;
        }
        _ => return None,
    }
    Some(text)
}

/// Lines that compare what something is.
fn shape(row: &Row<'_>, cpp: &str, c: &str, number: usize) -> Option<String> {
    let is = |word: &str| format!("OF_CPP({number}, SHAPE_OF({cpp}) == rows::{word})\n");
    let class =
        |class: u32| format!("OF_C({number}0000, __builtin_classify_type({c}) == {class})\n");
    let like = |void: &str| format!("OF_C({number}0000, IS({void}, LIKE_VOID({c})))\n");
    Some(match row.shape {
        "pointer" => is("POINTER") + &like("void *"),
        "pointer to const" => is("CONST_POINTER") + &like("const void *"),
        "function" => is("FUNCTION"),
        "struct" => is("STRUCT") + &class(12),
        "const struct" => is("CONST_STRUCT") + &class(12),
        "union" => is("UNION") + &class(13),
        arithmetic => {
            let cpp = format!("OF_CPP({number}, IS_NUMBER({cpp}, {arithmetic}))\n");
            // C has no way to ask for the type of an enumeration.
            let is_enum = row.name == "gex_MK_Class_t" || row.name.ends_with(".gex_class");
            match is_enum {
                true => cpp,
                false => cpp + &format!("OF_C({number}0000, IS({arithmetic}, {c}))\n"),
            }
        }
    })
}
