//! Cases for all implementations of the trait: the software interface between two threads; the
//! networked one between threads and between processes, whose datagrams go through the loopback
//! interface, with and without faults of the wire; and a library of Portals 4 between two
//! processes, where one is found (`ARGONET_PORTALS_LIBRARY`, or the loader's path).

mod atomics;
mod away;
mod cases;
mod entries;
mod errors;
mod group;
mod hostile;
mod hosts;
mod leaving;
mod loader;
mod mad;
mod ranks;

use argonet_nic::portals::portals4::Library;
use argonet_settings::Settings;
use libtest_mimic::{Arguments, Trial};
use ranks::Kind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, rank, kind, case] = words.as_slice()
        && flag == ranks::FLAG
    {
        return ranks::child(rank, kind, case);
    }
    let arguments = Arguments::from_args();
    let settings = Settings::from_environment().expect("settings");
    let mut trials = loader::trials();
    for name in cases::NAMES {
        let title = format!("software::{name}");
        trials.push(Trial::test(title, || ranks::software(name)));
        for wire in hosts::WIRES {
            let title = format!("hosts::{}::{name}", wire.name);
            trials.push(Trial::test(title, move || hosts::threads(&wire, name)));
        }
        let title = format!("hosts::processes::{name}");
        trials.push(Trial::test(title, || ranks::processes(Kind::Hosts, name)));
    }
    for name in cases::NAMES.iter().chain(&errors::NAMES) {
        let title = format!("narrow::{name}");
        trials.push(Trial::test(title, || ranks::narrow(name)));
    }
    trials.push(Trial::test(
        format!("hosts::processes::{}", away::COMPUTING),
        || ranks::processes(Kind::Hosts, away::COMPUTING),
    ));
    trials.extend(away::trials());
    trials.extend(leaving::trials());
    trials.extend(hostile::trials());
    let found = Library::of_settings(&settings);
    match found {
        Ok(_) => {
            for name in cases::NAMES.iter().chain(&errors::NAMES) {
                let title = format!("portals4::{name}");
                trials.push(Trial::test(title, || {
                    ranks::processes(Kind::Portals4, name)
                }));
            }
        }
        Err(error) => {
            eprintln!("{error}");
            let title = "portals4 (no libportals.so, name one by ARGONET_PORTALS_LIBRARY)";
            trials.push(Trial::test(title, || Ok(())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
