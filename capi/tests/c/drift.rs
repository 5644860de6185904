//! Header and library say the same: the C compiler compares the header's prototypes with those of the Rust functions.

use std::collections::BTreeSet;

use argonet_capi::tools::{layouts, prototypes};
use libtest_mimic::{Failed, Trial};

use crate::compiler::{Compiler, Dialect, Workplace};
use crate::files::header;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("the header's functions are the library's", same_names),
        Trial::test("the header's types are the library's", same_types),
    ]
}

/// The functions that the header declares.
fn declared() -> std::io::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(header("argonet/tools_calls.h"))?;
    let names = text
        .lines()
        .filter(|line| line.starts_with("extern "))
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            let name = before.rsplit([' ', '*']).next()?;
            name.starts_with("argonett_").then(|| name.to_owned())
        });
    Ok(names.collect())
}

fn same_names() -> Result<(), Failed> {
    let declared = declared()?;
    let exported: BTreeSet<String> = prototypes().iter().map(|p| p.name.to_owned()).collect();
    if declared.len() < 40 || declared != exported {
        let apart: Vec<_> = declared.symmetric_difference(&exported).collect();
        return Err(format!("{} declared, in one only: {apart:?}", declared.len()).into());
    }
    Ok(())
}

fn same_types() -> Result<(), Failed> {
    let mut text =
        "#include <gasnet_tools.h>\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n".to_owned();
    for prototype in prototypes() {
        let arguments = match prototype.arguments {
            [] => "void".to_owned(),
            some => some.join(", "),
        };
        text += &format!(
            "extern {} {}({arguments});\n",
            prototype.result, prototype.name
        );
    }
    text += "#ifdef __cplusplus\n}\n#endif\n";
    for (number, (what, size)) in layouts().into_iter().enumerate() {
        text += &format!("typedef char layout_{number}[{what} == {size} ? 1 : -1];\n");
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
