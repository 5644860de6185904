//! Messages through a library that is made for the tests, whose endpoint sends to itself.

use super::*;
use crate::fabric::abi;
use crate::fabric::tests::fake::{Answer, PROVIDER, Provider, deliver, fake, library};

fn port(provider: Provider) -> Result<RdmPort, FabricError> {
    RdmPort::open(&library(&[provider])?, None, None)
}

/// Messages of this provider are long enough.
const LONG: Provider = Provider {
    longest: 300,
    ..PROVIDER
};

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
    let of = |name: &&'static core::ffi::CStr| Provider { name, ..LONG };
    let providers: Vec<Provider> = names.iter().map(of).collect();
    let library = library(&providers).unwrap();
    chosen(&library, wanted)
}

fn chosen(library: &Library, wanted: Option<&str>) -> String {
    let name = |fitting: Fitting| Ok(fitting.provider().to_owned());
    first_fitting(library, wanted, None, name).unwrap_or_else(|error| error.to_string())
}

#[test]
fn a_provider_that_cannot_be_used_is_passed_over() {
    let of = |name: &'static core::ffi::CStr, longest: usize| Provider {
        name,
        longest,
        ..LONG
    };
    let providers = [
        of(c"tcp;ofi_rxm", 300),
        of(c"verbs;ofi_rxm", 100),
        of(c"new", 100),
    ];
    let library = library(&providers).unwrap();
    assert_eq!(chosen(&library, None), "tcp;ofi_rxm");
    let text = chosen(&library, Some("verbs;ofi_rxm"));
    assert!(
        text.contains("takes messages of 100 bytes, 256 are needed"),
        "{text}"
    );
    fake(|fake| fake.providers.remove(0));
    let text = chosen(&library, None);
    for words in [
        "can be used",
        "\n  provider verbs;ofi_rxm",
        "\n  provider new",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

/// The order stands in what users read, too.
#[test]
fn the_setting_names_the_providers_in_their_order() {
    let argonet_settings::Preset::Words(words) = argonet_settings::OFI_PROVIDER.row().preset else {
        panic!("the preset is not in words");
    };
    let separators = |c: char| c == ',' || c == ' ';
    let named = words
        .split(separators)
        .filter(|word| PROVIDERS.contains(word));
    assert_eq!(named.collect::<Vec<&str>>(), PROVIDERS, "{words}");
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
        ..LONG
    };
    let text = of(disorderly);
    assert!(
        text.contains("does not keep the order of messages"),
        "{text}"
    );
    let text = of(Provider {
        sees_to_itself: false,
        ..LONG
    });
    assert!(text.contains("lets its queues overflow"), "{text}");
    assert!(text.contains("ARGONET_OFI_PROVIDER"), "{text}");
}

