//! Programs that are linked with the conduit portals.

use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, failed, run, runs, succeeded};
use crate::udp::{has_all, started_alike};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("portals has all that tcp has", || has_all("portals")),
        Trial::test("clients of portals run over portals", over_portals)
            .with_ignored_flag(!runs("make")),
    ]
}

fn over_portals() -> Result<(), Failed> {
    let place = Place::installed("over portals", false)?;
    let program = started_alike(&place, "portals", &["bin/gasnetrun_portals"])?;
    let launched = |setting: &str| {
        let mut command = Command::new(place.prefix().join("bin/gasnetrun_portals"));
        command
            .args(["-n", "2"])
            .arg(&program)
            .env("GASNET_SUPERNODE_MAXSIZE", "1")
            .env("GASNET_PORTAL_ACCEL", setting);
        run(&mut command)
    };
    // Other conduits do not read it.
    let text = failed(&launched("1")?)?;
    assert!(text.contains("GASNET_PORTAL_ACCEL"), "{text}");
    succeeded(&launched("0")?)?;
    let mut alone = Command::new(&program);
    alone.arg("2").env("GASNET_PORTAL_ACCEL", "1");
    let text = failed(&run(alone.env("GASNET_SUPERNODE_MAXSIZE", "1"))?)?;
    assert!(text.contains("GASNET_PORTAL_ACCEL"), "{text}");
    // Another conduit may be chosen.
    let mut over_tcp = Command::new(&program);
    over_tcp.arg("2").env("GASNET_PORTAL_ACCEL", "1");
    over_tcp.env("ARGONET_CONDUIT", "tcp");
    succeeded(&run(over_tcp.env("GASNET_SUPERNODE_MAXSIZE", "1"))?)?;
    Ok(())
}
