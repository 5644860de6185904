//! Questions to a compiler about headers, by programs that print the answers.

use crate::command::target;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A name to ask for.
pub(super) struct Question<'a> {
    /// As in the table.
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    /// Its type in the table.
    pub(super) shape: &'a str,
}

/// A name's type, and its value or size.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Answer {
    pub(super) shape: String,
    pub(super) value: String,
}

/// Installed headers, for clients of one conduit.
pub(super) struct Headers {
    options: Vec<String>,
    work: PathBuf,
    /// Names of macros without parameters, with their texts.
    macros: BTreeMap<String, String>,
}

const INCLUDES: &str = "\
#include <gasnet.h>
#include <gasnet_tools.h>
#include <gasnet_coll.h>
#include <gasnet_vis.h>
#include <gasnet_ratomic.h>
#include <gasnet_mk.h>
";

/// Prints a row of tabs: name, shape, value.
const BEFORE: &str = r#"
#include <stdio.h>
#include <stddef.h>
#include <type_traits>
template <class T> static const char *number()
{
    typedef typename std::remove_cv<T>::type U;
#define IS(type) if (std::is_same<U, type>::value) return #type;
    IS(char) IS(signed char) IS(unsigned char) IS(short) IS(unsigned short) IS(int) IS(unsigned int) IS(long)
    IS(unsigned long) IS(long long) IS(unsigned long long) IS(float) IS(double)
    return "unknown";
}
template <class T, bool is_enum> struct of_enum { typedef typename std::underlying_type<T>::type type; };
template <class T> struct of_enum<T, false> { typedef T type; };
template <class T> static const char *shape()
{
    typedef typename std::remove_pointer<T>::type To;
    if (std::is_pointer<T>::value)
        return std::is_function<To>::value ? "function" : std::is_const<To>::value ? "pointer to const" : "pointer";
    if (std::is_union<T>::value) return "union";
    if (std::is_class<T>::value) return std::is_const<T>::value ? "const struct" : "struct";
    return number<typename of_enum<T, std::is_enum<T>::value>::type>();
}
template <class T, class Said> static void constant(const char *name, const char *said, unsigned long long value)
{
    typedef typename std::decay<T>::type U;
    const char *is = std::is_same<U, Said>::value ? said : shape<U>();
    if (std::is_signed<U>::value) printf("%s\t%s\t%lld\n", name, is, (long long)value);
    else printf("%s\t%s\t%llu\n", name, is, value);
}
template <class T> static void type(const char *name) { printf("%s\t%s\t%zu/%zu\n", name, shape<T>(), sizeof(T), alignof(T)); }
template <class T> static void field(const char *name, size_t offset)
{
    printf("%s\t%s\t%zu@%zu\n", name, shape<typename std::remove_reference<T>::type>(), sizeof(T), offset);
}
int main()
{
"#;

fn compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".into())
}

impl Headers {
    /// Those of a conduit, in the mode PAR.
    pub(super) fn of(directory: &Path, conduit: &str) -> Result<Self, String> {
        let include = directory.join("include");
        let mut options: Vec<String> = [
            "-std=gnu++17",
            "-w",
            "-fpermissive",
            "-D_GNU_SOURCE=1",
            "-D_REENTRANT",
            "-DGASNET_PAR",
        ]
        .map(str::to_owned)
        .into();
        for place in [include.clone(), include.join(format!("{conduit}-conduit"))] {
            if !place.is_dir() {
                return Err(format!(
                    "{}: no such directory; install the release with the conduits smp and udp",
                    place.display()
                ));
            }
            options.push(format!("-I{}", place.display()));
        }
        Self::with(options, target().join("numbers").join(conduit))
    }

    /// Those that a compiler finds with these options.
    ///
    /// Programs are built in `work`.
    fn with(options: Vec<String>, work: PathBuf) -> Result<Self, String> {
        std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
        let mut headers = Self {
            options,
            work,
            macros: BTreeMap::new(),
        };
        let said = headers.compile(INCLUDES, &["-E", "-dM"])?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        for line in text.lines() {
            let Some((name, body)) = line
                .strip_prefix("#define ")
                .and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            // One with parameters has no blank before them.
            if !name.contains('(') {
                headers.macros.insert(name.to_owned(), body.to_owned());
            }
        }
        Ok(headers)
    }

    fn run(&self, text: &str, options: &[&str]) -> Result<Output, String> {
        let source = self.work.join("probe.cc");
        std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
        let compiler = compiler();
        let output = Command::new(&compiler)
            .args(&self.options)
            .args(options)
            .arg(&source)
            .output();
        output.map_err(|error| {
            format!(
                "{compiler}: {error}; install a C++ compiler (Debian package g++) or name it by CXX"
            )
        })
    }