#[test]
fn messages_come_whole_and_their_buffers_are_used_again() {
    let mut rdm = rdm(LONG);
    // More than there are buffers.
    for turn in 0..100_u8 {
        let (len, mut kept) = (usize::from(turn), Vec::new());
        let sent = rdm.send_filled(0, len, false, &mut kept, |place| place.fill(turn));
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
    assert_eq!(rdm.send(0, &[0; 301], false), Taken::Refused);
    assert_eq!(rdm.send(1, b"x", false), Taken::Refused);
}

#[test]
fn a_message_that_is_held_is_not_overwritten() {
    let mut rdm = rdm(LONG);
    let mut held = Vec::new();
    for turn in 0..32 {
        rdm.send(0, &[turn; 50], false);
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
    let mut rdm = rdm(LONG);
    fake(|fake| fake.full = 1);
    let mut kept = Vec::new();
    let fill = |place: &mut [u8]| place.fill(7);
    assert_eq!(
        rdm.send_filled(0, 50, false, &mut kept, fill),
        Taken::NoRoom
    );
    assert_eq!(kept, [7; 50]);
    assert!(!rdm.is_sending());
    assert_eq!(rdm.send(0, &kept, false), Taken::Sent);
    assert!(rdm.is_sending());
    // All its buffers are the provider's.
    while rdm.send(0, &[1; 50], false) == Taken::Sent {}
    assert_eq!(fake(|fake| fake.sends.len()), 16);
    let fill = |place: &mut [u8]| place.fill(8);
    assert_eq!(
        rdm.send_filled(0, 60, false, &mut kept, fill),
        Taken::NoRoom
    );
    assert_eq!(kept, [8; 60]);
    deliver();
    assert_eq!(rdm.send(0, &kept, false), Taken::Sent);
}

#[test]
fn failures_name_the_peer_and_the_providers_words() {
    let mut rdm = rdm(LONG);
    rdm.send(0, &[1; 50], false);
    fake(|fake| {
        let failed = fake.sends.pop().unwrap();
        fake.sent.push_back(Answer::Error(failed.context));
        fake.full = 1;
    });
    // A look for room finds it.
    assert_eq!(rdm.send(0, &[1; 50], false), Taken::NoRoom);
    let words = "the library's words (the cable is out, 77)";
    assert_eq!(rdm.failures(), [(0, words.to_owned())]);
    assert_eq!(rdm.failures(), []);
    fake(|fake| fake.refuses = -5);
    assert_eq!(rdm.send(0, &[1; 50], false), Taken::Refused);
    let words = "fi_send: the library's words (-5)";
    assert_eq!(rdm.failures(), [(0, words.to_owned())]);
    assert_eq!(rdm.in_words(), "libfabric's provider fake at 07");
}

#[test]
fn messages_are_as_long_as_every_peer_takes() {
    let port = port(LONG).unwrap();
    let own = port.address().clone();
    let shorter: FabricAddress = own.to_string().replace(":300:", ":280:").parse().unwrap();
    let (mut rdm, _) = port.connect(&[own, shorter]).unwrap();
    assert_eq!(rdm.message_bytes(), 280);
    assert_eq!(rdm.send(0, &[1; 281], false), Taken::Refused);
}

#[test]
fn a_peer_that_takes_no_header_is_refused() {
    let port = port(LONG).unwrap();
    let own = port.address().clone();
    let short: FabricAddress = own.to_string().replace(":300:", ":20:").parse().unwrap();
    let error = port.connect(&[own, short]).err().unwrap().to_string();
    assert!(error.contains("at 07, which takes 20 bytes"), "{error}");
}

/// It sends again only while it is polled, so that the end of each send must be known.
#[test]
fn a_provider_with_manual_progress_copies_no_messages() {
    let mut rdm = rdm(Provider {
        progress: abi::PROGRESS_MANUAL,
        ..LONG
    });
    assert_eq!(rdm.send(0, b"short", false), Taken::Sent);
    assert_eq!(fake(|fake| fake.injected), 0);
    assert!(rdm.is_sending());
    deliver();
    assert!(!rdm.is_sending());
}

#[test]
fn a_message_that_is_copied_and_finds_no_room_is_kept_whole() {
    let mut rdm = rdm(LONG);
    fake(|fake| fake.full = 1);
    let mut kept = Vec::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(b"short");
    assert_eq!(rdm.send_filled(0, 5, false, &mut kept, fill), Taken::NoRoom);
    assert_eq!(kept, b"short");
    // It needs no buffer.
    while rdm.send(0, &[1; 50], false) == Taken::Sent {}
    assert_eq!(rdm.send(0, &kept, false), Taken::Sent);
}

/// The first does not answer.
#[test]
fn a_peer_that_takes_nothing_leaves_buffers_to_others() {
    let port = port(LONG).unwrap();
    let own = port.address().clone();
    let other: FabricAddress = own.to_string().replace(":07", ":08").parse().unwrap();
    let (mut rdm, _) = port.connect(&[own, other]).unwrap();
    let sent = |rdm: &mut Rdm, to| {
        (0..64)
            .take_while(|_| rdm.send(to, &[1; 50], false) == Taken::Sent)
            .count()
    };
    // Half of the buffers are for the first that comes.
    assert_eq!(sent(&mut rdm, 1), 16);
    assert_eq!(sent(&mut rdm, 0), 8);
    assert_eq!(sent(&mut rdm, 1), 0);
    deliver();
    assert_eq!(sent(&mut rdm, 1), 16);
}

/// Those that are injected name no buffer, and a stranger's nonsense is the provider's own.
#[test]
fn an_error_of_an_operation_does_not_break_the_queue() {
    let mut rdm = rdm(LONG);
    fake(|fake| {
        let failed = fake.posted.pop_front().unwrap();
        fake.came.push_back(Answer::Error(failed.context));
        fake.came.push_back(Answer::Error(core::ptr::null_mut()));
        fake.sent.push_back(Answer::Error(core::ptr::null_mut()));
    });
    assert!(came(&mut rdm).is_empty());
    assert!(!rdm.is_sending());
    assert_eq!(rdm.broken(), None);
    assert_eq!(fake(|fake| fake.posted.len()), 32, "it was posted again");
    let trouble = rdm.trouble().unwrap();
    assert!(trouble.contains("3 operations failed"), "{trouble}");
    assert_eq!(rdm.send(0, b"goes on", false), Taken::Sent);
    assert_eq!(came(&mut rdm).len(), 1);
}

#[test]
fn a_queue_that_reports_nothing_or_failures_alone_is_broken() {
    let words = "fi_cq_read of libfabric's provider fake failed: the library's words (-5)";
    for sends in [false, true] {
        let mut rdm = rdm(LONG);
        fake(|fake| match sends {
            true => fake.sent.push_back(Answer::Broken),
            false => fake.came.push_back(Answer::Broken),
        });
        assert!(came(&mut rdm).is_empty());
        rdm.is_sending();
        let broken = rdm.broken().unwrap();
        assert!(broken.starts_with(words), "{broken}");
        fake(|fake| (fake.sent.clear(), fake.came.clear()));
    }
    let mut rdm = rdm(LONG);
    for turn in 0..33 {
        assert_eq!(rdm.broken(), None, "{turn}");
        fake(|fake| {
            let failed = fake.posted.pop_front().unwrap();
            fake.came.push_back(Answer::Error(failed.context));
        });
        assert!(came(&mut rdm).is_empty());
    }
    assert!(rdm.broken().unwrap().starts_with("a receive failed"));
}

/// What peers need to go on has room where long messages have none.
#[test]
fn short_messages_find_room_when_long_ones_do_not() {
    let port = port(LONG).unwrap();
    let own = port.address().clone();
    let other = |digits: &str| own.to_string().replace(":07", digits).parse().unwrap();
    let peers = [own.clone(), other(":08"), other(":09"), other(":0a")];
    let (mut rdm, _) = port.connect(&peers).unwrap();
    for peer in 0..4 {
        while rdm.send(peer, &[1; 50], false) == Taken::Sent {}
    }
    let sends = fake(|fake| fake.sends.len());
    assert_eq!(sends, 28, "of 32");
    assert_eq!(rdm.send(3, &[1; 24], true), Taken::Sent);
    assert_eq!(fake(|fake| fake.injected), 0);
}
