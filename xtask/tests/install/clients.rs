//! Clients with build systems of their own: the examples, by every means that an installation
//! offers.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, failed, run, runs, succeeded};

/// The examples, and a part of the last line of their output.
const EXAMPLES: [(&str, &str); 3] = [
    ("hello", "hello from rank "),
    ("ring", ": right"),
    ("halo", ": right"),
];

/// Less for the linker to write: the library of tests has all lines of its sources.
pub(crate) const STRIPPED: &str = "GASNET_LDFLAGS=-Wl,--strip-debug";

pub(crate) fn trials() -> Vec<Trial> {
    let make = !runs("make");
    let packages = make || !runs("pkg-config");
    let cmake = make || !runs("cmake");
    vec![
        Trial::test("examples by make", || by_make(false)).with_ignored_flag(make),
        Trial::test("examples by make, with checks", || by_make(true)).with_ignored_flag(make),
        Trial::test("examples by pkg-config, with shared libraries", by_packages)
            .with_ignored_flag(packages),
        Trial::test("examples by CMake", by_cmake).with_ignored_flag(cmake),
        Trial::test(
            "CMake finds each library, and names missing components",
            libraries,
        )
        .with_ignored_flag(cmake),
        Trial::test(
            "CMake modules that match names choose one that exists",
            chosen,
        )
        .with_ignored_flag(cmake),
        Trial::test("programs of tools alone by make", tools_alone)
            .with_ignored_flag(make || !runs("c++")),
        Trial::test("files are filled in as in a build directory", filled_in),
        Trial::test("files that cannot be filled in", not_filled_in),
        Trial::test(
            "make finds all built in a build directory, and copies it",
            rebuilt,
        )
        .with_ignored_flag(!runs("make")),
    ]
}

/// A copy of the examples, to build in.
pub(crate) fn copied(place: &Place) -> Result<PathBuf, Failed> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/c");
    let to = place.file("examples");
    succeeded(&run(Command::new("cp").arg("-R").arg(from).arg(&to))?)?;
    Ok(to)
}

/// A make that is not part of one around it.
pub(crate) fn make(directory: &Path) -> Command {
    let mut command = Command::new("make");
    command.current_dir(directory);
    for name in ["MAKEFLAGS", "MAKELEVEL", "GASNET", "CFLAGS", "LDFLAGS"] {
        command.env_remove(name);
    }
    command
}

/// Runs an example on some ranks, as its launcher does and as it does by itself.
fn right(place: &Place, program: &Path, ranks: &str, wanted: &str) -> Result<(), Failed> {
    let mut launcher = Command::new(place.prefix().join("bin/gasnetrun_smp"));
    let mut alone = Command::new(program);
    launcher.args(["-n", ranks]).arg(program);
    alone.env("GASNET_PSHM_NODES", ranks);
    // By the conduit tcp, every message over a connection: on one host, and with the program as the
    // agent of several.
    let mut over_tcp = Command::new(place.prefix().join("bin/amudprun"));
    over_tcp.args(["-np", ranks]).arg(program);
    over_tcp.env("GASNET_SUPERNODE_MAXSIZE", "1");
    let mut hosts = Command::new(program);
    hosts.arg(ranks).envs([
        ("GASNET_SPAWNFN", "C"),
        ("GASNET_CSPAWN_SERVERS", "a b c"),
        ("GASNET_CSPAWN_CMD", "HOST=%M exec %C"),
        ("ARGONET_TCP_INTERFACES", "lo"),
    ]);
    let mut ways = vec![&mut launcher, &mut alone];
    // One rank has no peer to connect to.
    if ranks != "1" {
        ways.extend([&mut over_tcp, &mut hosts]);
    }
    for command in ways {
        let text = succeeded(&run(command)?)?;
        let last = text.lines().last().unwrap_or_default();
        assert!(
            last.contains(wanted),
            "{} on {ranks}: {text}",
            program.display()
        );
        let lines = if wanted.starts_with("hello") {
            ranks
        } else {
            "1"
        };
        assert_eq!(text.lines().count().to_string(), lines, "{text}");
    }
    Ok(())
}

