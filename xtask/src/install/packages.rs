//! The files in which build systems look for a package: of make, of pkg-config and of CMake.

use super::build::Found;
use super::tree::Tree;
use super::variant::{Chosen, Linking, Root, Variant};
use super::words::shell;

/// Writes those of all variants.
pub(super) fn write(tree: &mut Tree, chosen: &Chosen, found: &Found) -> Result<(), String> {
    for variant in chosen.variants() {
        for linking in Linking::ALL {
            let variables = variant.variables(linking, found, Root::Path(&found.prefix));
            tree.write(&variant.fragment(linking), &make(&variant, &variables))?;
            let variables = variant.variables(linking, found, Root::Variable);
            let name = format!("{}{}", variant.name(), linking.suffix());
            let file = format!("lib/pkgconfig/gasnet-{name}.pc");
            let text = pkg_config(&variant, linking, &variables, &found.version);
            tree.write(&file, &text)?;
        }
    }
    for is_threaded in [false, true] {
        let mode = if is_threaded { "par" } else { "seq" };
        let file = format!("include/gasnet_tools-{mode}.mak");
        tree.write(&file, &tools(is_threaded, chosen.debug, found))?;
    }
    cmake(tree, chosen, found)
}

/// `gasnet_tools-MODE.mak`: for programs that use `gasnet_tools.h` alone.
///
/// Build systems also add its variables to those of a variant, so no value contradicts one of the
/// variant's.
fn tools(is_threaded: bool, debug: bool, found: &Found) -> String {
    let option =
        |start: &str, directory: &str| shell(&format!("{start}{}{directory}", found.prefix));
    let mut preprocessor = vec!["-D_GNU_SOURCE=1".to_owned()];
    if is_threaded {
        preprocessor.extend(["-D_REENTRANT", "-DGASNETT_THREAD_SAFE=1"].map(str::to_owned));
    }
    if debug {
        preprocessor.push("-DGASNET_DEBUG=1".to_owned());
    }
    preprocessor.push(option("-I", "/include"));
    let mut libraries = vec![option("-L", "/lib"), "-largonet".to_owned()];
    libraries.extend_from_slice(&found.system_libraries);
    let (cc, cxx) = (found.tools.cc.words(), found.tools.cxx.words());
    let optimization = if debug { "-g" } else { "-O2" };
    let mut text =
        "# Compiler and linker options for programs that use gasnet_tools.h alone. Made by the installation.\n".to_owned();
    for (name, value) in [
        ("CC", cc.as_str()),
        ("CPPFLAGS", &preprocessor.join(" ")),
        ("CFLAGS", optimization),
        ("CXX", &cxx),
        ("CXXFLAGS", optimization),
        ("LD", &cc),
        ("LDFLAGS", ""),
        ("LIBS", &libraries.join(" ")),
    ] {
        text += format!("GASNETTOOLS_{name} = {value}").trim_end();
        text += "\n";
    }
    text
}

/// `CONDUIT-MODE.mak`.
fn make(variant: &Variant, variables: &[(&str, String)]) -> String {
    let mut text = format!(
        "# Compiler and linker options for clients of {}. Made by the installation.\n",
        variant.library()
    );
    for (name, value) in variables {
        text += format!("GASNET_{name} = {value}").trim_end();
        text += "\n";
    }
    text
}

/// `gasnet-CONDUIT-MODE.pc`, which finds the tree from where it lies in it.
fn pkg_config(
    variant: &Variant,
    linking: Linking,
    variables: &[(&str, String)],
    version: &str,
) -> String {
    let mut text = "prefix=${pcfiledir}/../..\n".to_owned();
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

/// The packages `GASNet` and `argonet`.
///
/// They find the tree from where they lie in it.
fn cmake(tree: &mut Tree, chosen: &Chosen, found: &Found) -> Result<(), String> {
    let libraries: Vec<&str> = found
        .system_libraries
        .iter()
        .map(|word| word.trim_start_matches("-l"))
        .collect();
    let mut variants = String::new();
    for variant in chosen.variants() {
        variants += &format!(
            "_argonet_variant({} {} {} \"{}\")\n",
            variant.name(),
            variant.conduit,
            variant.library(),
            variant.defines().join(";")
        );
    }
    let conduits = chosen.conduits.iter();
    let conduits: Vec<&str> = conduits.map(|conduit| conduit.name()).collect();
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
