//! The variants of the library, and what compilers must be told to use one, as make and pkg-config read it.

use super::build::Tools;
use super::words::{shell, variable};

/// A conduit in a thread mode, for clients with or without `GASNET_DEBUG`.
pub(super) struct Variant {
    conduit: &'static str,
    mode: &'static str,
    debug: bool,
}

impl Variant {
    pub(super) fn all(debug: bool) -> impl Iterator<Item = Self> {
        ["seq", "par", "parsync"].into_iter().map(move |mode| Self {
            conduit: "smp",
            mode,
            debug,
        })
    }

    /// As in the name of its file for make.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.conduit, self.mode)
    }

    /// As `-l` takes it.
    pub(super) fn library(&self) -> String {
        format!("gasnet-{}", self.name())
    }

    pub(super) const fn conduit(&self) -> &'static str {
        self.conduit
    }

    /// What chooses the variant in the headers.
    pub(super) fn defines(&self) -> Vec<String> {
        let upper = str::to_uppercase;
        let mut all = vec!["-D_GNU_SOURCE=1".to_owned()];
        if self.mode != "seq" {
            all.push("-D_REENTRANT".to_owned());
        }
        all.push(format!("-DGASNET_{}", upper(self.mode)));
        all.push(format!("-DARGONET_CONDUIT_{}=1", upper(self.conduit)));
        if self.debug {
            all.push("-DGASNET_DEBUG=1".to_owned());
        }
        all
    }

    /// How its own code is compiled, and its clients' may be.
    pub(super) const fn optimisation(&self) -> &'static str {
        if self.debug { "-g" } else { "-O2" }
    }

    /// All variables, without their common `GASNET_`. No value refers to another: not only make reads them.
    pub(super) fn variables(
        &self,
        prefix: &str,
        tools: &Tools,
        system: &[String],
    ) -> Vec<(&'static str, String)> {
        let compiler = |path: &std::path::Path| shell(&path.display().to_string());
        let (cc, cxx) = (compiler(&tools.cc), compiler(&tools.cxx));
        let option = |letter: &str, directory: &str| shell(&format!("{letter}{prefix}{directory}"));
        let conduit = format!("/include/{}-conduit", self.conduit);
        let includes = [option("-I", "/include"), option("-I", &conduit)].join(" ");
        let defines = self.defines().join(" ");
        let preprocessor = format!("{defines} {includes}");
        // Some users keep the words of -L and -l only, and the first must be this directory.
        let mut libraries = vec![
            option("-L", "/lib"),
            format!("-l{}", self.library()),
            "-largonet".to_owned(),
        ];
        libraries.extend_from_slice(system);
        let optimisation = self.optimisation().to_owned();
        vec![
            ("PREFIX", shell(prefix)),
            ("CC", cc.clone()),
            ("OPT_CFLAGS", optimisation.clone()),
            ("MISC_CFLAGS", String::new()),
            ("CFLAGS", optimisation.clone()),
            ("MISC_CPPFLAGS", String::new()),
            ("CPPFLAGS", preprocessor.clone()),
            ("CXX", cxx),
            ("OPT_CXXFLAGS", optimisation.clone()),
            ("MISC_CXXFLAGS", String::new()),
            ("CXXFLAGS", optimisation),
            ("MISC_CXXCPPFLAGS", String::new()),
            ("CXXCPPFLAGS", preprocessor),
            ("DEFINES", defines),
            ("INCLUDES", includes),
            ("LD", cc),
            ("LDFLAGS", String::new()),
            ("LIBS", libraries.join(" ")),
        ]
    }
}

/// `CONDUIT-MODE.mak`.
pub(super) fn make_file(variant: &Variant, variables: &[(&str, String)]) -> String {
    let mut text = format!(
        "# What clients of {} are compiled and linked with. Made by the installation.\n",
        variant.library()
    );
    for (name, value) in variables {
        text += format!("GASNET_{name} = {}", variable(value)).trim_end();
        text += "\n";
    }
    text
}

/// `gasnet-CONDUIT-MODE.pc`.
pub(super) fn package_file(
    variant: &Variant,
    variables: &[(&str, String)],
    version: &str,
) -> String {
    let mut text = String::new();
    for (name, value) in variables {
        text += &format!("GASNET_{name}={}\n", variable(value));
    }
    let (library, conduit, mode) = (variant.library(), variant.conduit, variant.mode);
    text + &format!(
        "\nName: {library}\nDescription: argonet as GASNet-EX, conduit {conduit}, thread mode {mode}\n\
         Version: {version}\nCflags: ${{GASNET_CPPFLAGS}} ${{GASNET_CFLAGS}}\n\
         Libs: ${{GASNET_LDFLAGS}} ${{GASNET_LIBS}}\n"
    )
}
