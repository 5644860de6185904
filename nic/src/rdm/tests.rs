//! Messages through a library that is made for the tests, whose endpoint sends to itself.

use super::*;
use crate::fabric::tests::fake::{Answer, PROVIDER, Provider, deliver, fake, library};

fn port(provider: Provider) -> Result<RdmPort, FabricError> {
    RdmPort::open(&library(&[provider])?, None, None)
}

/// The endpoint of a rank that is its own peer.
fn rdm(provider: Provider) -> Rdm {
    let port = port(provider).unwrap();
    let own = port.address().clone();
    port.connect(&[own]).unwrap().0
}

/// What has come, which is held.
fn came(rdm: &mut Rdm) -> Vec<Received> {
    let mut came = Vec::new();
    while rdm.receive(&mut |received| came.push(received)) {}
    came
}

fn provider_of(names: &[&'static core::ffi::CStr], wanted: Option<&str>) -> String {
    let of = |name: &&'static core::ffi::CStr| Provider { name, ..PROVIDER };
    let providers: Vec<Provider> = names.iter().map(of).collect();
    let library = library(&providers).unwrap();
    match fitting(&library, wanted, None) {
        Ok(fitting) => fitting.provider().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_first_provider_of_the_documented_order_is_chosen() {
    let all = [c"shm", c"sockets", c"tcp;ofi_rxm", c"verbs;ofi_rxm", c"net"];
    assert_eq!(provider_of(&all, None), "verbs;ofi_rxm");
    assert_eq!(provider_of(&all[..3], None), "tcp;ofi_rxm");
    // None of them: the first that there is.
    assert_eq!(provider_of(&[c"new", c"shm"], None), "new");
    assert_eq!(provider_of(&all, Some("shm")), "shm");
    let text = provider_of(&all[..2], Some("cxi"));
    for words in [
        "\"cxi\"",
        "shm, sockets",
        "FI_EP_RDM",
        "ARGONET_OFI_PROVIDER",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let none = provider_of(&[], None);
    assert!(
        none.contains("no provider with endpoints for reliable messages"),
        "{none}"
    );
}

#[test]
fn a_provider_that_loses_order_or_messages_is_refused() {
    let of = |provider| port(provider).err().unwrap().to_string();
    let disorderly = Provider {
        is_orderly: false,
        ..PROVIDER
    };
    let text = of(disorderly);
    assert!(
        text.contains("does not keep the order of messages"),
        "{text}"
    );
    let text = of(Provider {
        sees_to_itself: false,
        ..PROVIDER
    });
    assert!(text.contains("lets its queues overflow"), "{text}");
    assert!(text.contains("ARGONET_OFI_PROVIDER"), "{text}");
}

#[test]
fn messages_come_whole_and_their_buffers_are_used_again() {
    let mut rdm = rdm(PROVIDER);
    // More than there are buffers.
    for turn in 0..100_u8 {
        let (len, mut kept) = (usize::from(turn), Vec::new());
        let sent = rdm.send_filled(0, len, &mut kept, |place| place.fill(turn));
        assert_eq!((sent, kept.len()), (Taken::Sent, 0));
        deliver();
        let mut all = came(&mut rdm);
        let one = all.pop().unwrap();
        assert_eq!((rdm.bytes(&one), all.len()), (&vec![turn; len][..], 0));
        rdm.give_back(one);
    }
    assert_eq!(rdm.trouble(), None);
    assert_eq!(fake(|fake| fake.posted.len()), 32);
    // Those of up to ten bytes are copied by the provider.
    assert_eq!(fake(|fake| fake.injected), 11);
    assert_eq!(rdm.send(0, &[0; 101]), Taken::Refused);
    assert_eq!(rdm.send(1, b"x"), Taken::Refused);
}

#[test]
fn a_message_that_is_held_is_not_overwritten() {
    let mut rdm = rdm(PROVIDER);
    let mut held = Vec::new();
    for turn in 0..32 {
        rdm.send(0, &[turn; 50]);
        deliver();
        held.extend(came(&mut rdm));
    }
    assert_eq!(fake(|fake| fake.posted.len()), 0);
    for (turn, one) in (0..).zip(&held) {
        assert_eq!(rdm.bytes(one), [turn; 50]);
    }
    held.into_iter().for_each(|one| rdm.give_back(one));
    assert_eq!(fake(|fake| fake.posted.len()), 32);
    // A message of another endpoint has no bytes here, and its buffer is not posted.
    let foreign = Received(3);
    assert!(rdm.bytes(&foreign).is_empty());
    rdm.give_back(foreign);
    rdm.give_back(Received(u32::MAX));
    assert_eq!(fake(|fake| fake.posted.len()), 32);
}

#[test]
fn what_finds_no_room_is_kept_whole() {
    let mut rdm = rdm(PROVIDER);
    fake(|fake| fake.full = 1);
    let mut kept = Vec::new();
    let fill = |place: &mut [u8]| place.fill(7);
    assert_eq!(rdm.send_filled(0, 50, &mut kept, fill), Taken::NoRoom);
    assert_eq!(kept, [7; 50]);
    assert!(!rdm.is_sending());
    assert_eq!(rdm.send(0, &kept), Taken::Sent);
    assert!(rdm.is_sending());
    // All buffers are the provider's.
    while rdm.send(0, &[1; 50]) == Taken::Sent {}
    assert_eq!(fake(|fake| fake.sends.len()), 32);
    let fill = |place: &mut [u8]| place.fill(8);
    assert_eq!(rdm.send_filled(0, 60, &mut kept, fill), Taken::NoRoom);
    assert_eq!(kept, [8; 60]);
    deliver();
    assert_eq!(rdm.send(0, &kept), Taken::Sent);
}

#[test]
fn failures_name_the_peer_and_the_providers_words() {
    let mut rdm = rdm(PROVIDER);
    rdm.send(0, &[1; 50]);
    fake(|fake| {
        let failed = fake.sends.pop().unwrap();
        fake.sent.push_back(Answer::Error(failed.context));
        fake.full = 1;
    });
    // A look for room finds it.
    assert_eq!(rdm.send(0, &[1; 50]), Taken::NoRoom);
    let words = "the library's words (the cable is out, 77)";
    assert_eq!(rdm.failures(), [(0, words.to_owned())]);
    assert_eq!(rdm.failures(), []);
    fake(|fake| fake.refuses = -5);
    assert_eq!(rdm.send(0, &[1; 50]), Taken::Refused);
    let words = "fi_send: the library's words (-5)";
    assert_eq!(rdm.failures(), [(0, words.to_owned())]);
    assert_eq!(rdm.in_words(), "libfabric's provider fake at 07");
}

#[test]
fn messages_are_as_long_as_every_peer_takes() {
    let port = port(PROVIDER).unwrap();
    let own = port.address().clone();
    let shorter: FabricAddress = own.to_string().replace(":100:", ":60:").parse().unwrap();
    let (mut rdm, _) = port.connect(&[own, shorter]).unwrap();
    assert_eq!(rdm.message_bytes(), 60);
    assert_eq!(rdm.send(0, &[1; 61]), Taken::Refused);
}