fn by_make(debug: bool) -> Result<(), Failed> {
    let place = Place::installed(&format!("by make {debug}"), debug)?;
    let examples = copied(&place)?;
    let gasnet = place.prefix().display().to_string().replace(' ', "\\ ");
    for (name, wanted) in EXAMPLES {
        let directory = examples.join(name);
        let words = [format!("GASNET={gasnet}"), STRIPPED.to_owned()];
        succeeded(&run(make(&directory).args(words))?)?;
        for ranks in ["1", "3"] {
            right(&place, &directory.join(name), ranks, wanted)?;
        }
        succeeded(&run(make(&directory).arg("clean"))?)?;
        assert!(!directory.join(name).exists());
    }
    let text = failed(&run(&mut make(&examples.join("hello")))?)?;
    assert!(text.contains("say where argonet is installed"), "{text}");
    let run_it = [
        format!("GASNET={gasnet}"),
        "MODE=parsync".to_owned(),
        STRIPPED.to_owned(),
        "run".to_owned(),
    ];
    let text = succeeded(&run(make(&examples.join("ring")).args(run_it))?)?;
    assert!(text.contains("laps of 4 ranks"), "{text}");
    // Bad input of the examples themselves.
    let ring = examples.join("ring/ring");
    let text = failed(&run(Command::new(ring).arg("0"))?)?;
    assert!(text.contains("usage: ring"), "{text}");
    Ok(())
}

fn by_packages() -> Result<(), Failed> {
    let place = Place::installed("by packages", false)?;
    let examples = copied(&place)?;
    let directory = place.prefix().join("lib/pkgconfig");
    for (name, wanted) in EXAMPLES {
        let own = examples.join(name);
        let mut command = make(&own);
        command.args(["-f", "Makefile.pkg-config", "PACKAGE=gasnet-smp-par-shared"]);
        command.arg(format!("PKG_CONFIG_PATH={}", directory.display()));
        succeeded(&run(&mut command)?)?;
        right(&place, &own.join(name), "2", wanted)?;
        // The code is in the library, and the program names the libraries that it loads.
        let file = std::fs::read(own.join(name))?;
        assert!(file.len() < 1 << 20, "{name} has {} bytes", file.len());
        for library in ["libgasnet-smp-par.so.0", "libargonet.so.0"] {
            let bytes = library.as_bytes();
            assert!(
                file.windows(bytes.len()).any(|part| part == bytes),
                "{library}"
            );
        }
    }
    let mut command = make(&examples.join("hello"));
    command.args(["-B", "-f", "Makefile.pkg-config", "PACKAGE=gasnet-none-seq"]);
    let text = failed(&run(&mut command)?)?;
    assert!(text.contains("gasnet-none-seq"), "{text}");
    Ok(())
}

fn by_cmake() -> Result<(), Failed> {
    let place = Place::installed("by cmake", false)?;
    let examples = copied(&place)?;
    for variant in ["smp-seq", "smp-par-shared"] {
        let build = place.file(variant);
        let mut configure = Command::new("cmake");
        configure.arg("-DCMAKE_EXE_LINKER_FLAGS=-Wl,--strip-debug");
        configure.arg("-S").arg(&examples).arg("-B").arg(&build);
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", place.prefix().display()));
        succeeded(&run(configure.arg(format!("-DVARIANT={variant}")))?)?;
        succeeded(&run(Command::new("cmake").arg("--build").arg(&build))?)?;
        for (name, wanted) in EXAMPLES {
            right(&place, &build.join(name), "2", wanted)?;
        }
    }
    Ok(())
}

/// Configures a project of these lines.
fn configured(place: &Place, name: &str, lines: &str) -> Result<std::process::Output, Failed> {
    let directory = place.file(name);
    std::fs::create_dir_all(&directory)?;
    let text = format!("cmake_minimum_required(VERSION 3.13)\nproject(client C)\n{lines}\n");
    std::fs::write(directory.join("CMakeLists.txt"), text)?;
    let mut command = Command::new("cmake");
    command
        .arg("-S")
        .arg(&directory)
        .arg("-B")
        .arg(directory.join("build"));
    command.arg(format!("-DCMAKE_PREFIX_PATH={}", place.prefix().display()));
    Ok(run(&mut command)?)
}

