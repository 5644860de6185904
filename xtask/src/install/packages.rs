//! The files in which build systems look for a package: of make, of pkg-config and of CMake.

use super::build::Found;
use super::tree::Tree;
use super::variant::{CONDUITS, Linking, Variant};

/// Writes those of all variants.
pub(super) fn write(tree: &mut Tree, debug: bool, found: &Found) -> Result<(), String> {
    for variant in Variant::all(debug) {
        for linking in Linking::ALL {
            let variables = variant.variables(linking, found);
            let (conduit, suffix) = (variant.conduit, linking.suffix());
            let name = format!("{}{suffix}", variant.name());
            // Apart: clients take every file of the conduit's directory for a conduit and a mode with one hyphen between.
            let place = match linking {
                Linking::Static => "",
                Linking::Shared => "shared/",
            };
            let file = format!("include/{conduit}-conduit/{place}{name}.mak");
            tree.write(&file, &make(&variant, &variables))?;
            let file = format!("lib/pkgconfig/gasnet-{name}.pc");
            let text = pkg_config(&variant, linking, &variables, &found.version);
            tree.write(&file, &text)?;
        }
    }
    cmake(tree, debug, found)
}

/// `CONDUIT-MODE.mak`.
fn make(variant: &Variant, variables: &[(&str, String)]) -> String {
    let mut text = format!(
        "# What clients of {} are compiled and linked with. Made by the installation.\n",
        variant.library()
    );
    for (name, value) in variables {
        text += format!("GASNET_{name} = {value}").trim_end();
        text += "\n";
    }
    text
}

/// `gasnet-CONDUIT-MODE.pc`.
fn pkg_config(
    variant: &Variant,
    linking: Linking,
    variables: &[(&str, String)],
    version: &str,
) -> String {
    let mut text = String::new();
    for (name, value) in variables {
        text += &format!("GASNET_{name}={value}\n");
    }
    let (library, conduit, mode) = (variant.library(), variant.conduit, variant.mode);
    let shared = match linking {
        Linking::Static => "",
        Linking::Shared => ", shared libraries",
    };
    text + &format!(
        "\nName: {library}{}\nDescription: argonet as GASNet-EX, conduit {conduit}, thread mode {mode}{shared}\n\
         Version: {version}\nCflags: ${{GASNET_CPPFLAGS}} ${{GASNET_CFLAGS}}\n\
         Libs: ${{GASNET_LDFLAGS}} ${{GASNET_LIBS}}\n",
        linking.suffix()
    )
}

/// The packages `GASNet` and `argonet`. They find the tree from where they lie in it.
fn cmake(tree: &mut Tree, debug: bool, found: &Found) -> Result<(), String> {
    let libraries: Vec<&str> = found
        .system_libraries
        .iter()
        .map(|word| word.trim_start_matches("-l"))
        .collect();
    let mut variants = String::new();
    for variant in Variant::all(debug) {
        variants += &format!(
            "_argonet_variant({} {} {} \"{}\")\n",
            variant.name(),
            variant.conduit,
            variant.library(),
            variant.defines().join(";")
        );
    }
    let conduits: Vec<&str> = CONDUITS.iter().map(|conduit| conduit.name).collect();
    let config = include_str!("GASNetConfig.cmake.in")
        .replace("@SYSTEM_LIBRARIES@", &libraries.join(";"))
        .replace("@CONDUITS@", &conduits.join(";"))
        .replace("@VARIANTS@", variants.trim_end());
    tree.write("lib/cmake/GASNet/GASNetConfig.cmake", &config)?;
    let version = include_str!("ConfigVersion.cmake.in");
    let of = |value: &str| version.replace("@VERSION@", value);
    let text = of(&found.version);
    tree.write("lib/cmake/GASNet/GASNetConfigVersion.cmake", &text)?;
    let config = include_str!("argonetConfig.cmake");
    tree.write("lib/cmake/argonet/argonetConfig.cmake", config)?;
    let text = of(env!("CARGO_PKG_VERSION"));
    tree.write("lib/cmake/argonet/argonetConfigVersion.cmake", &text)
}
