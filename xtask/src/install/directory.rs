//! The form of a build directory, which some clients want in place of an installed tree:
//! `lib/argonet/build`.

use super::build::Found;
use super::tree::{LAST, Tree};
use super::variant::{Chosen, Linking};
use super::words::replacement;

/// Where it lies.
const DIRECTORY: &str = "lib/argonet/build";

/// From there to the root of the tree.
const UP: &str = "../../..";

/// Writes it.
///
/// All files but one are those of the tree.
pub(super) fn write(tree: &mut Tree, chosen: &Chosen, found: &Found) -> Result<(), String> {
    let name = LAST.rsplit('/').next().unwrap_or(LAST);
    tree.link(&format!("{DIRECTORY}/{name}"), &format!("{UP}/{LAST}"))?;
    tree.program(
        &format!("{DIRECTORY}/config.status"),
        &status(chosen, found),
    )?;
    tree.write(&format!("{DIRECTORY}/Makefile"), include_str!("build.mk"))?;
    for conduit in &chosen.conduits {
        // A directory deeper.
        let rules = include_str!("build.mk").replace("TREE = ", "TREE = ../");
        tree.write(
            &format!("{DIRECTORY}/{}-conduit/Makefile", conduit.name()),
            &rules,
        )?;
        let launcher = format!("gasnetrun_{}", conduit.name());
        let own = format!("{DIRECTORY}/{}-conduit/contrib/{launcher}", conduit.name());
        tree.link(&own, &format!("../../{UP}/bin/{launcher}"))?;
    }
    // Where clients of udp build its launcher, and look for it.
    let rules = include_str!("build.mk").replace("TREE = ", "TREE = ../../");
    tree.write(&format!("{DIRECTORY}/other/amudp/Makefile"), &rules)?;
    let own = format!("{DIRECTORY}/other/amudp/amudprun");
    tree.link(&own, &format!("../../{UP}/bin/amudprun"))?;
    for variant in chosen.variants() {
        let conduit = format!("{}-conduit", variant.conduit);
        let own = format!("{DIRECTORY}/{conduit}/{}.mak", variant.name());
        let fragment = variant.fragment(Linking::Static);
        tree.link(&own, &format!("../{UP}/{fragment}"))?;
        let name = format!("lib{}.a", variant.library());
        let own = format!("{DIRECTORY}/{conduit}/{name}");
        tree.link(&own, &format!("../{UP}/lib/{name}"))?;
    }
    Ok(())
}

/// The script that fills files in, as `configure` of other packages leaves one.
fn status(chosen: &Chosen, found: &Found) -> String {
    let [cc, cxx] = found.families;
    // A client that reads them builds a library for each, by rules for the names that GASNet has.
    let conduits = chosen.conduits.iter();
    let known = conduits.filter(|conduit| conduit.is_gasnets());
    let conduits: Vec<&str> = known.map(|conduit| conduit.name()).collect();
    let mut substitutions = String::new();
    for (name, value) in [
        ("PERL", found.perl.as_str()),
        ("CONDUITS", &conduits.join(" ")),
        ("EXESUFFIX", ""),
        ("CC_FAMILY", cc[0]),
        ("CXX_FAMILY", cxx[0]),
        ("CC_SUBFAMILY", cc[1]),
        ("CXX_SUBFAMILY", cxx[1]),
    ] {
        substitutions += &format!("        -e 's|@{name}@|{}|g' \\\n", replacement(value));
    }
    include_str!("config.status.sh").replace("        -e SUBSTITUTIONS \\\n", &substitutions)
}
