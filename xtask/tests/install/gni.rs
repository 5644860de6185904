//! Programs that are linked with the conduit gni.

use std::process::Command;

use libtest_mimic::{Failed, Trial};

use crate::place::{Place, run, runs, succeeded};
use crate::udp::{has_all, started_alike};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("gni has all that tcp has", || has_all("gni")),
        Trial::test("clients of gni run over gni", over_gni).with_ignored_flag(!runs("make")),
    ]
}

fn over_gni() -> Result<(), Failed> {
    let place = Place::installed("over gni", false)?;
    let program = started_alike(&place, "gni", &["bin/gasnetrun_gni"])?;
    // Another conduit may be chosen.
    for (chosen, conduit) in [(None, "gni"), (Some("tcp"), "tcp")] {
        let mut alone = Command::new(&program);
        alone.arg("2").env("GASNET_VERBOSEENV", "1");
        alone.env("GASNET_SUPERNODE_MAXSIZE", "1");
        alone.envs(chosen.map(|conduit| ("ARGONET_CONDUIT", conduit)));
        let text = succeeded(&run(&mut alone)?)?;
        let line = format!("ARGONET_CONDUIT = {conduit}");
        assert!(text.contains(&line), "{line} in {text}");
    }
    Ok(())
}
