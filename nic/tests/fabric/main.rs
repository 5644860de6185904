//! Cases for interfaces of datagrams, over sockets of the system, and for those and messages over
//! providers of libfabric where the library is found (`ARGONET_FABRIC_LIBRARY`, or the loader's
//! path).

mod cases;
mod loader;
mod rdm;

use argonet_base::JobRank;
use argonet_nic::datagram::{FabricPort, Nic, NicAddress, NicPort, Port};
use argonet_nic::fabric::Library;
use argonet_settings::Settings;
use libtest_mimic::{Arguments, Trial};
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;

/// The provider that every libfabric of Debian has.
const PROVIDER: &str = "udp";
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Two ranks of this process, over sockets if there is no library.
fn pair(library: Option<&Library>) -> [Nic; 2] {
    let port = || match library {
        None => NicPort::Udp(Port::bind((HERE, 0).into()).expect("socket")),
        Some(library) => {
            let port = FabricPort::open(library, Some(PROVIDER), Some(HERE));
            NicPort::Fabric(Box::new(port.expect("endpoint")))
        }
    };
    let ports = [port(), port()];
    let published = ports.each_ref().map(|port| port.address().to_string());
    let peers = published.map(|text| text.parse::<NicAddress>().expect("address"));
    let mut ranks = (0..).map(JobRank);
    ports.map(|port| {
        let rank = ranks.next().expect("rank");
        port.open(rank, &peers).expect("interface")
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let settings = Settings::from_environment().expect("settings");
    let mut trials = loader::trials();
    for (name, case) in cases::CASES {
        let run = move || {
            case(pair(None));
            Ok(())
        };
        trials.push(Trial::test(format!("sockets::{name}"), run));
    }
    match Library::of_settings(&settings) {
        Ok(library) => {
            for (name, case) in cases::CASES {
                let library = library.clone();
                let run = move || {
                    case(pair(Some(&library)));
                    Ok(())
                };
                trials.push(Trial::test(format!("fabric::{name}"), run));
            }
            trials.extend(loader::trials_of(&library));
            trials.extend(rdm::trials_of(&library));
        }
        Err(error) => {
            eprintln!("{error}");
            let title = "fabric (no libfabric.so.1, name one by ARGONET_FABRIC_LIBRARY)";
            trials.push(Trial::test(title, || Ok(())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