    fn compile(&self, text: &str, options: &[&str]) -> Result<Output, String> {
        let output = self.run(text, options)?;
        match output.status.success() {
            true => Ok(output),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The answer for each name that they have.
    pub(super) fn ask(
        &self,
        questions: &[Question<'_>],
    ) -> Result<BTreeMap<String, Answer>, String> {
        let mut text = INCLUDES.to_owned() + BEFORE;
        let all = self.compile(INCLUDES, &["-E", "-P"])?;
        let all = String::from_utf8_lossy(&all.stdout).into_owned();
        let words: BTreeSet<&str> = all
            .split(|c: char| c != '_' && !c.is_alphanumeric())
            .collect();
        for Question { kind, name, shape } in questions {
            // An enumerator is no macro.
            let there = self.macros.contains_key(*name) || words.contains(name);
            let code = match *kind {
                "constant" if !there => String::new(),
                "constant" => format!(
                    "constant<decltype({name}), {shape}>(\"{name}\", \"{shape}\", (unsigned long long)({name}));\n"
                ),
                "type" => format!("type<{name}>(\"{name}\");\n"),
                _ => {
                    let (whole, place) = name.split_once('.').unwrap_or((name, ""));
                    format!(
                        "field<decltype((({whole} *)0)->{place})>(\"{name}\", offsetof({whole}, {place}));\n"
                    )
                }
            };
            text += &code;
        }
        text += "return 0;\n}\n";
        let program = self.work.join("probe");
        // The headers refer to their library, which nothing here calls.
        let unresolved = "-Wl,--unresolved-symbols=ignore-all";
        self.compile(
            &text,
            &["-no-pie", unresolved, "-o", &program.to_string_lossy()],
        )?;
        let said = Command::new(&program).output();
        let said = said.map_err(|error| format!("{}: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let row = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            let (name, shape, value) = (fields.next()?, fields.next()?, fields.next()?);
            Some((name, Answer { shape, value }))
        };
        let rows: Option<BTreeMap<_, _>> = said.lines().map(row).collect();
        rows.ok_or_else(|| format!("the probe printed\n{said}"))
    }

    /// Macros that are integer constants.
    pub(super) fn constants(&self) -> Result<Vec<String>, String> {
        let plain = |body: &&String| !body.contains(['{', '}', ';', '"', '#', '%', '@']);
        let mut names: Vec<&String> = self
            .macros
            .iter()
            .filter(|(_, body)| plain(body))
            .map(|(name, _)| name)
            .collect();
        names.retain(|name| name.starts_with('G'));
        let mut text = INCLUDES.to_owned();
        let before = text.lines().count() + 1;
        for (number, name) in names.iter().enumerate() {
            writeln!(
                text,
                "enum : unsigned long long {{ row{number} = (unsigned long long)({name}) }};"
            )
            .map_err(|error| error.to_string())?;
        }
        let said = self.run(&text, &["-fsyntax-only", "-fmax-errors=0"])?;
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let wrong: BTreeSet<usize> = said
            .lines()
            .filter_map(|line| {
                line.split_once("probe.cc:")?
                    .1
                    .split(':')
                    .next()?
                    .parse()
                    .ok()
            })
            .collect();
        let right = |(number, _): &(usize, &&String)| !wrong.contains(&(number + before));
        Ok(names
            .iter()
            .enumerate()
            .filter(right)
            .map(|(_, name)| (*name).clone())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks the headers of the repository, where no release is installed.
    #[test]
    fn a_probe_prints_values_types_and_offsets() {
        let root = crate::command::root();
        let include = format!("-I{}", root.join("include").display());
        let options = ["-std=gnu++17", "-w", "-DGASNET_PAR", &include].map(str::to_owned);
        let headers = Headers::with(options.into(), target().join("numbers").join("test"));
        let headers = match Command::new(compiler()).arg("--version").output() {
            Ok(_) => headers.unwrap(),
            // Without a C++ compiler there is the advice alone.
            Err(_) => {
                let error = headers.map(drop).unwrap_err();
                assert!(error.contains("Debian package g++"), "{error}");
                return;
            }
        };
        let ask = |kind, name, shape| Question { kind, name, shape };
        let answers = headers
            .ask(&[
                ask("constant", "GEX_EVENT_GROUP", "gex_Event_t *"),
                ask("constant", "GEX_MK_CLASS_HIP", "int"),
                ask("constant", "GEX_NO_SUCH_NAME", "int"),
                ask("type", "gex_AM_Arg_t", "?"),
                ask("type", "gex_RankInfo_t", "?"),
                ask("field", "gex_Memvec_t.gex_len", "?"),
            ])
            .unwrap();
        let lines: Vec<String> = answers
            .iter()
            .map(|(name, Answer { shape, value })| format!("{name} {shape} {value}"))
            .collect();
        assert_eq!(
            lines,
            [
                "GEX_EVENT_GROUP gex_Event_t * 3",
                "GEX_MK_CLASS_HIP unsigned int 2",
                "gex_AM_Arg_t int 4/4",
                "gex_Memvec_t.gex_len unsigned long 8@8",
                "gex_RankInfo_t const struct 4/4",
            ]
        );
    }
}