fn libraries() -> Result<(), Failed> {
    let place = Place::installed("libraries", false)?;
    let mak = place.text("include/smp-conduit/smp-par.mak")?;
    let line = mak
        .lines()
        .find_map(|line| line.strip_prefix("GASNET_LIBS = "));
    let mut find = String::new();
    let mut count = 0;
    for name in line
        .unwrap_or_default()
        .split(' ')
        .filter_map(|word| word.strip_prefix("-l"))
    {
        find += &format!("find_library({name}_FILE {name} REQUIRED)\n");
        find += &format!("message(STATUS \"{name} is ${{{name}_FILE}}\")\n");
        count += 1;
    }
    assert!(count > 3, "{line:?}");
    let text = succeeded(&configured(&place, "words", &find)?)?;
    let own = place.prefix().join("lib/libgasnet-smp-par.a");
    let own = format!("gasnet-smp-par is {}", own.display());
    assert!(text.contains(&own), "{own}\nin\n{text}");

    // By variables of another convention, and by our own name.
    let lines = "set(GASNet_CONDUIT smp)\nset(GASNet_THREADING par)\n\
                 find_package(GASNet 2025.8 CONFIG REQUIRED)\nfind_package(argonet CONFIG REQUIRED)\n\
                 get_target_property(libraries GASNet::GASNet INTERFACE_LINK_LIBRARIES)\n\
                 message(STATUS \"${libraries} of ${GASNet_CONDUITS} in ${GASNet_VERSION}\")\n";
    let text = succeeded(&configured(&place, "names", lines)?)?;
    assert!(
        text.contains("GASNet::smp-par of smp;tcp;udp;portals;usnic;gni;ofi in 2025.8.0"),
        "{text}"
    );
    for (lines, why) in [
        (
            "find_package(GASNet CONFIG REQUIRED COMPONENTS ibv-par)",
            "component 'ibv-par' is not",
        ),
        ("find_package(GASNet 2030.1 CONFIG REQUIRED)", "2025.8.0"),
        (
            "set(GASNet_CONDUIT ibv)\nset(GASNet_THREADING par)\nfind_package(GASNet CONFIG REQUIRED)",
            "GASNet_CONDUIT 'ibv'",
        ),
    ] {
        let text = failed(&configured(&place, "errors", lines)?)?;
        // CMake breaks lines.
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        assert!(text.contains(why), "{why} in {text}");
        std::fs::remove_dir_all(place.file("errors"))?;
    }
    Ok(())
}

/// As a client's module for CMake that knows the conduits of GASNet and none of ours: it collects
/// the files of make, keeps the entries of its list that match a name that it found, and takes the
/// first.
///
/// Its file of a variant and that of the tools go through make together.
const MODULE: &str = r#"
file(GLOB files "${root}/include/*-conduit/*.mak")
set(found)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  string(REGEX REPLACE "-.*" "" conduit "${name}")
  list(APPEND found "${conduit}")
endforeach()
list(REMOVE_DUPLICATES found)
string(REPLACE ";" "|" pattern "${found}")
set(preferred mxm psm gemini aries pami ibv shmem portals4 ofi mpi udp smp ucx)
set(kept)
foreach(conduit IN LISTS preferred)
  if(conduit MATCHES "${pattern}")
    list(APPEND kept "${conduit}")
  endif()
endforeach()
list(GET kept 0 chosen)
message(STATUS "chosen ${chosen} of ${found}")
set(file "${root}/include/${chosen}-conduit/${chosen}-par.mak")
if(NOT EXISTS "${file}")
  message(FATAL_ERROR "no ${file}")
endif()
foreach(mode seq par)
  set(file "${root}/include/${chosen}-conduit/../gasnet_tools-${mode}.mak")
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "no ${file}")
  endif()
endforeach()
"#;

