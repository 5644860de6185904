//! Header and library say the same: the C compiler compares the header's prototypes with those of
//! the Rust functions.

use std::collections::BTreeSet;

use argonet_capi::{Prototype, tools};
use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::header;

/// Headers whose functions the library has.
struct Face {
    name: &'static str,
    /// Lines that come before the prototypes.
    before: &'static str,
    /// Headers that declare functions, one line each.
    headers: &'static [&'static str],
    prototypes: fn() -> Vec<Prototype>,
    /// Sizes and places in structs, as C would ask for them.
    layouts: fn() -> Vec<(&'static str, usize)>,
    /// Functions that there are at least, so that nothing is missed in reading.
    least: usize,
}

static FACES: [Face; 2] = [
    Face {
        name: "the tools'",
        before: "#include <gasnet_tools.h>\n",
        headers: &["argonet/tools_calls.h", "argonet/trace_calls.h"],
        prototypes: tools::prototypes,
        layouts: tools::layouts,
        least: 40,
    },
    Face {
        name: "gasnetex.h's",
        before: "#define GASNET_SEQ 1\n#include <gasnet_mk.h>\n#include <gasnet_ratomic.h>\n#include <gasnet_vis.h>\n#include <argonet/variant.h>\n\
#include <argonet/job_tools_calls.h>\n#include <argonet/heap_calls.h>\n\
#include <argonet/legacy_calls.h>\n",
        headers: &[
            "argonet/am_calls.h",
            "argonet/barrier_calls.h",
            "argonet/coll_calls.h",
            "argonet/events_calls.h",
            "argonet/heap_calls.h",
            "argonet/hsl_calls.h",
            "argonet/job_calls.h",
            "argonet/job_tools_calls.h",
            "argonet/kind_calls.h",
            "argonet/legacy_calls.h",
            "argonet/ratomic_calls.h",
            "argonet/rma_calls.h",
            "argonet/vis_calls.h",
            "argonet/waiting_calls.h",
        ],
        prototypes: argonet_capi::prototypes,
        layouts: argonet_capi::layouts,
        least: 100,
    },
];

pub(crate) fn trials() -> Vec<Trial> {
    let trials = |face: &'static Face| {
        let name = face.name;
        [
            Trial::test(format!("{name} functions are the library's"), || {
                same_names(face)
            }),
            Trial::test(format!("{name} types are the library's"), || {
                same_types(face)
            })
            .with_ignored_flag(!Compiler::OWN.exists()),
        ]
    };
    FACES.iter().flat_map(trials).collect()
}

/// The functions that headers declare.
fn declared(headers: &[&str]) -> std::io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for name in headers {
        let text = std::fs::read_to_string(header(name))?;
        let functions = text
            .lines()
            .filter(|line| line.starts_with("extern "))
            .filter_map(|line| {
                let (before, _) = line.split_once('(')?;
                let name = before.rsplit([' ', '*']).next()?;
                // The others are variables, of pointers to functions.
                name.starts_with(|c: char| c.is_alphabetic())
                    .then(|| name.to_owned())
            });
        names.extend(functions);
    }
    Ok(names)
}

fn same_names(face: &Face) -> Result<(), Failed> {
    let declared = declared(face.headers)?;
    let exported: BTreeSet<String> = (face.prototypes)()
        .iter()
        .map(|p| p.name.to_owned())
        .collect();
    if declared.len() < face.least || declared != exported {
        let apart: Vec<_> = declared.symmetric_difference(&exported).collect();
        return Err(format!("{} declared, in one only: {apart:?}", declared.len()).into());
    }
    Ok(())
}

fn same_types(face: &Face) -> Result<(), Failed> {
    let mut text = format!(
        "{}#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        face.before
    );
    for prototype in (face.prototypes)() {
        let arguments = match prototype.arguments {
            [] => "void".to_owned(),
            some => some.join(", "),
        };
        text += &format!(
            // In parentheses, as some are macros too.
            "extern {} ({})({arguments});\n",
            prototype.result, prototype.name
        );
    }
    text += "#ifdef __cplusplus\n}\n#endif\n";
    for (number, (what, size)) in (face.layouts)().into_iter().enumerate() {
        text += &format!("typedef char layout_{number}[{what} == {size:#x} ? 1 : -1];\n");
    }
    let place = Workplace::new()?;
    let file = place.file("drift.c");
    std::fs::write(&file, text)?;
    for dialect in [Dialect::C99, Dialect::CPP17] {
        Compiler::OWN.compile(
            dialect,
            &["-fsyntax-only"],
            std::slice::from_ref(&file),
            &[],
        )?;
    }
    Ok(())
}