fn chosen() -> Result<(), Failed> {
    let place = Place::installed("chosen", false)?;
    let root = format!("set(root \"{}\")", place.prefix().display());
    let text = succeeded(&configured(&place, "matched", &(root + MODULE))?)?;
    assert!(text.contains("chosen udp of gni;smp;tcp;udp"), "{text}");
    Ok(())
}

/// A program of `gasnet_tools.h` by the files of make for that, for C and C++, and with those of a
/// variant.
fn tools_alone() -> Result<(), Failed> {
    const PROGRAM: &str = "\
#include <gasnet_tools.h>
#if defined(THREADS) != GASNETT_THREAD_SAFE
#error threads
#endif
int main(void) { return gasnett_ticks_to_ns(gasnett_ticks_now()) > 0 && gasnett_cpu_count() > 0 ? 0 : 1; }
";
    const RULES: &str = "\
include $(GASNET)/include/gasnet_tools-$(MODE).mak
all: c cxx both
c: tool.c
\t$(GASNETTOOLS_CC) $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CFLAGS) $(THREADS) -Wall -Wextra -Werror -c tool.c -o c.o
\t$(GASNETTOOLS_LD) $(GASNETTOOLS_LDFLAGS) -Wl,--strip-debug c.o -o c $(GASNETTOOLS_LIBS)
cxx: tool.c
\t$(GASNETTOOLS_CXX) -x c++ $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CXXFLAGS) $(THREADS) -Wall -Wextra -Werror -c tool.c -o cxx.o
include $(GASNET)/include/smp-conduit/smp-$(MODE).mak
both: tool.c
\t$(GASNET_CC) $(GASNET_CPPFLAGS) $(GASNET_CFLAGS) $(GASNETTOOLS_CPPFLAGS) $(GASNETTOOLS_CFLAGS) $(THREADS) \
\t  -Wall -Wextra -Werror -c tool.c -o both.o
\t$(GASNET_LD) $(GASNET_LDFLAGS) -Wl,--strip-debug both.o -o both $(GASNET_LIBS) $(GASNETTOOLS_LIBS)
";
    let place = Place::installed("tools alone", false)?;
    let gasnet = place.prefix().display().to_string().replace(' ', "\\ ");
    for (mode, threads) in [("seq", ""), ("par", "-DTHREADS")] {
        let directory = place.file(mode);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("tool.c"), PROGRAM)?;
        std::fs::write(directory.join("Makefile"), RULES)?;
        let words = [
            format!("GASNET={gasnet}"),
            format!("MODE={mode}"),
            format!("THREADS={threads}"),
        ];
        succeeded(&run(make(&directory).args(words))?)?;
        for program in ["c", "both"] {
            succeeded(&run(&mut Command::new(directory.join(program)))?)?;
        }
    }
    Ok(())
}

/// `config.status`, called where it lies as clients do.
pub(crate) fn status(place: &Place) -> Command {
    let mut command = Command::new("./config.status");
    command.current_dir(place.prefix().join("lib/argonet/build"));
    for kind in ["FILES", "HEADERS", "LINKS", "COMMANDS"] {
        command.env(format!("CONFIG_{kind}"), "");
    }
    command
}

fn filled_in() -> Result<(), Failed> {
    let place = Place::installed("filled in", false)?;
    let names = [
        "PERL",
        "CONDUITS",
        "EXESUFFIX",
        "CC_FAMILY",
        "CXX_FAMILY",
        "CC_SUBFAMILY",
        "CXX_SUBFAMILY",
        "UNKNOWN",
    ];
    let text: Vec<String> = names
        .map(|name| format!("{name}=@{name}@;@{name}@\n"))
        .into();
    let (from, to) = (place.file("in"), place.file("made/out"));
    std::fs::write(&from, text.concat())?;
    let pair = format!("{}:{}", to.display(), from.display());
    succeeded(&run(status(&place).arg(format!("--file={pair}")))?)?;
    let text = std::fs::read_to_string(&to)?;
    let value = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        let (first, second) = line
            .and_then(|line| line.split_once(';'))
            .unwrap_or(("?", ""));
        assert_eq!(first, second, "{name}");
        first.to_owned()
    };
    // UPC++ has no rule for others.
    assert_eq!(value("CONDUITS"), "smp udp");
    assert_eq!(value("EXESUFFIX"), "");
    assert_eq!(value("UNKNOWN"), "@UNKNOWN@");
    assert!(value("PERL").ends_with("perl"), "{text}");
    for (name, compiler) in [("CC", "cc"), ("CXX", "c++")] {
        let families = match runs(compiler) {
            true => ["GNU", "Clang"],
            false => ["UNKNOWN"; 2],
        };
        let family = value(&format!("{name}_FAMILY"));
        assert!(families.contains(&family.as_str()), "{text}");
        assert!(
            ["GNU", "none"].contains(&value(&format!("{name}_SUBFAMILY")).as_str()),
            "{text}"
        );
    }

    // By the variable, which blanks separate: two files, one of them beside its pattern.
    let directory = tempfile()?;
    let path = directory.0.display();
    std::fs::write(directory.0.join("a.in"), "@CONDUITS@\n")?;
    std::fs::write(directory.0.join("b"), "<@CONDUITS@>\n")?;
    let files = format!("{path}/a {path}/c:{path}/b");
    succeeded(&run(status(&place).env("CONFIG_FILES", files))?)?;
    assert_eq!(std::fs::read_to_string(directory.0.join("a"))?, "smp udp\n");
    assert_eq!(
        std::fs::read_to_string(directory.0.join("c"))?,
        "<smp udp>\n"
    );
    let pair = format!("-:{path}/b");
    let text = succeeded(&run(status(&place).args(["--file", &pair]))?)?;
    assert_eq!(text, "<smp udp>\n");
    Ok(())
}

/// The targets that clients with a GASNet of their own make in its build directory.
fn rebuilt() -> Result<(), Failed> {
    let place = Place::installed("rebuilt", false)?;
    let build = place.prefix().join("lib/argonet/build");
    let before = place.content()?;
    for directory in [&build, &build.join("smp-conduit")] {
        for target in ["all", "seq", "par", "parsync", "clean"] {
            succeeded(&run(make(directory).arg(target))?)?;
        }
        let text = failed(&run(make(directory).arg("install"))?)?;
        assert!(text.contains("make install prefix=DIR"), "{text}");
    }
    for (number, directory) in [&build, &build.join("smp-conduit")].into_iter().enumerate() {
        let copy = place.file(&format!("copy {number}/of it"));
        let prefix = format!("prefix={}", copy.display());
        succeeded(&run(make(directory).args(["install", &prefix]))?)?;
        for name in ["include/gasnetex.h", "include/smp-conduit/smp-par.mak"] {
            let (ours, theirs) = (place.prefix().join(name), copy.join(name));
            assert_eq!(std::fs::read(ours)?, std::fs::read(theirs)?, "{name}");
        }
    }
    assert_eq!(before, place.content()?);
    Ok(())
}

/// A directory whose path has no blank, as clients that use the variable need.
struct Plain(PathBuf);

fn tempfile() -> Result<Plain, Failed> {
    let name = format!("argonet-install-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path)?;
    Ok(Plain(path))
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn not_filled_in() -> Result<(), Failed> {
    let place = Place::installed("not filled in", false)?;
    for (option, why) in [
        ("--file=x:/nonexistent/in", "/nonexistent/in cannot be read"),
        (
            "--file=/proc/argonet/x:/dev/null",
            "/proc/argonet cannot be made",
        ),
        ("--file=:x", "':x' is not OUT:IN"),
        ("--recheck", "unknown option --recheck"),
        ("--file", "--file needs a value"),
    ] {
        let text = failed(&run(status(&place).arg(option))?)?;
        assert!(
            text.contains(&format!("config.status: {why}")),
            "{option}: {text}"
        );
    }
    let text = failed(&run(&mut status(&place))?)?;
    assert!(text.contains("CONFIG_FILES names no file"), "{text}");
    let mut command = status(&place);
    command.env("CONFIG_FILES", "-:/dev/null");
    let text = failed(&run(command.env("CONFIG_HEADERS", "config.h"))?)?;
    assert!(text.contains("CONFIG_HEADERS=config.h"), "{text}");
    Ok(())
}
